#include "rbee/grammar/matcher.h"

#include <algorithm>
#include <bit>

#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxVisited = 50'000;  // places, for a token: about 2 ms

}  // namespace

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)), stacks_(grammar_->automaton()) {
  complete_ = stacks_.close({grammar_->automaton().root(), kBottom}, places_);
}

bool Matcher::accept(std::string_view bytes) {
  std::vector<Place> places = places_, next;
  bool complete = complete_;
  const int64_t begin = stacks_.visited();
  for (const char c : bytes) {
    if (stacks_.visited() - begin > kMaxVisited) {
      fail(Code::unsupported, "grammar", "it is too ambiguous: reading a token takes more than ",
           kMaxVisited, " steps");
    }
    stacks_.step(places, static_cast<uint8_t>(c), next, complete);
    if (next.empty() && !complete) return false;
    std::swap(places, next);
  }
  places_ = std::move(places);
  mask_ = {};
  stacks_.forget_others(places_);
  complete_ = complete;
  return true;
}

bool Matcher::accept_token(int32_t id) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (std::ranges::binary_search(vocabulary.ends(), id)) return complete_;
  const std::string_view bytes = vocabulary.bytes(id);
  return !bytes.empty() && accept(bytes);
}

std::optional<int64_t> Matcher::fill(std::span<uint64_t> bits, int64_t& work) {
  if (mask_.number == 0) std::ranges::fill(bits, 0);
  if (!grammar_->masks().add(places_, stacks_, bits, mask_, work)) return std::nullopt;
  mask_ = {};
  if (complete_) {
    for (const int32_t id : grammar_->vocabulary().ends()) {
      bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64);
    }
  }
  int64_t count = 0;
  for (const uint64_t word : bits) count += std::popcount(word);
  return count;
}

}  // namespace rbee::grammar

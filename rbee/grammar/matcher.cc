#include "rbee/grammar/matcher.h"

#include <algorithm>
#include <bit>

#include "rbee/core/error.h"
#include "rbee/grammar/token_bytes.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxVisited = 50'000;  // places, for a token: about 2 ms

}  // namespace

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)), stacks_(grammar_->automaton()) {
  complete_ = stacks_.close({grammar_->automaton().root(), kBottom}, places_);
}

// Nothing if the grammar does not allow the bytes.
std::optional<Matcher::Reading> Matcher::read(std::string_view bytes) {
  Reading out{.places = places_, .complete = complete_};
  std::vector<Place> next;
  const int64_t begin = stacks_.visited();
  for (const char c : bytes) {
    if (stacks_.visited() - begin > kMaxVisited) {
      fail(Code::unsupported, "grammar", "it is too ambiguous: reading a token takes more than ",
           kMaxVisited, " steps");
    }
    stacks_.step(out.places, static_cast<uint8_t>(c), next, out.complete);
    if (next.empty() && !out.complete) return std::nullopt;
    std::swap(out.places, next);
  }
  return out;
}

void Matcher::take(Reading&& reading) {
  places_ = std::move(reading.places);
  complete_ = reading.complete;
  mask_ = {};
  stacks_.forget_others(places_);
}

bool Matcher::accept(std::string_view bytes) {
  auto reading = read(bytes);
  if (!reading) return false;
  take(std::move(*reading));
  return true;
}

bool Matcher::accept_token(int32_t id) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (std::ranges::binary_search(vocabulary.ends(), id)) return complete_;
  const std::string_view bytes = vocabulary.bytes(id);
  auto by_text = bytes.empty() ? std::nullopt : read(bytes);
  const bool tokens = grammar_->automaton().reads_tokens() && vocabulary.has(id);
  auto by_id = tokens ? read(token_bytes(id)) : std::nullopt;
  if (by_text && by_id) {
    by_text->complete |= by_id->complete;
    std::vector<Place>& places = by_text->places;
    places.insert(places.end(), by_id->places.begin(), by_id->places.end());
    std::ranges::sort(places);
    places.erase(std::ranges::unique(places).begin(), places.end());
  }
  auto& reading = by_text ? by_text : by_id;
  if (!reading) return false;
  take(std::move(*reading));
  return true;
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

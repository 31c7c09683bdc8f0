#include "server/front/prefix.h"

#include <algorithm>

namespace rbee::server {
namespace {

constexpr size_t kPiece = 1024;
constexpr size_t kMostBytes = 512 * kPiece;
constexpr uint64_t kPrime = 0x100000001b3;  // FNV-1a's

uint64_t mixed(uint64_t first, uint64_t second) {
  uint64_t out = first;
  for (int byte = 0; byte < 8; ++byte) out = (out ^ ((second >> (8 * byte)) & 0xff)) * kPrime;
  return out;
}

// A busier worker is worth it while the caches save more than the wait costs: two requests more, or
// half as many again.
bool may_take(int busy, int least) {
  return busy <= least + std::max(2, least / 2);
}

}  // namespace

void PromptPrefixes::add_to(Rolling& rolling, std::string_view text) {
  const auto take = [&](unsigned char byte) {
    rolling.hash = (rolling.hash ^ byte) * kPrime;
    if (++rolling.bytes % kPiece == 0) rolling.pieces.push_back(rolling.hash);
  };
  if (rolling.bytes >= kMostBytes) return;
  for (const char letter : text.substr(0, kMostBytes - rolling.bytes)) {
    take(static_cast<unsigned char>(letter));
  }
  take(0);  // "ab", "c" is not "a", "bc"
}

void PromptPrefixes::add_first(std::string_view text) {
  add_to(first_, text);
}

void PromptPrefixes::add(std::string_view text) {
  add_to(rest_, text);
}

void PromptPrefixes::add_scope(std::string_view text) {
  add_to(scope_, text);
}

std::vector<uint64_t> PromptPrefixes::hashes() const {
  std::vector<uint64_t> out;
  for (const uint64_t piece : first_.pieces) out.push_back(mixed(scope_.hash, piece));
  const uint64_t before = mixed(scope_.hash, first_.hash);
  for (const uint64_t piece : rest_.pieces) out.push_back(mixed(before, piece));
  return out;
}

size_t PrefixIndex::match(const std::vector<uint64_t>& prefixes) const {
  for (size_t count = prefixes.size(); count > 0; --count) {
    if (places_.contains(prefixes[count - 1])) return count;
  }
  return 0;
}

void PrefixIndex::note(const std::vector<uint64_t>& prefixes) {
  // The longest first, so that what is shared by most requests is forgotten last.
  for (auto hash = prefixes.rbegin(); hash != prefixes.rend(); ++hash) {
    if (const auto place = places_.find(*hash); place != places_.end()) {
      order_.splice(order_.begin(), order_, place->second);
      continue;
    }
    order_.push_front(*hash);
    places_[*hash] = order_.begin();
    if (order_.size() <= kMost) continue;
    places_.erase(order_.back());
    order_.pop_back();
  }
}

void PrefixIndex::clear() {
  order_.clear();
  places_.clear();
}

size_t choose_by_prefix(const std::vector<PrefixCandidate>& candidates, size_t prefixes) {
  const auto least = std::ranges::min_element(candidates, {}, &PrefixCandidate::busy);
  auto best = least;
  for (auto one = candidates.begin(); one != candidates.end(); ++one) {
    const bool enough = one->matched > 0 && one->matched * 10 >= prefixes;
    if (!enough || !may_take(one->busy, least->busy)) continue;
    const bool better =
        one->matched != best->matched ? one->matched > best->matched : one->busy < best->busy;
    if (better) best = one;
  }
  return static_cast<size_t>(best - candidates.begin());
}

}  // namespace rbee::server

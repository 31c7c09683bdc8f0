#include "rbee/text/vocab.h"

#include <algorithm>
#include <cstring>

#include "rbee/core/error.h"

namespace rbee::text {
namespace {

constexpr size_t kMaxTokenBytes = (size_t{1} << 23) - 1;
constexpr TokenId kFree = -1;

uint64_t mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  return value ^ value >> 29;
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = bytes.size() * 0x9E3779B97F4A7C15u;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = mix(hash ^ word);
    bytes.remove_prefix(8);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return mix(mix(hash ^ rest));
}

void Vocab::reserve(size_t tokens, size_t bytes) {
  spans_.reserve(tokens);
  bytes_.reserve(bytes);
  size_t wanted = 16;
  while (wanted < tokens * 2) wanted *= 2;
  if (wanted <= table_.size()) return;
  table_.assign(wanted, {0, kFree});
  filled_ = 0;
  for (size_t id = 0; id < spans_.size(); ++id) {
    if (spans_[id].used) insert(hash_bytes(view(spans_[id])), static_cast<TokenId>(id));
  }
}

void Vocab::insert(uint64_t hash, TokenId id) {
  const size_t mask = table_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & mask;
  for (; table_[at].id != kFree; at = (at + 1) & mask) {
    if (table_[at].tag == tag && text(table_[at].id) == text(id)) return;
  }
  table_[at] = {tag, id};
  ++filled_;
}

bool Vocab::add(std::string_view text, TokenId id) {
  check(id >= 0, "vocab", "id ", id, " is negative");
  check(text.size() <= kMaxTokenBytes, "vocab", "token ", id, " has ", text.size(), " bytes");
  if (has(id)) return false;
  if (table_.size() < (filled_ + 1) * 2) reserve(std::max<size_t>(table_.size(), 8), 0);
  const auto index = static_cast<size_t>(id);
  if (index >= spans_.size()) spans_.resize(index + 1, Span{0, 0, 0});
  spans_[index] = {bytes_.size(), text.size(), 1};
  bytes_.append(text);
  insert(hash_bytes(text), id);
  return true;
}

std::optional<TokenId> Vocab::find(std::string_view text) const {
  if (table_.empty()) return std::nullopt;
  const uint64_t hash = hash_bytes(text);
  const size_t mask = table_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t at = hash & mask; table_[at].id != kFree; at = (at + 1) & mask) {
    const Slot slot = table_[at];
    if (slot.tag == tag && view(spans_[static_cast<size_t>(slot.id)]) == text) return slot.id;
  }
  return std::nullopt;
}

bool Vocab::has(TokenId id) const {
  return id >= 0 && static_cast<size_t>(id) < spans_.size() && spans_[static_cast<size_t>(id)].used;
}

std::string_view Vocab::text(TokenId id) const {
  return has(id) ? view(spans_[static_cast<size_t>(id)]) : std::string_view();
}

}  // namespace rbee::text

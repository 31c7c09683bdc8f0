#include "rbee/grammar/vocabulary.h"

#include <algorithm>

#include "rbee/grammar/token_bytes.h"

namespace rbee::grammar {
namespace {

// Longer tokens are left out; nothing that people write is.
constexpr size_t kMaxTokenBytes = 512;

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& tokens, std::span<const int32_t> ends)
    : size_(std::ssize(tokens)), texts_(tokens), ends_(ends.begin(), ends.end()) {
  std::erase_if(ends_, [&](int32_t id) { return id < 0 || id >= size_; });
  std::sort(ends_.begin(), ends_.end());
  for (const int32_t id : ends_) texts_[static_cast<size_t>(id)].clear();
  std::vector<std::string> spelled(texts_.size());
  std::vector<Entry> entries;
  const auto add = [&](std::string_view text, size_t id) {
    if (text.empty()) return;
    longest_ = std::max(longest_, static_cast<int32_t>(text.size()));
    entries.push_back({text, static_cast<int32_t>(id)});
  };
  for (size_t i = 0; i < texts_.size(); ++i) {
    std::string& text = texts_[i];
    there_.push_back(!text.empty() && i <= kMaxTokenId);
    if (there_[i]) spelled[i] = token_bytes(static_cast<int32_t>(i));
    add(spelled[i], i);
    if (text.size() > kMaxTokenBytes || text.find(kTokenByte) != text.npos) text.clear();
    add(text, i);
  }
  std::ranges::sort(entries, {}, &Entry::text);
  nodes_.emplace_back();
  add_children(entries, 0);
  nodes_[kRoot].after = node_count();
}

// entries: sorted, with a common beginning of `depth` bytes; the last node of the list is theirs.
void Vocabulary::add_children(std::span<const Entry> entries, size_t depth) {
  const size_t own = nodes_.size() - 1;
  size_t at = 0;
  nodes_[own].first_token = static_cast<int32_t>(ids_.size());
  for (; at < entries.size() && entries[at].text.size() == depth; ++at) {
    ids_.push_back(entries[at].id);
  }
  nodes_[own].token_count = static_cast<int32_t>(at);
  while (at < entries.size()) {
    const char byte = entries[at].text[depth];
    size_t end = at;
    while (end < entries.size() && entries[end].text[depth] == byte) ++end;
    const size_t child = nodes_.size();
    nodes_.emplace_back().byte = static_cast<uint8_t>(byte);
    add_children(entries.subspan(at, end - at), depth + 1);
    nodes_[child].after = node_count();
    at = end;
  }
}

std::string_view Vocabulary::bytes(int32_t id) const {
  return id >= 0 && id < size_ ? std::string_view(texts_[static_cast<size_t>(id)])
                               : std::string_view();
}

}  // namespace rbee::grammar

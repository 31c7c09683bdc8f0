#include "rbee/text/tokenizer.h"

#include <algorithm>

#include "rbee/text/utf8.h"

namespace rbee::text {

std::string Tokenizer::decode(std::span<const TokenId> ids, bool special) const {
  DecodeStream stream(*this);
  std::string out;
  for (const TokenId id : ids) out += stream.push_bytes(piece(id, special));
  return out + stream.flush();
}

DecodeStream::DecodeStream(const Tokenizer& tokenizer, LeadingSpaces spaces)
    : tokenizer_(&tokenizer), spaces_(spaces), spaces_to_drop_(leading_spaces()) {}

int DecodeStream::leading_spaces() const {
  return spaces_ == LeadingSpaces::kept ? 0 : tokenizer_->leading_spaces_dropped();
}

std::string DecodeStream::push(TokenId id) {
  return push_bytes(tokenizer_->piece(id));
}

std::string DecodeStream::push_special(TokenId id) {
  return push_bytes(tokenizer_->piece(id, true));
}

std::string DecodeStream::push_bytes(std::string_view bytes) {
  if (spaces_to_drop_ != 0 && !bytes.empty()) {
    const bool first_token_only = spaces_to_drop_ < 0;
    while (spaces_to_drop_ != 0 && bytes.starts_with(' ')) {
      bytes.remove_prefix(1);
      --spaces_to_drop_;
    }
    if (first_token_only || !bytes.empty()) spaces_to_drop_ = 0;
  }
  pending_.append(bytes);
  // Only the last three bytes can belong to a character that is not whole yet.
  size_t whole = pending_.size();
  const size_t first = pending_.size() - std::min<size_t>(3, pending_.size());
  for (size_t at = pending_.size(); at-- > first;) {
    const auto byte = static_cast<uint8_t>(pending_[at]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;
    const Utf8Step step = utf8_step(std::string_view(pending_).substr(at));
    if (step.part == Utf8Part::open && at + step.length == pending_.size()) whole = at;
    break;
  }
  std::string out = utf8_repaired(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return out;
}

std::string DecodeStream::flush() {
  std::string out = utf8_repaired(pending_);
  pending_.clear();
  spaces_to_drop_ = leading_spaces();
  return out;
}

}  // namespace rbee::text

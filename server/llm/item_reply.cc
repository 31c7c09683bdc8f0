#include "server/llm/item_reply.h"

#include <utility>

namespace rbee::server {

void ItemReply::close_all() {
  if (items_.empty()) open({});
  closed(items_.back());
}

void ItemReply::open(AnswerItem item) {
  if (!items_.empty()) closed(items_.back());
  items_.push_back(std::move(item));
  opened(items_.back());
}

void ItemReply::grow(AnswerItem::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (items_.empty() || items_.back().kind != kind) open({.kind = kind});
  AnswerItem& item = items_.back();
  item.text += text;
  // Reasoning and calls have no token list.
  std::vector<TokenLogprobs> scored = std::exchange(scored_, {});
  if (kind != AnswerItem::Kind::text) scored.clear();
  item.scored.insert(item.scored.end(), scored.begin(), scored.end());
  grew(item, {.text = text, .scored = scored});
}

}  // namespace rbee::server

#include "server/llm/item_reply.h"

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
  items_.back().text += text;
  grew(items_.back(), text);
}

}  // namespace rbee::server

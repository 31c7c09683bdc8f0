#pragma once
// Answers that list their items in the order of the text: reasoning, text, calls.

#include <string>
#include <vector>

#include "server/llm/reply.h"

namespace rbee::server {

// Collects the items. An item ends when the next one begins.
class ItemReply : public Reply {
 public:
  void started(const StartedEvent&) override {}
  void scored(std::vector<TokenLogprobs> tokens) override { scored_ = std::move(tokens); }
  void token(std::string_view text, int32_t) final { grow(AnswerItem::Kind::text, text); }
  void reasoning(std::string_view text) final { grow(AnswerItem::Kind::reasoning, text); }
  void call(int32_t, const engine::CallBegin& begin) final {
    open({.kind = AnswerItem::Kind::call, .text = {}, .call_id = begin.id, .name = begin.name});
  }
  void arguments(int32_t, std::string_view json) final { grow(AnswerItem::Kind::call, json); }

 protected:
  const std::vector<AnswerItem>& items() const { return items_; }
  // Ends the last item; an answer without items gets an empty text.
  void close_all();
  virtual void opened(const AnswerItem&) {}
  virtual void grew(const AnswerItem&, const ItemPiece&) {}
  virtual void closed(const AnswerItem&) {}

 private:
  void open(AnswerItem item);
  void grow(AnswerItem::Kind kind, std::string_view text);

  std::vector<AnswerItem> items_;
  std::vector<TokenLogprobs> scored_;  // for the next piece
};

}  // namespace rbee::server

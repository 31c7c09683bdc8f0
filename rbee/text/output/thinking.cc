// Reasoning between two marks, before the answer.

#include "rbee/text/output/scan.h"
#include "rbee/text/output/stage.h"

namespace rbee::text {
namespace {

class ThinkingStage final : public Stage {
 public:
  ThinkingStage(ReasoningMarks marks, bool open)
      : marks_(marks), at_(open ? At::first_word : At::begin) {}

  bool read(std::string_view& text, bool last, Output& out) override {
    if (at_ == At::begin) {
      const std::string_view rest = text.substr(leading_space(text));
      const Begins begins = begins_with(rest, marks_.open);
      if (begins == Begins::unknown && !last) return false;
      if (begins != Begins::yes) return true;  // none: blanks belong to the answer
      text = rest.substr(marks_.open.size());
      at_ = At::first_word;
    }
    if (at_ == At::first_word) {
      text.remove_prefix(leading_space(text));
      if (text.empty()) return false;
      at_ = At::inside;
    }
    if (at_ == At::inside) {
      if (!emit_until(text, {&marks_.close, 1}, last, &Output::reasoning, out)) return false;
      at_ = At::behind;
    }
    text.remove_prefix(leading_space(text));
    return !text.empty();
  }
  bool reasons() const override { return at_ == At::first_word || at_ == At::inside; }

 private:
  enum class At : uint8_t { begin, first_word, inside, behind };
  const ReasoningMarks marks_;
  At at_;
};

}  // namespace

std::unique_ptr<Stage> thinking_stage(ReasoningMarks marks, bool open) {
  return std::make_unique<ThinkingStage>(marks, open);
}

}  // namespace rbee::text

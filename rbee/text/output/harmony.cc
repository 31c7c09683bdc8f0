// GPT-OSS's messages: a header with a channel and perhaps a recipient, a body, a mark at its end.
// Form: https://cookbook.openai.com/articles/openai-harmony

#include <array>

#include "rbee/text/output/scan.h"
#include "rbee/text/output/stage.h"

namespace rbee::text {
namespace {

class HarmonyStage final : public Stage {
 public:
  bool read(std::string_view& text, bool last, Output& out) override {
    while (!text.empty() &&
           (at_ == At::body ? read_body(text, last, out) : read_header(text, last, out))) {
    }
    return false;
  }
  bool reasons() const override { return at_ == At::body && to_ == To::nobody; }

 private:
  enum class At : uint8_t { header, body };
  enum class To : uint8_t { user, nobody, function };

  // Up to <|message|>. A text that does not begin like a header is the answer.
  bool read_header(std::string_view& text, bool last, Output& out) {
    const bool header_like = text.starts_with(' ') ||
                             begins_with(text.substr(0, 2), "<|") != Begins::no ||
                             begins_with(text.substr(0, kRole.size()), kRole) != Begins::no;
    const FoundMarker found = find_first(text, kHeaderEnds);
    const bool none = found.at == std::string_view::npos;
    if (!header_like || (none && last && text.find("<|") == std::string_view::npos)) {
      begin_body(To::user, {}, out);
      return true;
    }
    if (none) {
      if (last) text = {};
      return false;
    }
    const std::string_view header = text.substr(0, found.at);
    text.remove_prefix(found.at + kHeaderEnds[found.which].size());
    if (found.which == kMessage) {
      const std::string_view function = recipient(header);
      const bool hidden = header.find("analysis") != std::string_view::npos ||
                          header.find("to=") != std::string_view::npos;
      begin_body(!function.empty() ? To::function : (hidden ? To::nobody : To::user), function,
                 out);
    }
    return true;
  }

  // The name after "to=functions.".
  static std::string_view recipient(std::string_view header) {
    constexpr std::string_view kTo = "to=functions.";
    const size_t at = header.find(kTo);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = header.substr(at + kTo.size());
    return rest.substr(0, rest.find_first_of(" \t\r\n<"));
  }

  void begin_body(To to, std::string_view function, Output& out) {
    at_ = At::body;
    to_ = to;
    empty_ = true;
    if (to == To::function) out.begin_call(function);
  }

  bool read_body(std::string_view& text, bool last, Output& out) {
    const std::string_view before = text;
    const auto emit = to_ == To::function
                          ? &Output::arguments
                          : (to_ == To::user ? &Output::content : &Output::reasoning);
    if (empty_) text.remove_prefix(leading_space(text));
    if (text.empty()) return false;
    const auto mark = emit_until(text, kBodyEnds, last, emit, out);
    const size_t taken = before.size() - text.size();
    empty_ &= taken == (mark ? kBodyEnds[*mark].size() : 0);
    if (!mark) return false;
    if (to_ == To::function) {
      if (empty_) out.arguments("{}");
      out.end_call();
    }
    at_ = At::header;
    return true;
  }

  static constexpr std::string_view kRole = "assistant";
  static constexpr std::array<std::string_view, 4> kHeaderEnds{"<|message|>", "<|end|>", "<|call|>",
                                                               "<|return|>"};
  static constexpr size_t kMessage = 0;
  static constexpr std::array<std::string_view, 4> kBodyEnds{"<|end|>", "<|call|>", "<|return|>",
                                                             "<|start|>"};
  At at_ = At::header;
  To to_ = To::user;
  bool empty_ = true;
};

}  // namespace

std::unique_ptr<Stage> harmony_stage() {
  return std::make_unique<HarmonyStage>();
}

}  // namespace rbee::text

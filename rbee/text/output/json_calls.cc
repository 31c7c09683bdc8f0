// Calls that are whole JSON objects: Hermes' and Llama 3's.

#include <array>

#include "rbee/text/output/call_reader.h"
#include "rbee/text/output/scan.h"
#include "rbee/text/output/stage.h"

namespace rbee::text {
namespace {

// <tool_call> call </tool_call>, again and again, with content around.
class HermesStage final : public Stage {
 public:
  bool read(std::string_view& text, bool last, Output& out) override {
    while (step(text, last, out)) {
    }
    return false;
  }

 private:
  enum class At : uint8_t { content, call, rest, behind };

  // False: more text is needed.
  bool step(std::string_view& text, bool last, Output& out) {
    switch (at_) {
      case At::content:
        return read_content(text, last, out);
      case At::call:
        return read_call(text, last, out);
      case At::rest:  // a model's surplus text
        return skip_to_end(text, last);
      case At::behind:
        text.remove_prefix(leading_space(text));
        if (!text.empty()) at_ = At::content;
        return !text.empty();
    }
    return false;
  }

  // Drops the end of a text that was no call, too.
  bool read_content(std::string_view& text, bool last, Output& out) {
    const auto mark = emit_until(text, kMarks, last, &Output::content, out);
    if (mark == kOpenMark) {
      call_ = CallReader();
      at_ = At::call;
    }
    return mark.has_value();
  }

  bool read_call(std::string_view& text, bool last, Output& out) {
    const CallReader::Status status = call_.read_all(text, last, out);
    if (status == CallReader::Status::more) return false;
    at_ = status == CallReader::Status::broken ? At::content : At::rest;
    if (at_ == At::content) out.content(call_.raw());
    return true;
  }

  bool skip_to_end(std::string_view& text, bool last) {
    const FoundMarker found = find_first(text, kMarks);
    if (found.at == std::string_view::npos) {
      text.remove_prefix(last ? text.size() : text.size() - open_tail(text, kMarks));
      return false;
    }
    text.remove_prefix(found.at + (found.which == kOpenMark ? 0 : kClose.size()));
    at_ = At::behind;
    return true;
  }

  static constexpr std::string_view kClose = "</tool_call>";
  static constexpr std::array<std::string_view, 2> kMarks{kClose, "<tool_call>"};
  static constexpr size_t kOpenMark = 1;
  At at_ = At::content;
  CallReader call_;
};

// The whole answer is calls, with ; or , or nothing between, or it is content.
class LlamaStage final : public Stage {
 public:
  explicit LlamaStage(std::vector<OutputFunction> functions) : functions_(std::move(functions)) {}

  bool read(std::string_view& text, bool last, Output& out) override {
    while (step(text, last, out)) {
    }
    return false;
  }

 private:
  enum class At : uint8_t { begin, call, between, content };

  bool step(std::string_view& text, bool last, Output& out) {
    switch (at_) {
      case At::begin:
        return begin(text, last);
      case At::call:
        return read_call(text, last, out);
      case At::between: {
        const size_t skipped = std::min(text.find_first_not_of(" \t\r\n;,"), text.size());
        text.remove_prefix(skipped);
        if (text.empty()) return false;
        const Begins tag = begins_with(text, kTag);
        if (tag == Begins::unknown && !last) return false;
        if (tag == Begins::yes) text.remove_prefix(kTag.size());
        at_ = tag == Begins::yes || text.starts_with('{') ? At::call : At::content;
        call_ = CallReader(&functions_);
        return true;
      }
      case At::content:
        if (!emit_until(text, {&kTag, 1}, last, &Output::content, out)) return false;
        call_ = CallReader(&functions_);
        at_ = At::call;
        return true;
    }
    return false;
  }

  bool begin(std::string_view& text, bool last) {
    const size_t blanks = leading_space(text);
    const std::string_view rest = text.substr(blanks);
    if (rest.empty() && !last) return false;
    at_ = rest.starts_with('{') ? At::call : At::content;
    return true;
  }

  bool read_call(std::string_view& text, bool last, Output& out) {
    const CallReader::Status status = call_.read_all(text, last, out);
    if (status == CallReader::Status::more) return false;
    at_ = status == CallReader::Status::broken ? At::content : At::between;
    if (at_ == At::content) out.content(call_.raw());
    return true;
  }

  static constexpr std::string_view kTag = "<|python_tag|>";
  const std::vector<OutputFunction> functions_;
  At at_ = At::begin;
  CallReader call_{&functions_};
};

}  // namespace

std::unique_ptr<Stage> hermes_stage() {
  return std::make_unique<HermesStage>();
}

std::unique_ptr<Stage> llama_stage(std::vector<OutputFunction> functions) {
  return std::make_unique<LlamaStage>(std::move(functions));
}

}  // namespace rbee::text

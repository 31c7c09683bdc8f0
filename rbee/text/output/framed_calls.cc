// Calls with their name between marks, in front of the JSON: Mistral's, DeepSeek's and Kimi's.

#include <algorithm>
#include <array>

#include "rbee/text/output/call_reader.h"
#include "rbee/text/output/scan.h"
#include "rbee/text/output/stage.h"

namespace rbee::text {
namespace {

constexpr size_t kMaxName = 128;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(leading_space(text));
  return text.substr(0, text.size() - trailing_space(text));
}

// Reads the JSON of a call that has begun. False: more text is needed.
bool read_arguments(ArgumentsReader& reader, std::string_view& text, bool last, Output& out) {
  const auto emit = [&](std::string_view json) { out.arguments(json); };
  if (reader.read(text, emit) == ArgumentsReader::Status::done) {
    out.end_call();
    return true;
  }
  if (last) reader.finish(emit);
  return false;
}

// [TOOL_CALLS][call, call] or [TOOL_CALLS]name[ARGS]{...}, the latter again and again; a name may
// be followed by [CALL_ID]id.
class MistralStage final : public Stage {
 public:
  bool read(std::string_view& text, bool last, Output& out) override {
    while (step(text, last, out)) {
    }
    return false;
  }

 private:
  enum class At : uint8_t { content, begin, list, call, name, arguments, behind };

  bool step(std::string_view& text, bool last, Output& out) {
    switch (at_) {
      case At::content:
        if (!emit_until(text, {&kMark, 1}, last, &Output::content, out)) return false;
        at_ = At::begin;
        return true;
      case At::begin:
        text.remove_prefix(leading_space(text));
        if (text.empty()) return false;
        at_ = text.front() == '[' ? At::list : At::name;
        if (at_ == At::list) text.remove_prefix(1);
        return true;
      case At::list:
        return next_of_list(text);
      case At::call:
        return read_call(text, last, out);
      case At::name:
        return read_name(text, last, out);
      case At::arguments:
        if (!read_arguments(arguments_, text, last, out)) return false;
        at_ = At::behind;
        return true;
      case At::behind:
        text.remove_prefix(leading_space(text));
        if (!text.empty()) at_ = At::content;
        return !text.empty();
    }
    return false;
  }

  bool next_of_list(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n,"), text.size()));
    if (text.empty()) return false;
    at_ = At::call;
    if (text.front() == ']') {
      text.remove_prefix(1);
      at_ = At::behind;
    }
    call_ = CallReader();
    return true;
  }

  bool read_call(std::string_view& text, bool last, Output& out) {
    const CallReader::Status status = call_.read_all(text, last, out);
    if (status == CallReader::Status::more) return false;
    at_ = status == CallReader::Status::broken ? At::content : At::list;
    if (at_ == At::content) out.content(call_.raw());
    return true;
  }

  bool read_name(std::string_view& text, bool last, Output& out) {
    const FoundMarker found = find_first(text, kBehindName);
    if (found.at == std::string_view::npos) {
      // A name that never ends is content.
      if (!last && text.size() <= 2 * kMaxName) return false;
      at_ = At::content;
      return true;
    }
    std::string_view name = text.substr(0, found.at);
    name = trimmed(name.substr(0, name.find("[CALL_ID]")));
    if (!is_name(name)) {
      at_ = At::content;
      return true;
    }
    out.begin_call(name);
    text.remove_prefix(found.at + (found.which == 0 ? kBehindName[0].size() : 0));
    arguments_ = {};
    at_ = At::arguments;
    return true;
  }

  static constexpr std::string_view kMark = "[TOOL_CALLS]";
  static constexpr std::array<std::string_view, 2> kBehindName{"[ARGS]", "{"};
  At at_ = At::content;
  CallReader call_;
  ArgumentsReader arguments_;
};

// The name of functions.name:number, or of a name alone.
std::string_view without_number(std::string_view id) {
  constexpr std::string_view kPrefix = "functions.";
  if (!id.starts_with(kPrefix)) return id;
  id.remove_prefix(kPrefix.size());
  return id.substr(0, id.rfind(':'));
}

// Begin, name (behind "function" and a separator, and with the JSON in a block of code, or alone,
// or as functions.name:number), separator, JSON, end.
class FramedStage final : public Stage {
 public:
  explicit FramedStage(const FramedMarks& marks)
      : separator_(marks.separator),
        end_(marks.call_end),
        marks_{marks.call_begin, marks.calls_begin, marks.calls_end, marks.call_end} {}

  bool read(std::string_view& text, bool last, Output& out) override {
    while (step(text, last, out)) {
    }
    return false;
  }

 private:
  enum class At : uint8_t { content, header, block, arguments, rest };

  bool step(std::string_view& text, bool last, Output& out) {
    switch (at_) {
      case At::content:
        return read_content(text, last, out);
      case At::header:
        return read_header(text, last, out);
      case At::block:
        return read_block(text, last, out);
      case At::arguments:
        if (!read_arguments(arguments_, text, last, out)) return false;
        at_ = At::rest;
        return true;
      case At::rest: {
        const FoundMarker found = find_first(text, {&end_, 1});
        const bool none = found.at == std::string_view::npos;
        text.remove_prefix(none ? (last ? text.size() : text.size() - open_tail(text, {&end_, 1}))
                                : found.at + end_.size());
        if (!none) at_ = At::content;
        return !none;
      }
    }
    return false;
  }

  bool read_content(std::string_view& text, bool last, Output& out) {
    if (any_) text.remove_prefix(leading_space(text));
    const auto mark = emit_until(text, marks_, last, &Output::content, out);
    if (mark == size_t{0}) at_ = At::header;
    return mark.has_value();
  }

  bool read_header(std::string_view& text, bool last, Output& out) {
    const size_t at = text.find(separator_);
    if (at == std::string_view::npos) {
      if (!last && text.size() <= kMaxHeader) return false;
      at_ = At::content;
      return true;
    }
    const std::string_view head = trimmed(text.substr(0, at));
    text.remove_prefix(at + separator_.size());
    any_ = true;
    arguments_ = {};
    at_ = At::block;
    if (head == "function") return true;
    out.begin_call(without_number(head));
    at_ = At::arguments;
    return true;
  }

  // name, line break, ```json, line break
  bool read_block(std::string_view& text, bool last, Output& out) {
    const size_t brace = text.find('{');
    if (brace == std::string_view::npos) {
      if (!last && text.size() <= kMaxHeader) return false;
      at_ = At::content;
      return true;
    }
    std::string_view name = text.substr(0, brace);
    name = trimmed(name.substr(0, name.find("```")));
    out.begin_call(name);
    text.remove_prefix(brace);
    at_ = At::arguments;
    return true;
  }

  static constexpr size_t kMaxHeader = 2 * kMaxName;
  const std::string_view separator_, end_;
  const std::array<std::string_view, 4> marks_;
  At at_ = At::content;
  ArgumentsReader arguments_;
  bool any_ = false;
};

}  // namespace

std::unique_ptr<Stage> mistral_stage() {
  return std::make_unique<MistralStage>();
}

std::unique_ptr<Stage> framed_stage(const FramedMarks& marks) {
  return std::make_unique<FramedStage>(marks);
}

}  // namespace rbee::text

#pragma once
// Finds calls without the marks of the model's form: a JSON object at the beginning of a line that
// names an offered function. It may be bare, in a fence of three backticks, or between another
// form's marks. Internal to the folder.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/output/call_reader.h"
#include "rbee/text/output/output_parser.h"

namespace rbee::text {

// Follows a JSON value, which may be a call or an array of calls, to its end.
class LooseValue {
 public:
  enum class Is : uint8_t { open, whole, no_call };
  Is next(char c, const std::vector<OutputFunction>& functions);

 private:
  Is inside(char c);
  Is begin(char c);
  Is end_member(const std::vector<OutputFunction>& functions);
  bool at_member() const { return depth_ == level_; }

  int depth_ = 0, level_ = 1;  // level: of the calls' own members
  char quote_ = 0;             // of the text that is open
  bool escaped_ = false, wants_key_ = false;
  std::string last_;  // the last text among the calls' own members
  std::string key_;   // of the member that is open
};

// Sits between a form's content and the output, and holds text back only while it may be a call.
class LooseCalls {
 public:
  // one: calls after the first are content.
  LooseCalls(std::vector<OutputFunction> functions, bool one)
      : functions_(std::move(functions)), one_(one) {}

  void push(std::string_view text, Output& out);
  // Call this at the end of the text, or before a call in the model's own form: held text is
  // content.
  void finish(Output& out);
  // Whether a call of this kind has begun.
  bool calling() const { return calling_; }

 private:
  enum class At : uint8_t {
    line,    // nothing but blanks since the line began
    text,    // within a line
    opener,  // of a fence, or another form's mark
    info,    // the rest of the fence's line
    inside,  // after the opener, only blanks so far
    value,   // of JSON
    after,   // a call
    skip,    // a value that is no call
    fence,   // a fence without a call
  };
  void take(char c, Output& out);
  void take_line(char c, Output& out);
  void take_opener(char c, Output& out);
  void take_inside(char c, Output& out);
  void take_value(char c, Output& out);
  void take_after_calls(char c, Output& out);
  void take_skipped(char c, Output& out);
  void take_fence(char c, Output& out);
  void begin_value(char c, Output& out);
  void no_call(Output& out);
  bool emit_calls(Output& out);
  void give_up(At next, Output& out);

  const std::vector<OutputFunction> functions_;
  const bool one_;
  bool calling_ = false;  // calls are told just now
  bool over_ = false;     // one call has come, and one is wanted
  At at_ = At::line;
  std::string held_;               // blanks, then what may be a call
  size_t opener_ = 0, value_ = 0;  // where they begin in what is held
  std::string_view closer_;        // of the opener; empty: there is none
  LooseValue scan_;
  JsonEnd skipped_;
  std::string line_;  // of a fence without a call: how it begins
};

}  // namespace rbee::text

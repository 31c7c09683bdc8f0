#pragma once
// One stage of parsing a model's text. Internal to the folder.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/text/output/output_parser.h"

namespace rbee::text {

class LooseCalls;
struct XmlForm;

// Collects results and joins pieces of the same kind.
class Output {
 public:
  Output();
  ~Output();
  // From now on, finds calls of these functions in the content; one: only the first.
  void find_calls(std::vector<OutputFunction> functions, bool one);

  void content(std::string_view text);
  // Adds content without searching it for calls.
  void plain(std::string_view text) { add(OutputDelta::Kind::content, text); }
  void reasoning(std::string_view text) { add(OutputDelta::Kind::reasoning, text); }
  void begin_call(std::string_view name);
  void arguments(std::string_view json) { add(OutputDelta::Kind::call_arguments, json); }
  void end_call() { ++whole_; }
  // Call this at the end of the text.
  void finish();
  int32_t whole_calls() const { return whole_; }
  std::vector<OutputDelta> take() { return std::exchange(deltas_, {}); }

 private:
  void add(OutputDelta::Kind kind, std::string_view text);

  std::unique_ptr<LooseCalls> loose_;  // null: no search for calls
  std::vector<OutputDelta> deltas_;
  int32_t calls_ = 0;
  int32_t whole_ = 0;
};

class Stage {
 public:
  virtual ~Stage() = default;
  // Removes the part that it has decided from the front of `text`; if `last`, the text is complete
  // and it removes all. True if the stage is over: the rest belongs to the next stage.
  virtual bool read(std::string_view& text, bool last, Output& out) = 0;
  // Whether the text that follows is reasoning.
  virtual bool reasons() const { return false; }
};

// Emits the text before the first marker, without blanks at its end, and removes it and the marker
// from `text`. Nothing if there is no marker yet: then it emits what cannot belong to one.
std::optional<size_t> emit_until(std::string_view& text, std::span<const std::string_view> markers,
                                 bool last, void (Output::*emit)(std::string_view), Output& out);

std::unique_ptr<Stage> thinking_stage(ReasoningMarks marks, bool open);
std::unique_ptr<Stage> harmony_stage();
std::unique_ptr<Stage> plain_stage();  // everything is content
std::unique_ptr<Stage> hermes_stage();
std::unique_ptr<Stage> llama_stage(std::vector<OutputFunction> functions);
std::unique_ptr<Stage> mistral_stage();
// marks and form: must outlive the stage.
std::unique_ptr<Stage> framed_stage(const FramedMarks& marks);
std::unique_ptr<Stage> xml_stage(const XmlForm& form, std::vector<OutputFunction> functions);

}  // namespace rbee::text

#pragma once
// A part of the way through a model's text. Internal to the folder.

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

// Collects what is decided; pieces of one thing are joined.
class Output {
 public:
  Output();
  ~Output();
  // From now on calls of these functions are found in the content; one: the first alone.
  void find_calls(std::vector<OutputFunction> functions, bool one);

  void content(std::string_view text);
  // Content in which no calls are looked for.
  void plain(std::string_view text) { add(OutputDelta::Kind::content, text); }
  void reasoning(std::string_view text) { add(OutputDelta::Kind::reasoning, text); }
  void begin_call(std::string_view name);
  void arguments(std::string_view json) { add(OutputDelta::Kind::call_arguments, json); }
  void end_call() { ++whole_; }
  // No more comes.
  void finish();
  int32_t whole_calls() const { return whole_; }
  std::vector<OutputDelta> take() { return std::exchange(deltas_, {}); }

 private:
  void add(OutputDelta::Kind kind, std::string_view text);

  std::unique_ptr<LooseCalls> loose_;  // null: none are looked for
  std::vector<OutputDelta> deltas_;
  int32_t calls_ = 0;
  int32_t whole_ = 0;
};

class Stage {
 public:
  virtual ~Stage() = default;
  // Takes what it has decided about from the front of `text`; last: no more comes, so all of it.
  // True when the stage is over, and what is left is the next one's.
  virtual bool read(std::string_view& text, bool last, Output& out) = 0;
  // What comes next is reasoning.
  virtual bool reasons() const { return false; }
};

// Emits text up to the first marker by `emit`, without blanks in front of the marker, and takes it
// with the marker. Absent while none is there: then what cannot belong to one is emitted.
std::optional<size_t> emit_until(std::string_view& text, std::span<const std::string_view> markers,
                                 bool last, void (Output::*emit)(std::string_view), Output& out);

std::unique_ptr<Stage> thinking_stage(ReasoningMarks marks, bool open);
std::unique_ptr<Stage> harmony_stage();
std::unique_ptr<Stage> plain_stage();  // all is content
std::unique_ptr<Stage> hermes_stage();
std::unique_ptr<Stage> llama_stage(std::vector<OutputFunction> functions);
std::unique_ptr<Stage> mistral_stage();
std::unique_ptr<Stage> deepseek_stage();
std::unique_ptr<Stage> xml_stage(std::vector<OutputFunction> functions);

}  // namespace rbee::text

#pragma once
// Splits a model's text, while it arrives, into reasoning, answer and function calls, without their
// marks. The joined results do not depend on how the text is cut into pieces.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/output/output_format.h"

namespace rbee::text {

struct OutputDelta {
  enum class Kind : uint8_t { content, reasoning, call_begin, call_arguments };
  Kind kind = Kind::content;
  std::string text;   // of call_begin the function's name, of call_arguments a piece of JSON
  int32_t call = -1;  // for call_begin and call_arguments: the call's number, from 0
  friend bool operator==(const OutputDelta&, const OutputDelta&) = default;
};

// A function that the request offers to the model.
struct OutputFunction {
  std::string name;
  std::string parameters;  // JSON schema; may be empty
};

struct OutputParserOptions {
  OutputFormat format;                    // tools: none if the request wants no calls
  bool reasoning_open = false;            // the prompt ends inside the reasoning
  std::vector<OutputFunction> functions;  // an unmarked call counts only if it names one of them
  bool calls_only = false;  // the answer is only calls, emitted while they are written
  bool one_call = false;    // unmarked calls after the first are content
};

class Stage;
class Output;

class OutputParser {
 public:
  explicit OutputParser(const OutputParserOptions& options);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  // Gives what can be decided so far. `text` must be whole UTF-8 characters, with marks that are
  // special tokens.
  std::vector<OutputDelta> push(std::string_view text);
  // Gives the rest at the end of the text. An incomplete mark is text.
  std::vector<OutputDelta> finish();
  // The number of complete calls.
  int32_t whole_calls() const;
  // Whether the text so far ends inside the reasoning.
  bool reasons() const;

 private:
  std::vector<OutputDelta> run(bool last);

  std::vector<std::unique_ptr<Stage>> stages_;  // the first one reads; after its end, the next
  std::unique_ptr<Output> output_;
  std::string held_;
};

// Whether the parser needs special tokens with this text.
bool is_output_mark(const OutputFormat& format, std::string_view special);

}  // namespace rbee::text

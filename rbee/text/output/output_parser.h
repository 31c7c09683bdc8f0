#pragma once
// Takes apart what a model writes, piece by piece: reasoning, answer and calls of functions. Marks
// are in none of them. What comes out, joined, does not depend on how the text is cut.

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
  int32_t call = -1;  // of the latter two: which, from 0
  friend bool operator==(const OutputDelta&, const OutputDelta&) = default;
};

// A function that the model was told of.
struct OutputFunction {
  std::string name;
  std::string parameters;  // JSON schema; may be empty
};

struct OutputParserOptions {
  OutputFormat format;                    // tools: none where no calls are wanted
  bool reasoning_open = false;            // the prompt ends inside of the reasoning
  std::vector<OutputFunction> functions;  // an unmarked call counts where it names one of them
  bool calls_only = false;  // the answer is calls, which go out while they are written
  bool one_call = false;    // unmarked calls behind the first are content
};

class Stage;
class Output;

class OutputParser {
 public:
  explicit OutputParser(const OutputParserOptions& options);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  // What is decided by now. Text: whole UTF-8 characters, marks that are special tokens included.
  std::vector<OutputDelta> push(std::string_view text);
  // The rest, once no more comes. A mark that is not whole is text.
  std::vector<OutputDelta> finish();
  // Calls whose end has come.
  int32_t whole_calls() const;
  // The text so far ends inside of the reasoning.
  bool reasons() const;

 private:
  std::vector<OutputDelta> run(bool last);

  std::vector<std::unique_ptr<Stage>> stages_;  // the first reads; when it is over, the next
  std::unique_ptr<Output> output_;
  std::string held_;
};

// Whether the parser has to see a special token of this text.
bool is_output_mark(const OutputFormat& format, std::string_view special);

}  // namespace rbee::text

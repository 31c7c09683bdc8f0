#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/output/xml_form.h"

namespace rbee::engine {

// The marks of a form of calls that tokenizers have as special tokens.
inline std::vector<std::string> marks_of(text::ToolFormat format) {
  const auto texts = [](std::initializer_list<std::string_view> all) {
    return std::vector<std::string>(all.begin(), all.end());
  };
  switch (format) {
    case text::ToolFormat::hermes:
      return {"<tool_call>", "</tool_call>"};
    case text::ToolFormat::llama3:
      return {"<|python_tag|>"};
    case text::ToolFormat::mistral:
      return {"[TOOL_CALLS]"};
    case text::ToolFormat::mistral_named:
      return {"[TOOL_CALLS]", "[ARGS]"};
    case text::ToolFormat::deepseek_v3:
    case text::ToolFormat::deepseek_v31:
    case text::ToolFormat::kimi_k2: {
      const text::FramedMarks& marks = text::framed_marks(format);
      return texts(
          {marks.calls_begin, marks.calls_end, marks.call_begin, marks.call_end, marks.separator});
    }
    case text::ToolFormat::seed_oss:
    case text::ToolFormat::minimax_m2:
      return texts({text::xml_form(format)->open, text::xml_form(format)->close});
    case text::ToolFormat::glm45:
      return {"<tool_call>", "</tool_call>", "<arg_key>",
              "</arg_key>",  "<arg_value>",  "</arg_value>"};
    case text::ToolFormat::harmony:
      return {"<|start|>",     "<|channel|>", "<|message|>", "<|end|>",
              "<|constrain|>", "<|call|>",    "<|return|>"};
    default:
      return {};
  }
}

}  // namespace rbee::engine

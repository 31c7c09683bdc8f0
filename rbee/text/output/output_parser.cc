#include "rbee/text/output/output_parser.h"

#include <algorithm>
#include <array>

#include "rbee/text/output/stage.h"
#include "rbee/text/output/xml_form.h"

namespace rbee::text {
namespace {

std::unique_ptr<Stage> call_stage(const OutputParserOptions& options) {
  switch (options.format.tools) {
    case ToolFormat::hermes:
      return hermes_stage();
    case ToolFormat::llama3:
      return llama_stage(options.functions);
    case ToolFormat::mistral:
    case ToolFormat::mistral_named:
      return mistral_stage();
    case ToolFormat::deepseek_v3:
    case ToolFormat::deepseek_v31:
    case ToolFormat::kimi_k2:
      return framed_stage(framed_marks(options.format.tools));
    case ToolFormat::qwen3_coder:
    case ToolFormat::seed_oss:
    case ToolFormat::minimax_m2:
    case ToolFormat::glm45:
      return xml_stage(*xml_form(options.format.tools), options.functions);
    case ToolFormat::harmony:
      return harmony_stage();
    case ToolFormat::generic:
      if (options.calls_only) return llama_stage(options.functions);
      break;
    case ToolFormat::none:
      break;
  }
  return plain_stage();
}

bool is_harmony(const OutputFormat& format) {
  return format.reasoning == ReasoningFormat::harmony || format.tools == ToolFormat::harmony;
}

std::vector<std::string_view> marks(const OutputFormat& format) {
  if (is_harmony(format)) {
    return {"<|start|>",     "<|channel|>", "<|message|>", "<|end|>",
            "<|constrain|>", "<|call|>",    "<|return|>"};
  }
  std::vector<std::string_view> out;
  if (const auto around = marks_of(format.reasoning)) out = {around->open, around->close};
  const auto add = [&](std::initializer_list<std::string_view> more) {
    out.insert(out.end(), more);
  };
  switch (format.tools) {
    case ToolFormat::hermes:
    case ToolFormat::qwen3_coder:
      add({"<tool_call>", "</tool_call>"});
      break;
    case ToolFormat::seed_oss:
    case ToolFormat::minimax_m2: {
      const XmlForm& form = *xml_form(format.tools);
      add({form.open, form.close});
      break;
    }
    case ToolFormat::glm45: {
      const XmlForm& form = *xml_form(format.tools);
      add({form.function, form.function_end, form.parameter, form.key_end, form.value,
           form.value_end});
      break;
    }
    case ToolFormat::llama3:
      add({"<|python_tag|>"});
      break;
    case ToolFormat::mistral:
    case ToolFormat::mistral_named:
      add({"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"});
      break;
    case ToolFormat::deepseek_v3:
    case ToolFormat::deepseek_v31:
    case ToolFormat::kimi_k2: {
      const FramedMarks& all = framed_marks(format.tools);
      add({all.calls_begin, all.calls_end, all.call_begin, all.call_end, all.separator});
      break;
    }
    case ToolFormat::harmony:
    case ToolFormat::generic:
    case ToolFormat::none:
      break;
  }
  return out;
}

}  // namespace

OutputParser::OutputParser(const OutputParserOptions& options)
    : output_(std::make_unique<Output>()) {
  if (is_harmony(options.format)) {
    stages_.push_back(harmony_stage());
    return;
  }
  if (const auto around = marks_of(options.format.reasoning)) {
    stages_.push_back(thinking_stage(*around, options.reasoning_open));
  }
  stages_.push_back(call_stage(options));
  if (options.format.tools != ToolFormat::none && !options.functions.empty()) {
    output_->find_calls(options.functions, options.one_call);
  }
}

OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;

std::vector<OutputDelta> OutputParser::push(std::string_view text) {
  held_ += text;
  return run(false);
}

std::vector<OutputDelta> OutputParser::finish() {
  return run(true);
}

int32_t OutputParser::whole_calls() const {
  return output_->whole_calls();
}

std::vector<OutputDelta> OutputParser::run(bool last) {
  std::string_view text = held_;
  while (stages_.front()->read(text, last, *output_)) stages_.erase(stages_.begin());
  held_.erase(0, held_.size() - text.size());
  if (last) output_->finish();
  return output_->take();
}

bool OutputParser::reasons() const {
  return stages_.front()->reasons();
}

bool is_output_mark(const OutputFormat& format, std::string_view special) {
  return std::ranges::count(marks(format), special) > 0;
}

}  // namespace rbee::text

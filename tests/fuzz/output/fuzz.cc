// A model's output in any form: the first byte chooses the form and where the text is cut. The
// joined result must be the same for the whole text and for its pieces.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rbee/text/output/output_parser.h"

namespace {

using namespace rbee::text;

constexpr int kTools = 10, kReasoning = 4;

std::string joined(const OutputParserOptions& options, std::string_view text, size_t piece) {
  OutputParser parser(options);
  std::string out;
  std::optional<OutputDelta> before;
  const auto add = [&](const std::vector<OutputDelta>& deltas) {
    for (const OutputDelta& delta : deltas) {
      const bool joins = before && delta.kind == before->kind && delta.call == before->call &&
                         delta.kind != OutputDelta::Kind::call_begin;
      if (!joins) out += {'\0', static_cast<char>('0' + static_cast<int>(delta.kind))};
      out += delta.text;
      before = delta;
    }
  };
  for (size_t at = 0; at < text.size(); at += piece) add(parser.push(text.substr(at, piece)));
  add(parser.finish());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const OutputParserOptions options{
      .format = {.tools = static_cast<ToolFormat>(data[0] % kTools),
                 .reasoning = static_cast<ReasoningFormat>(data[1] % kReasoning)},
      .reasoning_open = data[0] >= 128,
      .functions = {{"f", R"({"properties": {"a": {"type": "string"}}})"}},
      .calls_only = data[1] >= 128,
      .one_call = data[1] % 128 >= 64};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = joined(options, text, text.size() + 1);
  if (joined(options, text, 1) != whole || joined(options, text, 3) != whole) {
    throw std::logic_error("a cut changes what comes out");
  }
  return 0;
}

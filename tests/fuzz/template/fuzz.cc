// A chat template of any bytes, rendered with a conversation; after a zero byte the input may set
// its own variables.

#include <cstdint>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/text/template/chat_template.h"
#include "tests/fuzz/expect_reason.h"

namespace {

constexpr std::string_view kVariables = R"({
  "messages": [{"role": "system", "content": "Be brief."},
               {"role": "user", "content": "Gr\u00f6\u00dfe? \ud83d\ude42"},
               {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function":
                   {"name": "f", "arguments": {"x": [1, 2.5, null, true]}}}]},
               {"role": "tool", "content": "{\"t\": 1}", "tool_call_id": "a"}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
  "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>",
  "s": "Hello, World",
  "u": "Gr\u00fc\u00dfe", "n": 5, "f": 2.5, "xs": [3, 1, 2], "d": {"b": 2, "a": 1}})";

// Small limits, so that the fuzzer tries many templates.
constexpr rbee::text::TemplateLimits kLimits = {
    .max_steps = 20'000, .max_output_bytes = 1 << 16, .max_memory_bytes = 1 << 22};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const bool own = zero != std::string_view::npos;
  try {
    const rbee::text::ChatTemplate chat(input.substr(0, zero), kLimits);
    chat.render(own ? input.substr(zero + 1) : kVariables);
  } catch (const rbee::Error& error) {
    rbee::fuzz::expect_reason(error);
  }
  return 0;
}

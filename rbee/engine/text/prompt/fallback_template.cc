#include "rbee/engine/text/prompt/fallback_template.h"

namespace rbee::engine {
namespace {

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
    "}}{% endif %}";

// Gemma has no system role: its text goes before the first user's.
constexpr std::string_view kGemma =
    "{{ bos_token }}{% set seen = namespace(system='') %}{% for message in messages %}"
    "{% if message['role'] == 'system' %}{% set seen.system = message['content'] + '\\n\\n' %}"
    "{% else %}{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else "
    "message['role']) + '\\n' + seen.system + (message['content'] | trim) + '<end_of_turn>\\n' }}"
    "{% set seen.system = '' %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

constexpr std::string_view kPhi3 =
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + "
    "'<|end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

}  // namespace

std::string_view fallback_chat_template(std::string_view architecture) {
  if (architecture.starts_with("gemma")) return kGemma;
  if (architecture.starts_with("phi3")) return kPhi3;
  return kChatMl;
}

}  // namespace rbee::engine

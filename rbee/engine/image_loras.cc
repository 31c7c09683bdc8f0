#include "rbee/engine/image_loras.h"

#include <charconv>

namespace rbee::engine {
namespace {

constexpr size_t kNone = std::string_view::npos;

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == kNone) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// What stands between "<lora:" and ">".
LoraUse use_of(std::string_view tag, std::string_view inside) {
  const size_t colon = inside.find(':');
  LoraUse out{.path = std::string(trimmed(inside.substr(0, colon)))};
  check(!out.path.empty(), "prompt", "\"", tag, "\" names no LoRA");
  if (colon == kNone) return out;
  const std::string_view digits = trimmed(inside.substr(colon + 1));
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), out.strength);
  check(error == std::errc{} && end == digits.data() + digits.size(), "prompt", "\"", tag,
        "\" has a strength that is no number");
  return out;
}

}  // namespace

PromptLoras split_loras(std::string_view prompt) {
  PromptLoras out;
  size_t at = 0;
  while (at < prompt.size()) {
    const std::string_view rest = prompt.substr(at);
    size_t head = 0;
    for (const std::string_view opening : {"<lora:", "<lyco:"}) {
      if (rest.starts_with(opening)) head = opening.size();
    }
    const size_t end = head == 0 ? kNone : rest.find('>');
    if (end == kNone) {
      out.prompt += prompt[at++];
      continue;
    }
    out.loras.push_back(use_of(rest.substr(0, end + 1), rest.substr(head, end - head)));
    at += end + 1;
  }
  return out;
}

PromptLoras prompt_loras(const ImageRequest& request) {
  PromptLoras out{.prompt = request.prompt, .loras = request.loras};
  if (request.prompt_rule == PromptRule::none) return out;
  PromptLoras named = split_loras(request.prompt);
  out.prompt = std::move(named.prompt);
  out.loras.insert(out.loras.end(), named.loras.begin(), named.loras.end());
  return out;
}

}  // namespace rbee::engine

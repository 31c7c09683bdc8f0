#include "rbee/engine/api/image_loras.h"

#include <cctype>
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

float strength_of(std::string_view tag, std::string_view digits) {
  float out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  check(
      error == std::errc{} && end == digits.data() + digits.size(), "prompt", "\"", tag,
      "\" has a strength that is no number; an adapter with : in its name goes by the field loras");
  return out;
}

// What stands behind a tag's name, by AUTOMATIC1111's rule: te=X, unet=X, or without names in that
// order. The text encoders' is the other's too where that has none.
struct Strengths {
  std::optional<float> text, unet;

  void take(std::string_view tag, std::string_view item, size_t place) {
    const size_t equals = item.find('=');
    const bool named = equals != kNone;
    const std::string_view name = named ? trimmed(item.substr(0, equals)) : std::string_view{};
    const std::string_view value = trimmed(named ? item.substr(equals + 1) : item);
    if (named ? name == "te" : place == 0) {
      text = strength_of(tag, value);
    } else if (named ? name == "unet" : place == 1) {
      unet = strength_of(tag, value);
    } else {
      fail(Code::unsupported, "prompt",
           cat("\"", tag, "\" has \"", item, "\", which is none of te=, unet= and two strengths"));
    }
  }
};

// The text between "<lora:" and ">".
LoraUse use_of(std::string_view tag, std::string_view inside) {
  size_t colon = inside.find(':');
  LoraUse out{.path = std::string(trimmed(inside.substr(0, colon)))};
  check(!out.path.empty(), "prompt", "\"", tag, "\" names no LoRA");
  Strengths strengths;
  for (size_t place = 0; colon != kNone;) {
    inside.remove_prefix(colon + 1);
    colon = inside.find(':');
    const std::string_view item = trimmed(inside.substr(0, colon));
    strengths.take(tag, item, place);
    if (item.find('=') == kNone) ++place;
  }
  out.strength = strengths.unet.value_or(strengths.text.value_or(1));
  if (strengths.unet) out.text_strength = strengths.text.value_or(1);
  return out;
}

// "<kind:inside>", as AUTOMATIC1111 finds its extra networks.
struct Tag {
  std::string kind;  // in lower case
  std::string_view whole, inside;
};

std::optional<Tag> tag_at(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!text.starts_with('<')) return std::nullopt;
  Tag out;
  size_t at = 1;
  for (; at < text.size() && is_word(text[at]); ++at) {
    out.kind += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
  }
  const size_t end = text.find('>', at);
  if (at == 1 || at == text.size() || text[at] != ':' || end == kNone) return std::nullopt;
  out.whole = text.substr(0, end + 1);
  out.inside = text.substr(at + 1, end - at - 1);
  return out;
}

}  // namespace

PromptLoras split_loras(std::string_view prompt) {
  PromptLoras out;
  // If a tag has no end, looking for it again and again would take long.
  const size_t last = prompt.rfind('>');
  for (size_t at = 0; at < prompt.size();) {
    const auto tag = last != kNone && at < last ? tag_at(prompt.substr(at)) : std::nullopt;
    if (!tag) {
      out.prompt += prompt[at++];
      continue;
    }
    if (tag->kind == "hypernet") {
      fail(Code::unsupported, "prompt", "\"", tag->whole, "\": hypernetworks are not implemented");
    }
    if (tag->kind == "lora" || tag->kind == "lyco") {
      out.loras.push_back(use_of(tag->whole, tag->inside));
    }
    at += tag->whole.size();
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

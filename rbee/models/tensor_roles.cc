#include "rbee/models/tensor_roles.h"

#include <charconv>

namespace rbee::models {
namespace {

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

}  // namespace

std::optional<int64_t> layer_of(std::string_view name) {
  for (const std::string_view mark : {"blk.", "layers."}) {
    const size_t at = name.find(mark);
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) continue;
    const char* const end = name.data() + name.size();
    int64_t layer = 0;
    const auto [rest, error] = std::from_chars(name.data() + at + mark.size(), end, layer);
    if (error == std::errc{} && rest != end && *rest == '.') return layer;
  }
  return std::nullopt;
}

bool is_of_prediction(std::string_view name) {
  return contains(name, ".nextn.") || contains(name, ".eh_proj.");
}

bool is_of_state(std::string_view name) {
  return contains(name, ".ssm_") || contains(name, ".linear_attn.");
}

bool is_expert(std::string_view name) {
  return contains(name, "_exps.") || contains(name, ".experts.");
}

bool is_token_table(std::string_view name) {
  return name.starts_with("token_embd.") || contains(name, "embed_tokens.");
}

bool is_output_matrix(std::string_view name) {
  return name.starts_with("output.") || contains(name, "lm_head.");
}

}  // namespace rbee::models

#include "tools/convert/recipe.h"

#include <algorithm>
#include <string>

#include "rbee/core/error.h"

namespace rbee::tools {
namespace {

using enum DType;

constexpr TensorRule kQ2K[] = {
    {Role::attn_v, Where::eight_experts, q8_0},      {Role::attn_v, Where::deep_shared_kv, q5_k},
    {Role::attn_v, Where::shared_kv, q4_k},          {Role::attn_v, Where::all, q3_k},
    {Role::attn_k, Where::eight_experts, q8_0},      {Role::ffn_down, Where::all, q3_k},
    {Role::attn_output, Where::eight_experts, q5_k}, {Role::attn_output, Where::all, q3_k},
};
constexpr TensorRule kQ2KS[] = {
    {Role::attn_v, Where::eight_experts, q8_0},  {Role::attn_v, Where::deep_widely_shared_kv, q5_k},
    {Role::attn_v, Where::shared_kv, q4_k},      {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::first_eighth, q4_k},
};
constexpr TensorRule kQ3KS[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::deep_shared_kv, q5_k},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::attn_output, Where::eight_experts, q5_k},
};
constexpr TensorRule kQ3KM[] = {
    {Role::attn_v, Where::eight_experts, q8_0}, {Role::attn_v, Where::deep_shared_kv, q5_k},
    {Role::attn_v, Where::first_two, q5_k},     {Role::attn_v, Where::all, q4_k},
    {Role::attn_k, Where::eight_experts, q8_0}, {Role::ffn_down, Where::first_sixteenth, q5_k},
    {Role::ffn_down, Where::all, q4_k},         {Role::attn_output, Where::eight_experts, q5_k},
    {Role::attn_output, Where::all, q4_k},
};
constexpr TensorRule kQ3KL[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::all, q5_k},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::all, q5_k},
    {Role::attn_output, Where::unless_eight_experts, q5_k},
};
constexpr TensorRule kQ4KS[] = {
    {Role::attn_v, Where::eight_experts, q8_0},  {Role::attn_v, Where::deep_shared_kv, q5_k},
    {Role::attn_v, Where::first_four, q5_k},     {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::first_eighth, q5_k}, {Role::attn_output, Where::eight_experts, q5_k},
};
constexpr TensorRule kQ4KM[] = {
    {Role::attn_v, Where::eight_experts, q8_0},  {Role::attn_v, Where::more_bits, q6_k},
    {Role::attn_v, Where::deep_shared_kv, q5_k}, {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::more_bits, q6_k},    {Role::attn_output, Where::eight_experts, q5_k},
};
constexpr TensorRule kQ5KM[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::more_bits, q6_k},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::more_bits, q6_k},
};
// Of files without rules of their own.
constexpr TensorRule kEightExperts[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_k, Where::eight_experts, q8_0},
};
constexpr TensorRule kQ40[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::first_eighth_weighted, q4_1},
};
constexpr TensorRule kQ50[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::first_eighth_weighted, q5_1},
};
constexpr TensorRule kIq4[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::shared_kv, q5_k},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::first_eighth_unweighted, q5_k},
    {Role::attn_output, Where::eight_experts, q5_k},
};
constexpr TensorRule kIq3M[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::deep_shared_kv, q5_k},
    {Role::attn_v, Where::all, q4_k},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::ffn_down, Where::first_eighth, q4_k},
    {Role::ffn_down, Where::more_bits_of_eight_experts, q4_k},
    {Role::attn_output, Where::eight_experts, q5_k},
    {Role::attn_output, Where::all, q4_k},
};
constexpr TensorRule kIq3S[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::deep_widely_shared_kv, q5_k},
    {Role::attn_v, Where::shared_kv, q4_k},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::attn_output, Where::eight_experts, q5_k},
};
constexpr TensorRule kIq3Xs[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::deep_widely_shared_kv, q5_k},
    {Role::attn_v, Where::shared_kv, q4_k},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::attn_k, Where::all, iq3_xxs},
    {Role::attn_q, Where::all, iq3_xxs},
    {Role::attn_output, Where::eight_experts, q5_k},
    {Role::ffn_gate, Where::middle, iq3_xxs},
    {Role::ffn_up, Where::middle, iq3_xxs},
};
constexpr TensorRule kIq3Xxs[] = {
    {Role::attn_v, Where::eight_experts, q8_0},
    {Role::attn_v, Where::deep_widely_shared_kv, q5_k},
    {Role::attn_v, Where::shared_kv, q4_k},
    {Role::attn_v, Where::unweighted, iq3_s},
    {Role::attn_k, Where::eight_experts, q8_0},
    {Role::attn_k, Where::all, iq2_s},
    {Role::attn_q, Where::all, iq2_s},
    {Role::ffn_down, Where::first_eighth_unweighted, q4_k},
    {Role::ffn_down, Where::unweighted, q3_k},
    {Role::attn_output, Where::eight_experts, q5_k},
    {Role::attn_output, Where::all, iq3_s},
};
// IQ2_S and IQ2_M
constexpr TensorRule kIq2S[] = {
    {Role::attn_v, Where::shared_kv_or_experts, q4_k}, {Role::attn_v, Where::all, iq3_s},
    {Role::attn_k, Where::eight_experts, q4_k},        {Role::ffn_down, Where::first_eighth, iq3_s},
    {Role::attn_output, Where::eight_experts, q5_k},   {Role::attn_output, Where::all, iq3_s},
};
constexpr TensorRule kIq2Xs[] = {
    {Role::attn_v, Where::shared_kv_or_experts, q4_k}, {Role::attn_v, Where::all, q2_k},
    {Role::attn_k, Where::eight_experts, q4_k},        {Role::ffn_down, Where::first_eighth, q2_k},
    {Role::attn_output, Where::eight_experts, q5_k},
};
constexpr TensorRule kIq1[] = {
    {Role::attn_v, Where::shared_kv_or_experts, q4_k}, {Role::attn_v, Where::all, q2_k},
    {Role::attn_k, Where::eight_experts, q4_k},        {Role::ffn_down, Where::first_eighth, q2_k},
    {Role::attn_output, Where::eight_experts, q5_k},   {Role::attn_output, Where::all, iq2_xxs},
};

// Numbers of general.file_type are llama.cpp's; it has none for whole files of q8_k.
constexpr Recipe kRecipes[] = {
    {"f32", f32, 0, {}},
    {"f16", f16, 1, {}},
    {"bf16", bf16, 32, {}},
    {"q8_0", q8_0, 7, {}},
    {"q8_k", q8_k, {}, {}},
    {"q6_k", q6_k, 18, kEightExperts},
    {"q5_k_m", q5_k, 17, kQ5KM},
    {"q5_k_s", q5_k, 16, kEightExperts},
    {"q5_1", q5_1, 9, kEightExperts},
    {"q5_0", q5_0, 8, kQ50},
    {"q4_k_m", q4_k, 15, kQ4KM},
    {"q4_k_s", q4_k, 14, kQ4KS},
    {"q4_1", q4_1, 3, kEightExperts},
    {"q4_0", q4_0, 2, kQ40},
    {"iq4_nl", iq4_nl, 25, kIq4},
    {"iq4_xs", iq4_xs, 30, kIq4},
    {"mxfp4", mxfp4, 38, {}},
    {"nvfp4", nvfp4, 39, kEightExperts},
    {"q3_k_l", q3_k, 13, kQ3KL},
    {"q3_k_m", q3_k, 12, kQ3KM},
    {"q3_k_s", q3_k, 11, kQ3KS},
    {"iq3_m", iq3_s, 27, kIq3M},
    {"iq3_s", iq3_s, 26, kIq3S},
    {"iq3_xs", iq3_s, 22, kIq3Xs, q6_k, {}, true},
    {"iq3_xxs", iq3_xxs, 23, kIq3Xxs, q5_k, iq3_s, true},
    {"q2_k", q2_k, 10, kQ2K},
    {"q2_k_s", q2_k, 21, kQ2KS},
    {"iq2_m", iq2_s, 29, kIq2S, q5_k, iq3_s, true},
    {"iq2_s", iq2_xs, 28, kIq2S, q5_k, iq3_s, true},
    {"iq2_xs", iq2_xs, 20, kIq2Xs, q5_k, q2_k, true},
    {"iq2_xxs", iq2_xxs, 19, kIq2Xs, q5_k, q2_k, true},
    {"tq2_0", tq2_0, 37, kEightExperts, q6_k, q4_k},
    {"tq1_0", tq1_0, 36, kEightExperts, q6_k, q4_k},
    {"iq1_m", iq1_m, 31, kIq1, q5_k, q2_k, true},
    {"iq1_s", iq1_s, 24, kIq1, q5_k, q2_k, true},
};

bool more_bits(const TensorPlace& place) {
  const int64_t eighth = place.layers / 8;
  return place.layer < eighth || place.layer >= 7 * place.layers / 8 ||
         (place.layer - eighth) % 3 == 2;
}

bool holds(Where where, const TensorPlace& place) {
  constexpr int64_t kDeep = 80, kWidely = 4;
  const int64_t eighth = place.layers / 8;
  switch (where) {
    case Where::all:
      return true;
    case Where::shared_kv:
      return place.gqa >= kWidely;
    case Where::shared_kv_or_experts:
      return place.gqa >= kWidely || place.experts >= kWidely;
    case Where::eight_experts:
      return place.experts == 8;
    case Where::unless_eight_experts:
      return place.experts != 8;
    case Where::deep_shared_kv:
      return place.layers == kDeep && place.gqa > 1;
    case Where::deep_widely_shared_kv:
      return place.layers == kDeep && place.gqa >= kWidely;
    case Where::more_bits:
      return more_bits(place);
    case Where::more_bits_of_eight_experts:
      return place.experts == 8 && more_bits(place);
    case Where::first_eighth:
      return place.layer < eighth;
    case Where::first_eighth_weighted:
      return place.layer < eighth && place.weighted;
    case Where::first_eighth_unweighted:
      return place.layer < eighth && !place.weighted;
    case Where::unweighted:
      return !place.weighted;
    case Where::middle:
      return place.layer >= eighth && place.layer < 7 * place.layers / 8;
    case Where::first_sixteenth:
      return place.layer < place.layers / 16;
    case Where::first_two:
      return place.layer < 2;
    case Where::first_four:
      return place.layer < 4;
  }
  return false;
}

}  // namespace

DType Recipe::type_of(const TensorPlace& place) const {
  const auto rule = std::ranges::find_if(rules, [&](const TensorRule& each) {
    return each.role == place.role && holds(each.where, place);
  });
  return rule == rules.end() ? base : rule->type;
}

std::span<const Recipe> recipes() {
  return kRecipes;
}

const Recipe& find_recipe(std::string_view name) {
  std::string wanted(name);
  std::ranges::transform(wanted, wanted.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (wanted == "q3_k" || wanted == "q4_k" || wanted == "q5_k") wanted += "_m";
  const auto found = std::ranges::find(kRecipes, wanted, &Recipe::name);
  if (found != std::end(kRecipes)) return *found;
  std::string known;
  for (const Recipe& each : kRecipes) known += cat(known.empty() ? "" : ", ", each.name);
  fail(Code::invalid_argument, "quantize", "'", name, "' is none of ", known);
}

}  // namespace rbee::tools

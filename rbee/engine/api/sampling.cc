#include "rbee/engine/api/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include "rbee/core/error.h"
#include "rbee/engine/api/fields.h"

namespace rbee::engine {
namespace {

constexpr auto kNames = std::to_array<std::pair<std::string_view, SamplerKind>>({
    {"penalties", SamplerKind::penalties},
    {"dry", SamplerKind::dry},
    {"top_n_sigma", SamplerKind::top_n_sigma},
    {"top_k", SamplerKind::top_k},
    {"typ_p", SamplerKind::typical_p},
    {"typical_p", SamplerKind::typical_p},
    {"top_p", SamplerKind::top_p},
    {"min_p", SamplerKind::min_p},
    {"xtc", SamplerKind::xtc},
    {"temperature", SamplerKind::temperature},
});

// Each kind has a name, which messages list.
constexpr bool all_named() {
  for (int i = 0; i <= static_cast<int>(SamplerKind::temperature); ++i) {
    const auto named = std::ranges::find(kNames, static_cast<SamplerKind>(i),
                                         [](const auto& entry) { return entry.second; });
    if (named == kNames.end()) return false;
    if (kSamplerNames.find(named->first) == std::string_view::npos) return false;
  }
  return true;
}
static_assert(all_named());

// NaN is in no range.
void check_range(const char* field, double value, double low, double high) {
  check(value >= low && value <= high, field, value, " is outside of ", low, " to ", high);
}

void check_texts(const char* field, const std::vector<std::string>& texts, size_t most) {
  check(texts.size() <= most, field, texts.size(), " texts are more than ", most);
  for (const std::string& text : texts) {
    check(!text.empty() && text.size() <= kMaxWordBytes, field, "a text of ", text.size(),
          " bytes is outside of 1 to ", kMaxWordBytes);
  }
}

void check_biases(const std::vector<LogitBias>& list) {
  check(list.size() <= kMaxBiases, "logit_bias", list.size(), " tokens are more than ", kMaxBiases);
  for (const LogitBias& entry : list) {
    check(entry.id >= 0 || !entry.text.empty(), "logit_bias", "a token is missing");
    if (entry.bias != -INFINITY) check_range("logit_bias", entry.bias, -kMaxBias, kMaxBias);
  }
}

void check_samplers(const std::vector<SamplerKind>& list) {
  check(list.size() <= kMaxSamplers, "samplers", list.size(), " are more than ", kMaxSamplers);
  bool cut = false;
  for (const SamplerKind kind : list) {
    const bool changes = kind == SamplerKind::penalties || kind == SamplerKind::dry;
    check(!changes || !cut, "samplers", "penalties and dry must come before all others");
    check(std::ranges::count(list, kind) == 1, "samplers", "one is named twice");
    cut |= !changes;
  }
}

}  // namespace

std::optional<SamplerKind> parse_sampler(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, [](const auto& entry) { return entry.first; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

std::string_view sampler_name(SamplerKind kind) {
  return std::ranges::find(kNames, kind, [](const auto& entry) { return entry.second; })->first;
}

void validate(const SamplingParams& sampling) {
  for (const SamplingField& field : sampling_fields()) {
    const std::string name(field.name);
    const auto check_value = [&]<typename T>(T SamplingParams::* member) {
      const T& value = sampling.*member;
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int32_t>) {
        check_range(name.c_str(), value, field.low, field.high);
        check(!field.above_low || value > field.low, name.c_str(), value, " is not above ",
              field.low);
      } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        check_texts(name.c_str(), value, static_cast<size_t>(field.high));
      }
    };
    std::visit(check_value, field.member);
  }
  check_biases(sampling.logit_bias);
  check_samplers(sampling.samplers);
}

}  // namespace rbee::engine

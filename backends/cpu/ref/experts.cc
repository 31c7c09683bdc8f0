#include "backends/cpu/ref/experts.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/cpu/ref/linear.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The indices of the `count` largest values, largest first, of equal ones the lower first.
std::vector<int32_t> largest(const std::vector<float>& values, int64_t count) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) {
    return values[static_cast<size_t>(i)] > values[static_cast<size_t>(j)];
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

std::vector<float> scores_of(const float* logits, int64_t experts, ExpertScore score) {
  std::vector<float> out(logits, logits + experts);
  if (score == ExpertScore::sigmoid) {
    for (float& x : out) x = 1 / (1 + std::exp(-x));
    return out;
  }
  float top = kLowest;
  for (const float x : out) top = std::max(top, x);
  double sum = 0;
  for (const float x : out) sum += std::exp(double{x} - double{top});
  for (float& x : out) x = static_cast<float>(std::exp(double{x} - double{top}) / sum);
  return out;
}

// Takes the experts out that are in none of the best groups.
void keep_best_groups(std::vector<float>& choice, const RouteExpertsArgs& args) {
  const auto groups = static_cast<size_t>(args.groups);
  const size_t size = choice.size() / groups;
  std::vector<float> scores(groups);
  for (size_t g = 0; g < groups; ++g) {
    const auto first = choice.begin() + static_cast<ptrdiff_t>(g * size);
    std::vector<float> members(first, first + static_cast<ptrdiff_t>(size));
    std::sort(members.begin(), members.end(), std::greater<>());
    scores[g] = members[0];
    if (args.group_score == GroupScore::two_best && size > 1) scores[g] += members[1];
  }
  const std::vector<int32_t> kept = largest(scores, args.kept_groups);
  for (size_t e = 0; e < choice.size(); ++e) {
    const auto group = static_cast<int32_t>(e / size);
    if (std::find(kept.begin(), kept.end(), group) == kept.end()) choice[e] = kLowest;
  }
}

void route_token(const RouteExpertsArgs& args, int64_t token) {
  const int64_t experts = args.logits.size(1), k = args.ids.size(1);
  const std::vector<float> scores =
      scores_of(args.logits.as<float>() + token * experts, experts, args.score);
  std::vector<float> choice = scores;
  for (size_t e = 0; e < choice.size(); ++e) {
    if (args.bias) choice[e] += args.bias.as<float>()[e];
    if (std::isnan(choice[e])) choice[e] = kLowest;
  }
  if (args.groups > 1) keep_best_groups(choice, args);
  const std::vector<int32_t> chosen = largest(choice, k);
  double sum = 0;
  for (const int32_t id : chosen) sum += double{scores[static_cast<size_t>(id)]};
  constexpr double kTiny = 1e-20;  // where all scores are 0
  const double factor = args.normalise ? double{args.scale} / (sum + kTiny) : double{args.scale};
  for (int64_t j = 0; j < k; ++j) {
    const int32_t id = chosen[static_cast<size_t>(j)];
    args.ids.as<int32_t>()[token * k + j] = id;
    args.weights.as<float>()[token * k + j] =
        static_cast<float>(double{scores[static_cast<size_t>(id)]} * factor);
  }
}

void run_route(const RouteExpertsArgs& args, Stream&) {
  for (int64_t token = 0; token < args.logits.size(0); ++token) route_token(args, token);
}

// Row `row` of a contiguous view of two axes, as a view of one row.
View row_of(const View& x, int64_t row) {
  View out = x;
  out.data = x.as<std::byte>() + row * x.size(1) * info(x.dtype).block_bytes;
  out.sizes[0] = 1;
  return out;
}

// A plain weight's matrix of one expert.
View matrix_of(const View& weight, int64_t expert) {
  View out = weight;
  out.data =
      weight.as<std::byte>() + expert * weight.size(1) * row_bytes(weight.dtype, weight.size(2));
  out.rank = 2;
  std::copy_n(weight.sizes + 1, 2, out.sizes);
  std::copy_n(weight.strides + 1, 2, out.strides);
  return out;
}

const char* refuse_linear(const ExpertLinearArgs& args) {
  for (const ExpertPart& part : args.parts) {
    if (part.weight.packing != 0) return "reads plain weights only";
  }
  return nullptr;
}

void run_linear(const ExpertLinearArgs& args, Stream& stream) {
  const int64_t choices = args.ids.numel();
  const int64_t each = choices == 0 ? 1 : choices / args.x.size(0);  // choices of a row of x
  for (int64_t i = 0; i < choices; ++i) {
    const int32_t expert = args.ids.as<int32_t>()[i];
    for (const ExpertPart& part : args.parts) {
      if (expert < 0) {
        const View row = row_of(part.y, i);
        std::memset(row.data, 0, static_cast<size_t>(row_bytes(row.dtype, row.size(1))));
        continue;
      }
      const LinearPart one{.weight = matrix_of(part.weight, expert),
                           .bias = part.bias ? row_of(part.bias, expert) : View{},
                           .y = row_of(part.y, i)};
      ref_linear.run({.x = row_of(args.x, i / each), .parts = {&one, 1}}, stream);
    }
  }
}

template <typename T>
void sum_tokens(const ExpertSumArgs& args) {
  const int64_t tokens = args.weights.size(0), k = args.weights.size(1), dim = args.y.size(1);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < dim; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < k; ++j) {
        sum += double{args.weights.as<float>()[t * k + j]} *
               double{load(args.x.as<T>()[(t * k + j) * dim + i])};
      }
      args.y.as<T>()[t * dim + i] = store<T>(sum);
    }
  }
}

void run_sum(const ExpertSumArgs& args, Stream&) {
  dispatch<float, f16, bf16>("expert_sum", args.x.dtype,
                             [&]<typename T>() { sum_tokens<T>(args); });
}

}  // namespace

const Impl<RouteExpertsArgs> ref_route_experts{"ref", never_refuse<RouteExpertsArgs>, run_route};
const Impl<ExpertLinearArgs> ref_expert_linear{"ref", refuse_linear, run_linear};
const Impl<ExpertSumArgs> ref_expert_sum{"ref", never_refuse<ExpertSumArgs>, run_sum};

}  // namespace rbee::cpu

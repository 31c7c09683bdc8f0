// The choice of experts, the order of choices by expert, and the sum of the chosen ones' results.
// All take little time beside the products between them.
#include "backends/gpu/portable.h"
#include "backends/shared/expert_params.h"

namespace rbee {
namespace gpu {

// The value in the order of numbers, above its place: the largest item has the largest value,
// and the first of equal ones. No item is 0.
RB_DEVICE u64 item_of(float x, i32 place) {
  const u32 bits = x == 0.0f ? 0u : bits_of_float(x);
  const u32 ascending = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<u64>(ascending) << 32 | (0xffffffffu - static_cast<u32>(place));
}
RB_DEVICE i32 place_of(u64 item) {
  return static_cast<i32>(0xffffffffu - static_cast<u32>(item));
}

// A value that largest() skips.
RB_DEVICE float taken() {
  return float_of_bits(0x7fc00000u);
}

// The place of the largest of `count` values.
template <int kWave>
RB_DEVICE i32 largest(const float* values, i32 count) {
  u64 best = 0;
  for (i32 i = static_cast<i32>(thread_x()); i < count; i += kWave) {
    const u64 item = is_nan(values[i]) ? u64{0} : item_of(values[i], i);
    best = item > best ? item : best;
  }
  return place_of(wave_reduce<kWave>(best, Max{}));
}

template <int kWave>
struct Router {
  const RouteExpertsParams& p;
  float* scores;  // (experts)
  float* choice;  // (experts)
  float* groups;  // (groups)
  i32* chosen;    // (chosen)

  RB_DEVICE void score(const float* logits) const {
    const i32 lane = static_cast<i32>(thread_x());
    float top = -infinity(), sum = 0;
    for (i32 e = lane; e < p.experts; e += kWave) top = logits[e] > top ? logits[e] : top;
    top = wave_max<kWave>(top);
    for (i32 e = lane; e < p.experts; e += kWave) sum += exp(logits[e] - top);
    sum = wave_sum<kWave>(sum);
    for (i32 e = lane; e < p.experts; e += kWave) {
      const float x = logits[e];
      const float score = p.sigmoid != 0 ? 1.0f / (1.0f + exp(-x)) : exp(x - top) / sum;
      const float with_bias = p.bias != nullptr ? score + p.bias[e] : score;
      scores[e] = score;
      choice[e] = is_nan(with_bias) ? -infinity() : with_bias;
    }
    barrier();
  }

  RB_DEVICE float group_score(i32 group, i32 size) const {
    float best = -infinity(), second = -infinity();
    for (i32 i = group * size; i < (group + 1) * size; ++i) {
      const float x = choice[i];
      if (x > best) {
        second = best;
        best = x;
      } else if (x > second) {
        second = x;
      }
    }
    return p.two_best != 0 && size > 1 ? best + second : best;
  }

  // Removes the experts outside the best groups.
  RB_DEVICE void keep_best_groups() const {
    const i32 lane = static_cast<i32>(thread_x());
    const i32 size = p.experts / p.groups;
    for (i32 g = lane; g < p.groups; g += kWave) groups[g] = group_score(g, size);
    barrier();
    for (i32 n = 0; n < p.kept_groups; ++n) {
      const i32 best = largest<kWave>(groups, p.groups);
      barrier();
      if (lane == 0) groups[best] = taken();
      barrier();
    }
    for (i32 e = lane; e < p.experts; e += kWave) {
      if (!is_nan(groups[e / size])) choice[e] = -infinity();
    }
    barrier();
  }

  RB_DEVICE void choose(i32* ids, float* weights) const {
    const i32 lane = static_cast<i32>(thread_x());
    float sum = 0;
    for (i32 n = 0; n < p.chosen; ++n) {
      const i32 best = largest<kWave>(choice, p.experts);
      sum += scores[best];
      barrier();
      if (lane == 0) {
        chosen[n] = best;
        choice[best] = taken();
      }
      barrier();
    }
    const float factor = p.normalise != 0 ? p.scale / (sum + 1e-20f) : p.scale;
    for (i32 n = lane; n < p.chosen; n += kWave) {
      ids[n] = chosen[n];
      weights[n] = scores[chosen[n]] * factor;
    }
  }
};

template <int kWave>
RB_DEVICE void route_experts(const RouteExpertsParams& p) {
  RB_SHARED float scores[kMostExperts];
  RB_SHARED float choice[kMostExperts];
  RB_SHARED float groups[kMostExperts];
  RB_SHARED i32 chosen[kMostExperts];
  const Router<kWave> router{p, scores, choice, groups, chosen};
  const i64 token = block_x();
  router.score(p.logits + token * p.experts);
  if (p.groups > 1) router.keep_best_groups();
  router.choose(p.ids + token * p.chosen, p.weights + token * p.chosen);
}

// All threads read the choices twice: to count each expert's, and to list them. The order of an
// expert's choices is random, since each row of a product is computed by
// itself.
RB_DEVICE void group_experts(const ExpertGroupsParams& p) {
  static_assert(kGroupThreads == kMostExperts, "a thread clears one count");
  RB_SHARED u32 next[kMostExperts];  // an expert's number of choices, then its next one's place
  const i32 thread = static_cast<i32>(thread_x());
  next[thread] = 0;
  barrier();
  for (i32 i = thread; i < p.choices; i += kGroupThreads) atomic_add(&next[p.ids[i]], 1u);
  barrier();
  if (thread == 0) {
    i32 start = 0, tile = 0;
    for (i32 e = 0; e < p.experts; ++e) {
      p.starts[e] = start;
      p.tiles[e] = tile;
      const i32 own = static_cast<i32>(next[e]);
      next[e] = static_cast<u32>(start);
      start += own;
      tile += (own + kExpertRows - 1) / kExpertRows;
    }
    p.starts[p.experts] = start;
    p.tiles[p.experts] = tile;
  }
  barrier();
  for (i32 i = thread; i < p.choices; i += kGroupThreads) {
    p.order[atomic_add(&next[p.ids[i]], 1u)] = i;
  }
}

template <class T>
RB_DEVICE void expert_sum(const ExpertSumParams& p) {
  for (i64 i = grid_thread(); i < p.tokens * p.dim; i += grid_threads()) {
    const i64 token = i / p.dim;
    const T* x = static_cast<const T*>(p.x) + token * p.chosen * p.dim + i % p.dim;
    const float* weights = p.weights + token * p.chosen;
    float sum = 0;
    for (i32 n = 0; n < p.chosen; ++n) sum = fma(weights[n], load_value(x[n * p.dim]), sum);
    static_cast<T*>(p.y)[i] = store_value<T>(sum);
  }
}

#define RB_ROUTE(lanes, wave) \
  RB_KERNEL(route_experts_##wave, lanes, RouteExpertsParams, (route_experts<lanes>(p)))
RB_WAVES(RB_ROUTE)
RB_KERNEL(expert_groups, kGroupThreads, ExpertGroupsParams, (group_experts(p)))
#define RB_SUM(dtype, T) \
  RB_KERNEL(expert_sum_##dtype, kExpertSumThreads, ExpertSumParams, (expert_sum<T>(p)))
RB_EACH_FLOAT(RB_SUM)

}  // namespace gpu
}  // namespace rbee

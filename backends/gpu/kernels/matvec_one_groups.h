#pragma once
// Shared by all one-row products, whatever reads their weights: a group's rows of weights
// (MatvecOneParams), and the destination of its two results.
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/gates.h"
#include "backends/gpu/kernels/matvec_heads.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

// Results in x's type T, biases and the residual too.
template <class T>
struct OneResult {
  RB_DEVICE static float bias(const MatvecOneParams&, const MatvecOnePart& part, i32 out) {
    return part.bias != nullptr ? load_value(static_cast<const T*>(part.bias)[out]) : 0.0f;
  }
  RB_DEVICE static float residual(const MatvecOneParams& p, i32 out) {
    return load_value(static_cast<const T*>(p.residual)[out]);
  }
  // What write() would leave of it.
  RB_DEVICE static float round(const MatvecOneParams&, float value) {
    return load_value(store_value<T>(value));
  }
  RB_DEVICE static void write(const MatvecOneParams&, void* y, i32 out, float value) {
    static_cast<T*>(y)[out] = store_value<T>(value);
  }
};

// The same for the type in the parameters.
struct AnyResult {
  RB_DEVICE static float bias(const MatvecOneParams& p, const MatvecOnePart& part, i32 out) {
    if (p.x_type == 0) return OneResult<float>::bias(p, part, out);
    if (p.x_type == 1) return OneResult<f16>::bias(p, part, out);
    return OneResult<bf16>::bias(p, part, out);
  }
  RB_DEVICE static float residual(const MatvecOneParams& p, i32 out) {
    if (p.x_type == 0) return OneResult<float>::residual(p, out);
    if (p.x_type == 1) return OneResult<f16>::residual(p, out);
    return OneResult<bf16>::residual(p, out);
  }
  RB_DEVICE static float round(const MatvecOneParams& p, float value) {
    if (p.x_type == 0) return value;
    return p.x_type == 1 ? OneResult<f16>::round(p, value) : OneResult<bf16>::round(p, value);
  }
  RB_DEVICE static void write(const MatvecOneParams& p, void* y, i32 out, float value) {
    if (p.x_type == 0) return OneResult<float>::write(p, y, out, value);
    if (p.x_type == 1) return OneResult<f16>::write(p, y, out, value);
    OneResult<bf16>::write(p, y, out, value);
  }
};

// A group's rows: the second is `step` after row `out`; for a gate it is a row of the other
// part.
struct OnePlace {
  MatvecOnePart part;
  i32 index;  // of the part
  i32 out;
  i32 step;
};

// The destination of one of a group's two results.
struct OneTarget {
  void* to;            // null: nothing
  i32 at;              // elements after it; -1: it is an element of a cache
  i32 pair;            // first row of one that may be rotated, else -1
  float bias, beside;  // of the result and of the group's other one
  float residual;
  HeadTurn turn;
};

// Places: HeadPlaces, or OwnHeadPlaces.
template <class Result, class Places = HeadPlaces>
class OneGroups {
 public:
  RB_DEVICE explicit OneGroups(const MatvecOneParams& p) : p_(p) {}

  // For rotations; all threads that call target() call it. With HeadPlaces done() shows them to the
  // others after the next barrier.
  RB_DEVICE void ask() {
    if (p_.append != 0) places_.ask(p_.heads);
  }
  RB_DEVICE void done() const {
    if (p_.append != 0) places_.done(p_.heads);
  }

  // Does not index parameters at run time: compilers would then not know that pointers lead to
  // device memory, and would use slower loads.
  RB_DEVICE OnePlace place_of(i32 group) const {
    OnePlace place{p_.parts[0], 0, group, 0};
    if (p_.gate != 0) return place;
    if (p_.part_count > 1) {
#pragma unroll
      for (int i = 1; i < kMatvecParts; ++i) {
        if (i >= p_.part_count || group < p_.parts[i].first_group) continue;
        place.part = p_.parts[i];
        place.index = i;
      }
    }
    const HeadRows rows = p_.append != 0
                              ? head_rows(p_.heads, place.part, group - place.part.first_group)
                              : HeadRows{(group - place.part.first_group) * kMatvecOuts, 1};
    place.out = rows.first;
    place.step = rows.step;
    return place;
  }

  // For the group's row `row`, 0 or 1, without data that earlier kernels may write. complete() adds
  // those, after the wait for these kernels and the barrier after done(). Called early, so that
  // only put() is left when the sums are ready.
  RB_DEVICE OneTarget target(i32 group, int row) const {
    OneTarget out{nullptr, 0, -1, 0, 0, 0, {1, 0}};
    if (group >= p_.groups) return out;
    const OnePlace place = place_of(group);
    const MatvecOnePart& part = place.part;
    if (p_.gate != 0) {
      if (row != 0) return out;
      out.beside = Result::bias(p_, p_.parts[1], place.out);
    }
    out.at = place.out + row * place.step;
    if (out.at >= part.outs) return out;
    out.bias = Result::bias(p_, part, out.at);
    out.to = part.y;
    if (p_.append == 0) return out;
    out.beside = Result::bias(p_, part, place.out + (1 - row) * place.step);
    if (part.kind != 2) {
      out.pair = place.out;
      if (Places::kEarly) turn(out, row);
    }
    if (part.kind == 0) return out;
    out.to = cache_element(p_.heads, part.kind - 1, places_.slot(), out.at);
    out.at = -1;
    return out;
  }
  RB_DEVICE void complete(OneTarget& target, int row) const {
    if (target.pair >= 0 && !Places::kEarly) turn(target, row);
    const bool adds = p_.residual != nullptr && p_.gate == 0 && target.to != nullptr;
    if (adds && p_.append == 0) target.residual = Result::residual(p_, target.at);
  }

  // The sum of the target's row; `other`: of the group's second.
  RB_DEVICE void put(const OneTarget& target, float sum, float other) const {
    if (target.to == nullptr) return;
    float result = sum + target.bias;
    if (p_.gate != 0) {
      const float up = other + target.beside;
      with_gate<float>(p_.gate - 1, [&](auto act) { result = act(result) * up; });
    } else if (p_.append == 0) {
      result += target.residual;
    } else {
      // Each is rounded as if it had been the result of an operation of its own.
      result = Result::round(p_, result);
      if (target.turn.sin != 0 || target.turn.cos != 1) {
        other = Result::round(p_, other + target.beside);
        result = Result::round(p_, result * target.turn.cos + other * target.turn.sin);
      }
      if (target.at < 0) return write_cache(p_.heads, target.to, result);
    }
    Result::write(p_, target.to, target.at, result);
  }

 private:
  RB_DEVICE void turn(OneTarget& target, int row) const {
    target.turn = places_.turn(p_.heads, pair_of(p_.heads, target.pair));
    if (row == 0) target.turn.sin = -target.turn.sin;
  }

  const MatvecOneParams& p_;
  Places places_;  // with append
};

}  // namespace gpu
}  // namespace rbee

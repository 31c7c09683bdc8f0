#pragma once
// Runs of neighbouring elements that threads stage in shared memory for matrices.

#include "backends/metal/kernels/simdgroup_matrix.h"

namespace rbee {
namespace gpu {

constexpr int kStagedRun = 8;  // elements of a line that a thread stages at a time

// A run as words of T. Vectors are read and written as a whole.
template <class T>
struct RunWords {
  static constexpr int kWords = kStagedRun * static_cast<int>(sizeof(T)) / 4;
  static constexpr int kEach = kWords < 4 ? kWords : 4;
  using Vector = u32 __attribute__((ext_vector_type(kEach)));
  u32 words[kWords];

  RB_DEVICE void clear() {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = 0;
  }
  RB_DEVICE void load(const T* from) {
#pragma unroll
    for (int first = 0; first < kWords; first += kEach) {
      const Vector part = reinterpret_cast<const Vector*>(from)[first / kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) words[first + i] = part[i];
    }
  }
  RB_DEVICE void store(T* to) const {
#pragma unroll
    for (int first = 0; first < kWords; first += kEach) {
      Vector part;
#pragma unroll
      for (int i = 0; i < kEach; ++i) part[i] = words[first + i];
      reinterpret_cast<Vector*>(to)[first / kEach] = part;
    }
  }
};

RB_DEVICE void set_run(RunWords<float>& to, const float (&values)[kStagedRun]) {
#pragma unroll
  for (int i = 0; i < kStagedRun; ++i) to.words[i] = bits_of_float(values[i]);
}
RB_DEVICE void set_run(RunWords<f16>& to, const float (&values)[kStagedRun]) {
#pragma unroll
  for (int i = 0; i < kStagedRun / 2; ++i) {
    to.words[i] = round_pair<f16>(values[2 * i], values[2 * i + 1]);
  }
}

}  // namespace gpu
}  // namespace rbee

#pragma once
// Host side of the element-wise kernels: walks views together, over as few axes as describe
// them. backends/gpu/tile.h is the device's side.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "backends/api/view.h"
#include "backends/gpu/launch.h"
#include "backends/shared/strided_params.h"

namespace rbee::gpu {

inline constexpr uint32_t kLoopThreads = 256;  // kTileThreads in tile.h

// kPerThread in tile.h, by the bytes of an element.
inline int elements_per_thread(int64_t bytes) {
  return bytes <= 2 ? 8 : static_cast<int>(16 / bytes);
}

// Axes innermost first; operand 0 decides their order.
template <int kOperands>
struct Loop {
  struct Operand {
    std::byte* data = nullptr;
    int64_t bytes = 0;  // of an element
    int64_t strides[kMaxRank] = {};
  };
  int rank = 0;
  int64_t sizes[kMaxRank] = {};
  std::array<Operand, kOperands> operands;

  int64_t count() const {
    int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product *= sizes[axis];
    return product;
  }
  void push_axis(int64_t size, const int64_t (&strides)[kOperands]) {
    for (int k = 0; k < kOperands; ++k) operands[k].strides[rank] = strides[k];
    sizes[rank++] = size;
  }
};

namespace detail {

// True if walking `inner` to its end is one step along `outer`, for every operand.
template <int kOperands>
bool joins(const Loop<kOperands>& loop, const int64_t (&outer)[kOperands]) {
  const int inner = loop.rank - 1;
  for (int k = 0; k < kOperands; ++k) {
    if (outer[k] != loop.operands[k].strides[inner] * loop.sizes[inner]) return false;
  }
  return true;
}

}  // namespace detail

// The views' common sizes are those of views[0]; others may have more axes after theirs (strides
// count). Axes of `skip` (bits) are left out.
template <int kOperands>
Loop<kOperands> loop_over(const View* const (&views)[kOperands], uint32_t skip = 0) {
  Loop<kOperands> loop;
  for (int k = 0; k < kOperands; ++k) {
    loop.operands[k].data = static_cast<std::byte*>(views[k]->data);
    loop.operands[k].bytes = info(views[k]->dtype).block_bytes;
  }
  const View& shape = *views[0];
  std::array<int, kMaxRank> order{};
  int axes = 0;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if ((skip >> axis & 1) == 0 && shape.sizes[axis] != 1) order[axes++] = axis;
  }
  // Neighbours in y make whole memory transactions of y.
  std::stable_sort(order.begin(), order.begin() + axes,
                   [&](int a, int b) { return shape.strides[a] < shape.strides[b]; });
  for (int i = 0; i < axes; ++i) {
    int64_t strides[kOperands];
    for (int k = 0; k < kOperands; ++k) strides[k] = views[k]->strides[order[i]];
    const int64_t size = shape.sizes[order[i]];
    if (loop.rank > 0 && detail::joins(loop, strides)) {
      loop.sizes[loop.rank - 1] *= size;
    } else {
      loop.push_axis(size, strides);
    }
  }
  return loop;
}

// Calls body(part, first) for pieces of at most `most` elements; `first`: the elements before the
// piece in the order of the whole.
template <int kOperands, typename Body>
void for_parts(const Loop<kOperands>& loop, Body&& body, int64_t most = int64_t{1} << 30,
               int64_t first = 0) {
  const int64_t count = loop.count();
  if (count == 0) return;
  if (count <= most) {
    body(loop, first);
    return;
  }
  const int outer = loop.rank - 1;
  const int64_t inner_count = count / loop.sizes[outer];
  const int64_t step = std::max<int64_t>(most / inner_count, 1);
  for (int64_t at = 0; at < loop.sizes[outer]; at += step) {
    Loop<kOperands> part = loop;
    part.sizes[outer] = std::min(step, loop.sizes[outer] - at);
    for (auto& operand : part.operands) operand.data += at * operand.strides[outer] * operand.bytes;
    if (part.sizes[outer] == 1) --part.rank;
    for_parts(part, body, most, first + at * inner_count);
  }
}

// True if threads may take `each` neighbours at once (Strided::packed).
template <int kOperands>
bool packs(const Loop<kOperands>& loop, int64_t each) {
  if (loop.rank == 0) return false;
  if (loop.rank > 1 && loop.sizes[0] % each != 0) return false;
  for (int k = 0; k < kOperands; ++k) {
    const auto& operand = loop.operands[k];
    if (operand.strides[0] == 0 && k > 0) continue;
    if (operand.strides[0] != 1) return false;
    const auto bytes = static_cast<uintptr_t>(std::min<int64_t>(each * operand.bytes, 16));
    if (reinterpret_cast<uintptr_t>(operand.data) % bytes != 0) return false;
    for (int axis = 1; axis < loop.rank; ++axis) {
      if (operand.strides[axis] % each != 0) return false;
    }
  }
  return true;
}

namespace detail {

// True if `times` neighbours of each of the first `moved` operands make one aligned element, and
// the others do not move along the inner axis.
template <int kOperands>
bool widens(const Loop<kOperands>& loop, int moved, int64_t times) {
  if (loop.sizes[0] % times != 0) return false;
  for (int k = 0; k < kOperands; ++k) {
    const auto& operand = loop.operands[k];
    if (k >= moved && operand.strides[0] != 0) return false;
    if (k >= moved) continue;
    const auto bytes = static_cast<uintptr_t>(times * operand.bytes);
    if (operand.strides[0] != 1 || reinterpret_cast<uintptr_t>(operand.data) % bytes != 0) {
      return false;
    }
    for (int axis = 1; axis < loop.rank; ++axis) {
      if (operand.strides[axis] % times != 0) return false;
    }
  }
  return true;
}

}  // namespace detail

// For operations that move elements as they are: turns neighbours of the first `moved` operands,
// which have one size, into elements of up to 16 bytes where layouts allow it. `steps`: strides
// that the loop does not hold and that must stay whole. Returns the old elements of a new one.
template <int kOperands>
int64_t widen(Loop<kOperands>& loop, int moved, std::initializer_list<int64_t> steps = {}) {
  if (loop.rank == 0) return 1;
  const auto fits = [&](int64_t times) {
    return detail::widens(loop, moved, times) &&
           std::all_of(steps.begin(), steps.end(), [&](int64_t s) { return s % times == 0; });
  };
  int64_t times = 16 / loop.operands[0].bytes;
  while (times > 1 && !fits(times)) times /= 2;
  if (times <= 1) return 1;
  loop.sizes[0] /= times;
  for (int k = 0; k < moved; ++k) {
    loop.operands[k].bytes *= times;
    for (int axis = 1; axis < loop.rank; ++axis) loop.operands[k].strides[axis] /= times;
  }
  return times;
}

// Kernels that move elements are named after the bytes of one: "copy_b4".
inline KernelName sized(std::string_view op, int64_t bytes) {
  return KernelName(op).part(bytes == 1   ? "b1"
                             : bytes == 2 ? "b2"
                             : bytes == 4 ? "b4"
                             : bytes == 8 ? "b8"
                                          : "b16");
}

// At most 2^30 elements.
template <int kOperands>
shared::Strided<kOperands> strided(const Loop<kOperands>& loop, bool packed) {
  shared::Strided<kOperands> space{};
  space.count = static_cast<uint32_t>(loop.count());
  space.rank = loop.rank;
  space.packed = packed ? 1 : 0;
  for (int axis = 0; axis < loop.rank; ++axis) {
    const int64_t size = std::max<int64_t>(loop.sizes[axis], 1);  // an empty sum's axes have 0
    space.sizes[axis] = shared::make_divider(static_cast<uint32_t>(size));
    for (int k = 0; k < kOperands; ++k) {
      space.strides[k][axis] = loop.operands[k].strides[axis];
    }
  }
  return space;
}

// One launch over a part: `each` elements a thread.
template <typename Params>
void launch_loop(Stream& stream, const char* op, const char* family, const KernelName& kernel,
                 int each, const Params& params, Writes writes = Writes::anything) {
  launch(stream,
         {.op = op,
          .family = family,
          .kernel = kernel,
          .grid = {.x = blocks_for(params.space.count, int64_t{kLoopThreads} * each)},
          .threads = kLoopThreads,
          .writes = writes},
         params);
}

}  // namespace rbee::gpu

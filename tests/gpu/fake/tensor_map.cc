#include "tests/gpu/fake/tensor_map.h"

#include "backends/cuda/driver_functions.h"

namespace rbee::fake {
namespace {

constexpr unsigned kMostSwizzled = 128;

std::string number(const char* what, uint64_t value) {
  return std::string(what) + " " + std::to_string(value);
}

// `inner`: elements of a row in shared memory.
std::string shared_fault(const TensorArgs& tensor, unsigned inner) {
  if (tensor.rank < 1 || tensor.rank > 5) return number("rank", tensor.rank);
  if (reinterpret_cast<uintptr_t>(tensor.data) % 16 != 0)
    return "an address that 16 does not divide";
  for (unsigned axis = 0; axis < tensor.rank; ++axis) {
    const uint64_t size = tensor.sizes[axis];
    if (size == 0 || size > uint64_t{1} << 32) return number("a size of", size);
    if (tensor.steps[axis] == 0 || tensor.steps[axis] > 8)
      return number("a step of", tensor.steps[axis]);
    if (axis == 0) continue;
    const uint64_t stride = tensor.strides[axis - 1];
    if (stride % 16 != 0 || stride >= uint64_t{1} << 40) return number("a stride of", stride);
  }
  const uint64_t row = inner * tensor.element;
  if (tensor.interleave != cuda::kNoInterleave) return "an interleaved layout, which nothing uses";
  if (row == 0 || row % 16 != 0) return number("rows of bytes:", row);
  if (tensor.swizzle == cuda::kSwizzle128 && row > kMostSwizzled) {
    return number("swizzled rows of bytes:", row);
  }
  return "";
}

}  // namespace

uint64_t TensorArgs::bytes() const {
  uint64_t out = sizes[0] * element;
  for (unsigned axis = 1; axis < rank; ++axis) out += (sizes[axis] - 1) * strides[axis - 1];
  return out;
}

std::string tiles_fault(const TensorArgs& tensor, const unsigned* box) {
  for (unsigned axis = 0; axis < tensor.rank; ++axis) {
    if (box[axis] == 0 || box[axis] > 256) return number("a box of", box[axis]);
  }
  return shared_fault(tensor, box[0]);
}

std::string pixels_fault(const TensorArgs& tensor, const int* lower, const int* upper,
                         unsigned channels, unsigned pixels) {
  if (tensor.rank < 3) return number("rank", tensor.rank);
  if (channels > 256) return number("channels", channels);
  if (pixels == 0 || pixels > 1024) return number("pixels", pixels);
  // Coordinates are 16, 8 and 5 bits for one, two and three axes.
  const int most = tensor.rank == 3 ? 1 << 15 : tensor.rank == 4 ? 1 << 7 : 1 << 4;
  for (unsigned axis = 0; axis + 2 < tensor.rank; ++axis) {
    for (const int corner : {lower[axis], upper[axis]}) {
      if (corner < -most || corner >= most) return "a corner at " + std::to_string(corner);
    }
  }
  return shared_fault(tensor, channels);
}

}  // namespace rbee::fake

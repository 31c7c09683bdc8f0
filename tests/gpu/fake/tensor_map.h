#pragma once
// The driver's rules for tensor maps (CUDA Driver API, "Tensor Map Object Management").

#include <cstdint>
#include <string>

namespace rbee::fake {

// The arguments that both forms share.
struct TensorArgs {
  uint64_t element = 0;  // bytes
  unsigned rank = 0;
  const void* data = nullptr;
  const uint64_t* sizes = nullptr;    // elements of each axis, the innermost first
  const uint64_t* strides = nullptr;  // bytes, of all axes but the innermost
  const unsigned* steps = nullptr;    // elements between fetched ones
  int interleave = 0, swizzle = 0;

  // From the first element to the end of the last.
  uint64_t bytes() const;
};

// Empty if the driver accepts it.
std::string tiles_fault(const TensorArgs& tensor, const unsigned* box);
std::string pixels_fault(const TensorArgs& tensor, const int* lower, const int* upper,
                         unsigned channels, unsigned pixels);

}  // namespace rbee::fake

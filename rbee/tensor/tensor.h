#pragma once
// Tensor: a shared buffer and a layout (shape and strides in elements). Copying a Tensor shares the
// buffer; views share it too. Only ops whose names end in `_` change values that were computed.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/api/device.h"
#include "backends/api/view.h"
#include "rbee/core/axis.h"
#include "rbee/core/error.h"

namespace rbee {

// Device memory with an owner: allocated from a device, or memory kept alive by `owner`.
class Buffer {
 public:
  // Allocates; throws out_of_memory naming the bytes and the device.
  Buffer(Device& device, size_t bytes);
  // Wraps memory, read-only or shared, that stays valid while `owner` lives.
  Buffer(Device& device, void* data, size_t bytes, std::shared_ptr<const void> owner);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return *device_; }
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_;
  Stream stream_;  // that it was allocated on and goes back to
  std::byte* data_;
  size_t bytes_;
  bool owned_;
  std::shared_ptr<const void> owner_;
};

class Tensor {
 public:
  Tensor() = default;  // undefined: an absent optional operand

  bool defined() const { return buffer_ != nullptr; }
  DType dtype() const { return view_.dtype; }
  int rank() const { return view_.rank; }
  Shape shape() const { return Shape(std::span(view_.sizes, static_cast<size_t>(view_.rank))); }
  Strides strides() const {
    return Strides(std::span(view_.strides, static_cast<size_t>(view_.rank)));
  }
  // Size of an axis; negative counts from the end. Throws invalid_argument out of range.
  int64_t dim(int axis) const;
  int64_t numel() const { return view_.numel(); }
  // All sizes at once: `const auto [rows, cols] = x.dims<2>();`. Throws if the rank differs.
  template <int N>
  std::array<int64_t, N> dims() const;
  uint8_t packing() const { return view_.packing; }
  bool contiguous() const { return view_.contiguous(); }
  int64_t bytes() const;  // of the elements, without gaps
  Device& device() const { return buffer_->device(); }
  Stream& stream() const;  // the device's current stream
  const View& view() const { return view_; }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  // Address of the first element; only where the device is host_accessible().
  template <typename T>
  T* data() const;

  // Views; no copy. Throw invalid_argument naming the shapes.
  Tensor reshape(const Shape& shape) const;  // x must be contiguous
  Tensor slice(Axis axis, int64_t start, int64_t length) const;
  // The last axis of size n becomes (outer, n / outer); any strides.
  Tensor split_last(int64_t outer) const;
  Tensor transpose(Axis a, Axis b) const;
  Tensor permute(std::initializer_list<int> order) const;
  Tensor unsqueeze(Axis axis) const;  // new axis of size 1 before `axis`
  Tensor squeeze(Axis axis) const;
  Tensor broadcast_to(const Shape& shape) const;

  // Copies a contiguous tensor to another device; returns *this if it is there already.
  Tensor to(Device& device) const;
  // Elements in row-major order, on the host. T must be the storage type of dtype().
  template <typename T>
  std::vector<T> to_host() const;

  static Tensor from_buffer(std::shared_ptr<Buffer> buffer, const View& view);

 private:
  std::shared_ptr<Buffer> buffer_;
  View view_;
};

// Row-major, uninitialised. Block types: the last size is a multiple of the block.
Tensor empty(const Shape& shape, DType dtype, Device& device);
Tensor empty_like(const Tensor& x);
// As empty(), but in page-locked host memory, which the device's kernels read over the bus.
Tensor empty_in_host_memory(const Shape& shape, DType dtype, Device& device);
Tensor zeros(const Shape& shape, DType dtype, Device& device);
// Copies host values; throws if their number differs from the shape's.
template <typename T>
Tensor from_host(std::span<const T> values, const Shape& shape, Device& device);
// Wraps mapped or foreign memory that lives as long as `owner`; row-major, CPU devices only.
Tensor from_memory(std::span<const std::byte> bytes, const Shape& shape, DType dtype,
                   Device& device, std::shared_ptr<const void> owner);

// "f32 (2, 3) on cpu:0"
std::string describe(const Tensor& x);
void append_to(std::string& out, const Tensor& x);

// Makes `stream` the current one of its device for this thread until destroyed. Memory allocated
// meanwhile belongs to the stream: `stream` must outlive the tensors, and their last use must be
// work of this stream.
class StreamScope {
 public:
  explicit StreamScope(Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Stream* previous_;
};

namespace detail {
void check_dims(const Tensor& x, int rank);
void check_storage(const Tensor& x, DType wanted, const char* op);
Tensor from_host_bytes(const void* values, size_t count, DType dtype, const Shape& shape,
                       Device& device);
void copy_to_host(const Tensor& x, void* out);
}  // namespace detail

template <int N>
std::array<int64_t, N> Tensor::dims() const {
  detail::check_dims(*this, N);
  std::array<int64_t, N> sizes;
  for (size_t i = 0; i < N; ++i) sizes[i] = view_.sizes[i];
  return sizes;
}

template <typename T>
T* Tensor::data() const {
  detail::check_storage(*this, kDTypeOf<T>, "data");
  RB_ASSERT(device().host_accessible());
  return static_cast<T*>(view_.data);
}

template <typename T>
std::vector<T> Tensor::to_host() const {
  detail::check_storage(*this, kDTypeOf<T>, "to_host");
  std::vector<T> out(static_cast<size_t>(numel()));
  if (!out.empty()) detail::copy_to_host(*this, out.data());
  return out;
}

template <typename T>
Tensor from_host(std::span<const T> values, const Shape& shape, Device& device) {
  return detail::from_host_bytes(values.data(), values.size(), kDTypeOf<T>, shape, device);
}

}  // namespace rbee

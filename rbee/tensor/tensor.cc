#include "rbee/tensor/tensor.h"

#include <cstring>

namespace rbee {
namespace {

thread_local Stream* current_stream = nullptr;

Stream& stream_of(Device& device) {
  const bool chosen = current_stream != nullptr && current_stream->device == &device;
  return chosen ? *current_stream : device.default_stream();
}

View row_major_view(void* data, const Shape& shape, DType dtype) {
  View view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int8_t>(shape.rank());
  const Strides strides = contiguous_strides(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    view.sizes[i] = shape[i];
    view.strides[i] = strides[i];
  }
  return view;
}

// Bytes of a row-major tensor; throws when a size is negative or anything overflows.
int64_t tensor_bytes(const Shape& shape, DType dtype) {
  const int64_t count = numel(shape);
  if (is_quantized(dtype)) {
    const int64_t last = shape.rank() > 0 ? shape[shape.rank() - 1] : 1;
    check(last % info(dtype).block_size == 0, "tensor", dtype, " (", shape,
          "): the last size is not a multiple of the block of ", info(dtype).block_size);
  }
  return row_bytes(dtype, count);
}

// Distance in bytes of an element offset; block types move by whole blocks.
int64_t offset_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& type = info(dtype);
  check(elements % type.block_size == 0, "slice", "offset ", elements,
        " is not a multiple of the block of ", type.name);
  return elements / type.block_size * type.block_bytes;
}

int resolve(Axis axis, const Tensor& x, const char* op) {
  const int i = axis.resolve(x.rank());
  check(i >= 0, op, "axis ", axis.index, " is outside of ", x);
  return i;
}

// Visits elements in row-major order and copies them one by one; host memory only.
void gather_host(const View& x, int axis, const std::byte* from, std::byte*& out) {
  const size_t element = static_cast<size_t>(info(x.dtype).block_bytes);
  if (axis == x.rank) {
    std::memcpy(out, from, element);
    out += element;
    return;
  }
  for (int64_t i = 0; i < x.sizes[axis]; ++i) {
    gather_host(x, axis + 1, from + i * x.strides[axis] * static_cast<int64_t>(element), out);
  }
}

// On the host an empty tensor has an address, since offsets from none are undefined.
std::byte* memory_of(Device& device, size_t bytes) {
  alignas(64) static std::byte nothing[64];
  if (bytes == 0) return device.host_accessible() ? nothing : nullptr;
  return static_cast<std::byte*>(device.allocate(bytes, stream_of(device)));
}

}  // namespace

Buffer::Buffer(Device& device, size_t bytes)
    : device_(&device),
      stream_(stream_of(device)),
      data_(memory_of(device, bytes)),
      bytes_(bytes),
      owned_(true) {}

Buffer::Buffer(Device& device, void* data, size_t bytes, std::shared_ptr<const void> owner)
    : device_(&device),
      stream_(device.default_stream()),
      data_(static_cast<std::byte*>(data)),
      bytes_(bytes),
      owned_(false),
      owner_(std::move(owner)) {}

Buffer::~Buffer() {
  if (owned_ && bytes_ > 0) device_->free(data_, bytes_, stream_);
}

Tensor Tensor::from_buffer(std::shared_ptr<Buffer> buffer, const View& view) {
  Tensor x;
  x.buffer_ = std::move(buffer);
  x.view_ = view;
  return x;
}

int64_t Tensor::dim(int axis) const {
  return view_.sizes[resolve(Axis{axis}, *this, "dim")];
}

int64_t Tensor::bytes() const {
  return row_bytes(dtype(), numel());
}

Stream& Tensor::stream() const {
  return stream_of(device());
}

Tensor Tensor::reshape(const Shape& shape) const {
  check(view_.packing == 0, "reshape", "a packed weight has no other shape");
  check(contiguous(), "reshape", *this, " is not contiguous");
  check(rbee::numel(shape) == numel(), "reshape", *this, " has ", numel(), " elements, (", shape,
        ") has ", rbee::numel(shape));
  tensor_bytes(shape, dtype());
  return from_buffer(buffer_, row_major_view(view_.data, shape, dtype()));
}

Tensor Tensor::slice(Axis axis, int64_t start, int64_t length) const {
  const int i = resolve(axis, *this, "slice");
  check(view_.packing == 0, "slice", "a packed weight cannot be sliced");
  check(start >= 0 && length >= 0 && start <= view_.sizes[i] - length, "slice", "[", start, ", ",
        start, " + ", length, ") is outside of axis ", i, " of ", *this);
  check(!is_quantized(dtype()) || i + 1 < rank() || length % info(dtype()).block_size == 0, "slice",
        "length ", length, " is not a multiple of the block of ", dtype());
  View view = view_;
  view.sizes[i] = length;
  if (length > 0) {
    view.data =
        static_cast<std::byte*>(view_.data) + offset_bytes(dtype(), start * view_.strides[i]);
  }
  return from_buffer(buffer_, view);
}

Tensor Tensor::split_last(int64_t outer) const {
  check(view_.packing == 0, "split_last", "a packed weight has no other shape");
  check(rank() > 0 && rank() < kMaxRank, "split_last", *this, " has ", rank(), " axes");
  const int last = rank() - 1;
  check(outer > 0 && view_.sizes[last] % outer == 0, "split_last", *this,
        "'s last size is not a multiple of ", outer);
  check(!is_quantized(dtype()), "split_last", *this, " is in blocks");
  View view = view_;
  view.rank = rank() + 1;
  view.sizes[last] = outer;
  view.sizes[last + 1] = view_.sizes[last] / outer;
  view.strides[last] = view.sizes[last + 1] * view_.strides[last];
  view.strides[last + 1] = view_.strides[last];
  return from_buffer(buffer_, view);
}

Tensor Tensor::transpose(Axis a, Axis b) const {
  const int i = resolve(a, *this, "transpose");
  const int j = resolve(b, *this, "transpose");
  check(!is_quantized(dtype()) || i == j, "transpose", *this, " is stored in blocks");
  View view = view_;
  std::swap(view.sizes[i], view.sizes[j]);
  std::swap(view.strides[i], view.strides[j]);
  return from_buffer(buffer_, view);
}

Tensor Tensor::permute(std::initializer_list<int> order) const {
  check(static_cast<int>(order.size()) == rank(), "permute", "an order of ", order.size(),
        " axes does not fit ", *this);
  check(!is_quantized(dtype()), "permute", *this, " is stored in blocks");
  View view = view_;
  uint32_t seen = 0;
  int to = 0;
  for (int from : order) {
    check(from >= 0 && from < rank() && (seen & (1u << from)) == 0, "permute", "axis ", from,
          " is out of range or twice in the order");
    seen |= 1u << from;
    view.sizes[to] = view_.sizes[from];
    view.strides[to++] = view_.strides[from];
  }
  return from_buffer(buffer_, view);
}

Tensor Tensor::unsqueeze(Axis axis) const {
  const int i = axis.index < 0 ? axis.index + rank() + 1 : axis.index;
  check(i >= 0 && i <= rank() && rank() < kMaxRank, "unsqueeze", "axis ", axis.index,
        " is outside of ", *this, " or the rank would exceed ", kMaxRank);
  View view = view_;
  for (int j = rank(); j > i; --j) {
    view.sizes[j] = view_.sizes[j - 1];
    view.strides[j] = view_.strides[j - 1];
  }
  view.sizes[i] = 1;
  view.strides[i] = i < rank() ? view_.sizes[i] * view_.strides[i] : 1;
  ++view.rank;
  return from_buffer(buffer_, view);
}

Tensor Tensor::squeeze(Axis axis) const {
  const int i = resolve(axis, *this, "squeeze");
  check(view_.sizes[i] == 1, "squeeze", "axis ", i, " of ", *this, " is not 1");
  View view = view_;
  for (int j = i; j + 1 < rank(); ++j) {
    view.sizes[j] = view_.sizes[j + 1];
    view.strides[j] = view_.strides[j + 1];
  }
  --view.rank;
  return from_buffer(buffer_, view);
}

Tensor Tensor::broadcast_to(const Shape& shape) const {
  check(broadcast_shapes(this->shape(), shape, "broadcast_to") == shape, "broadcast_to", *this,
        " does not broadcast to (", shape, ")");
  check(!is_quantized(dtype()), "broadcast_to", *this, " is stored in blocks");
  View view = row_major_view(view_.data, shape, dtype());
  const int shift = shape.rank() - rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeated = i < shift || (view_.sizes[i - shift] == 1 && shape[i] != 1);
    view.strides[i] = repeated ? 0 : view_.strides[i - shift];
  }
  return from_buffer(buffer_, view);
}

Tensor Tensor::to(Device& target) const {
  if (&target == &device()) return *this;
  check(contiguous(), "to", *this, " is not contiguous");
  check(view_.packing == 0, "to", "a packed weight belongs to its device");
  Tensor out = empty(shape(), dtype(), target);
  const auto count = static_cast<size_t>(bytes());
  if (count == 0) return out;
  if (device().host_accessible()) {
    target.copy(out.view_.data, view_.data, count, CopyKind::host_to_device, out.stream());
    target.synchronize(out.stream());
    return out;
  }
  if (target.host_accessible()) {
    device().copy(out.view_.data, view_.data, count, CopyKind::device_to_host, stream());
    device().synchronize(stream());
    return out;
  }
  if (target.copy_peer({.to = out.view_.data,
                        .to_stream = out.stream(),
                        .from = view_.data,
                        .from_stream = stream(),
                        .bytes = count})) {
    return out;
  }
  std::vector<std::byte> staging(count);
  device().copy(staging.data(), view_.data, count, CopyKind::device_to_host, stream());
  device().synchronize(stream());
  target.copy(out.view_.data, staging.data(), count, CopyKind::host_to_device, out.stream());
  target.synchronize(out.stream());
  return out;
}

Tensor empty(const Shape& shape, DType dtype, Device& device) {
  const auto bytes = static_cast<size_t>(tensor_bytes(shape, dtype));
  auto buffer = std::make_shared<Buffer>(device, bytes);
  void* data = buffer->data();
  return Tensor::from_buffer(std::move(buffer), row_major_view(data, shape, dtype));
}

Tensor empty_in_host_memory(const Shape& shape, DType dtype, Device& device) {
  const auto bytes = static_cast<size_t>(tensor_bytes(shape, dtype));
  const std::shared_ptr<void> memory(
      device.allocate_host(bytes),
      [held = &device, bytes](void* data) { held->free_host(data, bytes); });
  auto buffer = std::make_shared<Buffer>(device, memory.get(), bytes, memory);
  return Tensor::from_buffer(std::move(buffer), row_major_view(memory.get(), shape, dtype));
}

Tensor empty_like(const Tensor& x) {
  return empty(x.shape(), x.dtype(), x.device());
}

Tensor zeros(const Shape& shape, DType dtype, Device& device) {
  Tensor x = empty(shape, dtype, device);
  if (x.buffer()->bytes() > 0) {
    device.fill_bytes(x.buffer()->data(), 0, x.buffer()->bytes(), x.stream());
  }
  return x;
}

Tensor from_memory(std::span<const std::byte> bytes, const Shape& shape, DType dtype,
                   Device& device, std::shared_ptr<const void> owner) {
  const int64_t wanted = tensor_bytes(shape, dtype);
  check(device.host_accessible(), "from_memory", device.id(), " cannot read host memory");
  check(static_cast<int64_t>(bytes.size()) >= wanted, "from_memory", dtype, " (", shape, ") takes ",
        wanted, " bytes, ", bytes.size(), " are there");
  // Tensors over mapped files are only read; ops write to tensors they made.
  auto* data = const_cast<std::byte*>(bytes.data());
  auto buffer =
      std::make_shared<Buffer>(device, data, static_cast<size_t>(wanted), std::move(owner));
  return Tensor::from_buffer(std::move(buffer), row_major_view(data, shape, dtype));
}

std::string describe(const Tensor& x) {
  if (!x.defined()) return "undefined tensor";
  return cat(x.dtype(), " (", x.shape(), ") on ", x.device().id());
}

void append_to(std::string& out, const Tensor& x) {
  out.append(describe(x));
}

StreamScope::StreamScope(Stream& stream) : previous_(current_stream) {
  current_stream = &stream;
}

StreamScope::~StreamScope() {
  current_stream = previous_;
}

namespace detail {

void check_dims(const Tensor& x, int rank) {
  check(x.rank() == rank, "dims", x, " does not have ", rank, " axes");
}

void check_storage(const Tensor& x, DType wanted, const char* op) {
  check(x.defined() && x.dtype() == wanted, op, x, " does not hold ", wanted);
}

Tensor from_host_bytes(const void* values, size_t count, DType dtype, const Shape& shape,
                       Device& device) {
  check(numel(shape) == static_cast<int64_t>(count), "from_host", "(", shape, ") takes ",
        numel(shape), " values, ", count, " are given");
  Tensor x = empty(shape, dtype, device);
  if (count > 0) {
    device.copy(x.buffer()->data(), values, x.buffer()->bytes(), CopyKind::host_to_device,
                x.stream());
    device.synchronize(x.stream());
  }
  return x;
}

void copy_to_host(const Tensor& x, void* out) {
  Device& device = x.device();
  const auto bytes = static_cast<size_t>(x.bytes());
  if (x.contiguous()) {
    device.copy(out, x.view().data, bytes, CopyKind::device_to_host, x.stream());
    device.synchronize(x.stream());
    return;
  }
  check(device.host_accessible(), "to_host", x, " is not contiguous");
  device.synchronize(x.stream());
  auto* to = static_cast<std::byte*>(out);
  gather_host(x.view(), 0, static_cast<const std::byte*>(x.view().data), to);
}

}  // namespace detail
}  // namespace rbee

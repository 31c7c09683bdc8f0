#include "rbee/engine/leader_rows.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

// All elements have four bytes.
constexpr int64_t kBytes = 4;

Tensor part_of(const std::shared_ptr<Buffer>& buffer, int64_t& at, const Shape& shape,
               DType dtype) {
  View view;
  view.data = buffer->data() + at * kBytes;
  view.dtype = dtype;
  view.rank = static_cast<int8_t>(shape.rank());
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    view.sizes[axis] = shape[axis];
    view.strides[axis] = step;
    step *= shape[axis];
  }
  at += step;
  return Tensor::from_buffer(buffer, view);
}

}  // namespace

int64_t lead_count(int64_t needed, int64_t vocab) {
  const int64_t count = needed <= 1 ? 1 : needed <= 64 ? 64 : needed <= 256 ? 256 : kMaxTopK;
  return std::min(count, vocab);
}

LeaderTensors::LeaderTensors(int64_t rows, const LeadersWanted& wanted, Device& device)
    : vocab_(wanted.vocab) {
  const bool sums = !wanted.scales.empty();
  const int64_t elements = rows * (2 * wanted.count + (sums ? 1 : 0));
  const auto buffer = std::make_shared<Buffer>(device, static_cast<size_t>(elements * kBytes));
  int64_t at = 0;
  found_.values = part_of(buffer, at, {rows, wanted.count}, DType::f32);
  found_.ids = part_of(buffer, at, {rows, wanted.count}, DType::i32);
  if (!sums) return;
  found_.sum = part_of(buffer, at, {rows}, DType::f32);
  scales_ = empty(Shape{rows}, DType::f32, device);
}

LeaderTensors::LeaderTensors(int64_t rows, const LeadersWanted& wanted, int64_t integers,
                             Device& device)
    : vocab_(wanted.vocab) {
  RB_ASSERT(wanted.count == 1 && wanted.scales.empty() && integers >= rows);
  const auto buffer =
      std::make_shared<Buffer>(device, static_cast<size_t>((rows + integers) * kBytes));
  int64_t at = 0;
  found_.values = part_of(buffer, at, {rows, 1}, DType::f32);
  integers_ = part_of(buffer, at, {integers}, DType::i32);
  found_.ids = integers_.slice(Axis{0}, 0, rows).reshape({rows, 1});
}

void LeaderTensors::find(const Tensor& logits) const {
  top_k_(found_, logits.slice(Axis{1}, 0, vocab_), scales_);
}

size_t LeaderTensors::bytes() const {
  const int64_t sums = found_.sum.defined() ? found_.sum.numel() : 0;
  return static_cast<size_t>((2 * found_.values.numel() + sums) * kBytes);
}

void LeaderTensors::fetch(HostBuffer& through) const {
  const Buffer& buffer = *found_.values.buffer();
  Device& device = buffer.device();
  if (device.host_accessible()) return;
  through.reserve(device, bytes());
  device.copy(through.as<std::byte>(), buffer.data(), bytes(), CopyKind::device_to_host,
              found_.values.stream());
}

LeaderRows LeaderTensors::rows(const HostBuffer& through) const {
  const Buffer& buffer = *found_.values.buffer();
  const std::byte* data =
      buffer.device().host_accessible() ? buffer.data() : through.as<std::byte>();
  const auto count = static_cast<size_t>(found_.values.numel());
  const auto* values = reinterpret_cast<const float*>(data);
  LeaderRows out{.values = {values, count},
                 .ids = {reinterpret_cast<const int32_t*>(values + count), count},
                 .sums = {}};
  if (found_.sum.defined()) {
    out.sums = {values + 2 * count, static_cast<size_t>(found_.sum.numel())};
  }
  return out;
}

}  // namespace rbee::engine

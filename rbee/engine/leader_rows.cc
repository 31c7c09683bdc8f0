#include "rbee/engine/leader_rows.h"

#include <algorithm>

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
  return std::min(needed <= 64 ? 64 : needed <= 256 ? 256 : kMaxTopK, vocab);
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
  scales_ = from_host(wanted.scales, Shape{rows}, device);
}

void LeaderTensors::find(const Tensor& logits) const {
  top_k_(found_, logits.slice(Axis{1}, 0, vocab_), scales_);
}

LeaderRows LeaderTensors::read(HostBuffer& through) const {
  const Buffer& buffer = *found_.values.buffer();
  Device& device = buffer.device();
  const std::byte* data = buffer.data();
  if (!device.host_accessible()) {
    through.reserve(device, buffer.bytes());
    device.copy(through.as<std::byte>(), data, buffer.bytes(), CopyKind::device_to_host,
                found_.values.stream());
    data = through.as<std::byte>();
  }
  device.synchronize(found_.values.stream());
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

#include "rbee/engine/text/step/top_logit_rows.h"

#include <algorithm>

#include "rbee/engine/common/buffer_parts.h"

namespace rbee::engine {

int64_t lead_count(int64_t needed, int64_t vocab) {
  const int64_t count = needed <= 1 ? 1 : needed <= 64 ? 64 : needed <= 256 ? 256 : kMaxTopK;
  return std::min(count, vocab);
}

TopLogitTensors::TopLogitTensors(int64_t rows, const TopLogitsWanted& wanted, Device& device)
    : vocab_(wanted.vocab) {
  const bool sums = !wanted.scales.empty();
  BufferParts parts(device, rows * (2 * wanted.count + (sums ? 1 : 0)));
  found_.values = parts.take({rows, wanted.count}, DType::f32);
  found_.ids = parts.take({rows, wanted.count}, DType::i32);
  if (!sums) return;
  found_.sum = parts.take({rows}, DType::f32);
  scales_ = empty(Shape{rows}, DType::f32, device);
}

void TopLogitTensors::find(const Tensor& logits, const nn::SplitVocabulary& vocabulary) const {
  vocabulary.first(vocab_).top_k_(found_, logits, scales_);
}

size_t TopLogitTensors::bytes() const {
  const int64_t sums = found_.sum.defined() ? found_.sum.numel() : 0;
  return static_cast<size_t>((2 * found_.values.numel() + sums) * 4);
}

void TopLogitTensors::fetch(HostBuffer& through) const {
  const Buffer& buffer = *found_.values.buffer();
  Device& device = buffer.device();
  if (device.host_accessible()) return;
  through.reserve(device, bytes());
  device.copy(through.as<std::byte>(), buffer.data(), bytes(), CopyKind::device_to_host,
              found_.values.stream());
}

TopLogitRows TopLogitTensors::rows(const HostBuffer& through) const {
  const Buffer& buffer = *found_.values.buffer();
  const std::byte* data =
      buffer.device().host_accessible() ? buffer.data() : through.as<std::byte>();
  const auto count = static_cast<size_t>(found_.values.numel());
  const auto* values = reinterpret_cast<const float*>(data);
  TopLogitRows out{.values = {values, count},
                   .ids = {reinterpret_cast<const int32_t*>(values + count), count},
                   .sums = {}};
  if (found_.sum.defined()) {
    out.sums = {values + 2 * count, static_cast<size_t>(found_.sum.numel())};
  }
  return out;
}

}  // namespace rbee::engine

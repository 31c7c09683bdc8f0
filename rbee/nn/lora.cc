#include "rbee/nn/lora.h"

#include <algorithm>
#include <array>

#include "rbee/ops/elementwise.h"
#include "rbee/ops/experts.h"
#include "rbee/ops/indexing.h"

namespace rbee::nn {
namespace {

// Kernels read rows of `up` 16 bytes at a time.
constexpr int64_t kRankStep = 8;

// `values` (rows, columns) in the corner of a zero (height, width).
Tensor padded(const std::vector<float>& values, const Shape& shape, const Shape& size,
              Device& device) {
  std::vector<float> out(static_cast<size_t>(numel(size)));
  for (int64_t row = 0; row < shape[0]; ++row) {
    std::copy_n(values.begin() + row * shape[1], shape[1], out.begin() + row * size[1]);
  }
  return from_host<float>(out, size, device);
}

}  // namespace

LoraRows LoraRows::take(const Tensor& rows) const {
  if (!defined() || !rows.defined()) return *this;
  return {.slots = index_select(slots, Axis{0}, rows),
          .scales = index_select(scales, Axis{0}, rows)};
}

// Larger tensors with the contents of the present ones.
void LoraLayer::grow(int64_t slots, int64_t rank) {
  if (slots == slots_ && rank == rank_) return;
  Tensor down = zeros({slots, rank, in_}, dtype_, *device_);
  Tensor up = zeros({slots, out_, rank}, dtype_, *device_);
  if (!empty() && rank_ > 0) {
    Tensor old_down = down.slice(Axis{0}, 0, slots_).slice(Axis{1}, 0, rank_);
    Tensor old_up = up.slice(Axis{0}, 0, slots_).slice(Axis{2}, 0, rank_);
    copy_(old_down, down_.weight);
    copy_(old_up, up_.weight);
  }
  down_.weight = down;
  up_.weight = up;
  slots_ = slots;
  rank_ = rank;
}

void LoraLayer::put(int64_t slot, const LoraFactors& factors) {
  RB_ASSERT(slot > 0 && factors.rank > 0);
  const int64_t rank = (factors.rank + kRankStep - 1) / kRankStep * kRankStep;
  grow(std::max(slots_, slot + 1), std::max(rank_, rank));
  Tensor down = down_.weight.slice(Axis{0}, slot, 1).squeeze(Axis{0});
  Tensor up = up_.weight.slice(Axis{0}, slot, 1).squeeze(Axis{0});
  copy_(down, cast(padded(factors.down, {factors.rank, in_}, down.shape(), *device_), dtype_));
  copy_(up, cast(padded(factors.up, {out_, factors.rank}, up.shape(), *device_), dtype_));
}

void LoraLayer::clear(int64_t slot) {
  if (slot >= slots_) return;
  Tensor up = up_.weight.slice(Axis{0}, slot, 1);
  copy_(up, zeros(up.shape(), dtype_, *device_));
}

std::vector<Tensor> lora_changes(const Tensor& x, const LoraRows& rows,
                                 std::span<const LoraLayer* const> layers) {
  std::vector<Tensor> out(layers.size());
  if (!rows.defined()) return out;
  std::vector<size_t> changed;
  std::vector<const LinearWeights*> downs;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] == nullptr || layers[i]->empty()) continue;
    changed.push_back(i);
    downs.push_back(&layers[i]->down());
  }
  if (changed.empty()) return out;
  const std::vector<Tensor> hidden = expert_linear(x, rows.slots, downs);
  for (size_t i = 0; i < changed.size(); ++i) {
    const std::array<const LinearWeights*, 1> up{&layers[changed[i]]->up()};
    const Tensor each = expert_linear(hidden[i], rows.slots, up).front();
    out[changed[i]] = expert_sum(each, rows.scales);
  }
  return out;
}

}  // namespace rbee::nn

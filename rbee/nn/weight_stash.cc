#include "rbee/nn/weight_stash.h"

namespace rbee::nn {
namespace {

constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void WeightStash::fill() {
  if (filled() || added_.empty()) return;
  size_t total = 0;
  for (const Tensor& x : added_) total += aligned(x.buffer()->bytes());
  Device& device = added_.front().device();
  host_.emplace().reserve(device, total);
  std::vector<Saved> saved;
  size_t at = 0;
  for (const Tensor& x : added_) {
    const Buffer& buffer = *x.buffer();
    const auto* data = static_cast<const std::byte*>(x.view().data);
    saved.push_back({.device = &device,
                     .view = x.view(),
                     .at = at,
                     .bytes = buffer.bytes(),
                     .offset = static_cast<size_t>(data - buffer.data())});
    device.copy(host_->as<std::byte>() + at, buffer.data(), buffer.bytes(),
                CopyKind::device_to_host, x.stream());
    at += aligned(buffer.bytes());
  }
  device.synchronize(added_.front().stream());
  saved_ = std::move(saved);
  added_.clear();
}

Tensor WeightStash::next() {
  RB_ASSERT(next_ < saved_.size());
  const Saved& saved = saved_[next_++];
  auto buffer = std::make_shared<Buffer>(*saved.device, saved.bytes);
  View view = saved.view;
  view.data = buffer->data() + saved.offset;
  const Tensor x = Tensor::from_buffer(std::move(buffer), view);
  saved.device->copy(x.buffer()->data(), host_->as<std::byte>() + saved.at, saved.bytes,
                     CopyKind::host_to_device, x.stream());
  return x;
}

void WeightStash::clear() {
  added_.clear();
  saved_.clear();
  host_.reset();
}

}  // namespace rbee::nn

#include "rbee/nn/weight_stash.h"

#include <map>

namespace rbee::nn {
namespace {

constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void WeightStash::replace(const Tensor& weight, const Tensor& moved) {
  for (Tensor& x : added_) {
    if (x.view().data == weight.view().data && x.shape() == weight.shape()) x = moved;
  }
}

void WeightStash::fill() {
  if (filled() || added_.empty()) return;
  std::map<const Buffer*, size_t> places;
  std::vector<SavedBuffer> buffers;
  std::vector<Saved> saved;
  size_t total = 0;
  for (const Tensor& x : added_) {
    const Buffer& buffer = *x.buffer();
    const auto [place, is_new] = places.try_emplace(&buffer, buffers.size());
    if (is_new) {
      buffers.push_back(
          {.device = &buffer.device(), .at = total, .bytes = buffer.bytes(), .made = {}});
      total += aligned(buffer.bytes());
    }
    const auto* data = static_cast<const std::byte*>(x.view().data);
    saved.push_back({.view = x.view(),
                     .buffer = place->second,
                     .offset = static_cast<size_t>(data - buffer.data())});
  }
  Device& device = added_.front().device();
  Stream& stream = added_.front().stream();
  host_.emplace().reserve(device, total);
  for (const auto& [buffer, index] : places) {
    device.copy(host_->as<std::byte>() + buffers[index].at, buffer->data(), buffer->bytes(),
                CopyKind::device_to_host, stream);
  }
  device.synchronize(stream);
  buffers_ = std::move(buffers);
  saved_ = std::move(saved);
  added_.clear();
}

Tensor WeightStash::next() {
  RB_ASSERT(next_ < saved_.size());
  const Saved& saved = saved_[next_++];
  SavedBuffer& from = buffers_[saved.buffer];
  std::shared_ptr<Buffer> buffer = from.made.lock();
  const bool is_new = buffer == nullptr;
  if (is_new) buffer = std::make_shared<Buffer>(*from.device, from.bytes);
  View view = saved.view;
  view.data = buffer->data() + saved.offset;
  const Tensor x = Tensor::from_buffer(buffer, view);
  if (is_new) {
    from.made = buffer;
    from.device->copy(buffer->data(), host_->as<std::byte>() + from.at, from.bytes,
                      CopyKind::host_to_device, x.stream());
  }
  return x;
}

void WeightStash::clear() {
  added_.clear();
  saved_.clear();
  buffers_.clear();
  host_.reset();
}

}  // namespace rbee::nn

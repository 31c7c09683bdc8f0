#include "rbee/engine/text/step/host_blocks.h"

#include <algorithm>

namespace rbee::engine {
namespace {

// Page-locked memory of this size is quick to get and leaves few gaps.
constexpr size_t kPieceBytes = size_t{256} << 20;

}  // namespace

HostBlocks::HostBlocks(nn::KvCache& cache, Device& device, int64_t slots)
    : device_(device), slots_(slots) {
  check(slots >= 1, "host cache", slots, " blocks are fewer than 1");
  const nn::KvCacheOptions& options = cache.options();
  for (int64_t layer = 0; layer < std::ssize(options.layers); ++layer) {
    if (!cache.keys(layer).defined()) continue;
    add(cache.keys(layer), options.blocks);
    if (!options.one_tensor) add(cache.values(layer), options.blocks);
  }
  allocate();
  beside_ = device.create_stream();
  try {
    event_ = device.create_event();
  } catch (...) {
    device.destroy_stream(beside_);
    throw;
  }
}

HostBlocks::~HostBlocks() {
  device_.destroy_stream(beside_);  // waits for the copies
  device_.destroy_event(event_);
}

void HostBlocks::add(const Tensor& tensor, int64_t blocks) {
  const size_t bytes = static_cast<size_t>(tensor.bytes() / blocks);
  parts_.push_back({.tensor = tensor, .bytes = bytes, .offset = block_bytes_});
  block_bytes_ += bytes;
}

void HostBlocks::allocate() {
  slots_each_ = std::max<int64_t>(static_cast<int64_t>(kPieceBytes / block_bytes_), 1);
  try {
    for (int64_t done = 0; done < slots_; done += slots_each_) {
      const auto count = static_cast<size_t>(std::min(slots_each_, slots_ - done));
      memory_.emplace_back().reserve(device_, count * block_bytes_);
    }
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    fail(Code::out_of_memory, "host cache", slots_, " blocks take ", slots_ * block_bytes(),
         " bytes of host memory: ", error.what(), "; a smaller --host-cache-gib takes less");
  }
}

std::byte* HostBlocks::slot(int32_t index) const {
  const HostBuffer& piece = memory_[static_cast<size_t>(index / slots_each_)];
  return piece.as<std::byte>() + static_cast<size_t>(index % slots_each_) * block_bytes_;
}

// Tensors of layers on the host are copied at once: no work of the device uses them.
void HostBlocks::copy(const BlockCopy& copy, Stream& stream) const {
  std::byte* const kept = slot(copy.slot);
  for (const Part& part : parts_) {
    Device& device = part.tensor.device();
    Stream& own = &device == &device_ ? stream : device.default_stream();
    std::byte* const block = static_cast<std::byte*>(part.tensor.view().data) +
                             static_cast<size_t>(copy.block) * part.bytes;
    if (copy.to_host) {
      device.copy(kept + part.offset, block, part.bytes, CopyKind::device_to_host, own);
    } else {
      device.copy(block, kept + part.offset, part.bytes, CopyKind::host_to_device, own);
    }
  }
}

void HostBlocks::copy(std::span<const BlockCopy> copies) {
  for (const BlockCopy& each : copies) copy(each, device_.default_stream());
}

void HostBlocks::copy_beside(std::span<const BlockCopy> copies) {
  Stream& steps = device_.default_stream();
  if (under_way_) device_.wait_event(event_, steps);
  under_way_ = !copies.empty();
  if (!under_way_) return;
  device_.record_event(event_, steps);
  device_.wait_event(event_, beside_);
  for (const BlockCopy& each : copies) copy(each, beside_);
  device_.record_event(event_, beside_);
}

}  // namespace rbee::engine

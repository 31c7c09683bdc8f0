#include "backends/metal/metal_buffers.h"

#include "rbee/core/error.h"

namespace rbee::metal {

void* Buffers::add_device(Retained buffer, size_t bytes) {
  const uint64_t address = objc_.send<MetalMessage::gpu_address>(buffer.get());
  auto* host = static_cast<std::byte*>(objc_.send<MetalMessage::contents>(buffer.get()));
  const std::scoped_lock lock(mutex_);
  device_[address] = {.object = std::move(buffer), .bytes = bytes, .host = host};
  ++version_;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): what kernels get
}

void* Buffers::add_host(Retained buffer, size_t bytes) {
  auto* host = static_cast<std::byte*>(objc_.send<MetalMessage::contents>(buffer.get()));
  const std::scoped_lock lock(mutex_);
  host_[reinterpret_cast<uintptr_t>(host)] = {
      .object = std::move(buffer), .bytes = bytes, .host = host};
  return host;
}

Retained Buffers::take(Table& table, const void* data) {
  const auto found = table.find(reinterpret_cast<uintptr_t>(data));
  if (found == table.end()) return {};
  Retained out = std::move(found->second.object);
  table.erase(found);
  return out;
}

Retained Buffers::take_device(const void* data) {
  const std::scoped_lock lock(mutex_);
  ++version_;
  return take(device_, data);
}

Retained Buffers::take_host(const void* data) {
  const std::scoped_lock lock(mutex_);
  return take(host_, data);
}

BufferPlace Buffers::place_in(const Table& table, const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  const std::scoped_lock lock(mutex_);
  auto found = table.upper_bound(address);
  if (found == table.begin()) return {};
  --found;
  const Buffer& buffer = found->second;
  const uint64_t offset = address - found->first;
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) return {};
  return {.buffer = buffer.object.get(), .offset = offset, .host = buffer.host + offset};
}

BufferPlace Buffers::device_place(const void* data, size_t bytes) const {
  const BufferPlace place = place_in(device_, data, bytes);
  if (place.buffer == nullptr) {
    fail(Code::device, "metal", bytes, " bytes are not within one buffer of the device");
  }
  return place;
}

BufferPlace Buffers::host_place(const void* data, size_t bytes) const {
  return place_in(host_, data, bytes);
}

bool Buffers::update(uint64_t& seen, std::vector<Id>& all) const {
  const std::scoped_lock lock(mutex_);
  if (seen == version_) return false;
  seen = version_;
  all.clear();
  for (const auto& [address, buffer] : device_) all.push_back(buffer.object.get());
  return true;
}

}  // namespace rbee::metal

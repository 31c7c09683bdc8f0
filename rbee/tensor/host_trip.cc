#include "rbee/tensor/host_trip.h"

#include <cstring>

#include "rbee/core/log.h"

namespace rbee {
namespace {

constexpr size_t kAlignment = 64;  // of each copy, for the host's vector loads

size_t room_of(const Tensor& x) {
  return (static_cast<size_t>(x.bytes()) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

HostTrip::~HostTrip() {
  try {
    device_.synchronize(device_.default_stream());  // the last copy back reads back_
  } catch (const Error& error) {
    log(LogLevel::warn, error.what(), {});
  }
}

Tensor HostTrip::run(std::span<const Tensor> tensors, const Work& work) {
  const std::lock_guard lock(mutex_);
  return put(work(fetch(tensors)));
}

std::vector<Tensor> HostTrip::fetch(std::span<const Tensor> tensors) {
  size_t bytes = 0;
  for (const Tensor& x : tensors) bytes += room_of(x);
  there_.reserve(device_, bytes);
  std::vector<Tensor> out;
  auto* to = there_.as<std::byte>();
  for (const Tensor& x : tensors) {
    RB_ASSERT(x.contiguous() && &x.device() == &device_);
    const auto count = static_cast<size_t>(x.bytes());
    if (count > 0) device_.copy(to, x.view().data, count, CopyKind::device_to_host, x.stream());
    out.push_back(from_memory({to, count}, x.shape(), x.dtype(), host_, nullptr));
    to += room_of(x);
  }
  if (!tensors.empty()) device_.synchronize(tensors.front().stream());
  return out;
}

Tensor HostTrip::put(const Tensor& result) {
  RB_ASSERT(result.contiguous());
  Tensor out = empty(result.shape(), result.dtype(), device_);
  const auto count = static_cast<size_t>(result.bytes());
  if (count == 0) return out;
  // The copy out of this memory before this one ended before fetch() returned.
  back_.reserve(device_, count);
  std::memcpy(back_.as<std::byte>(), result.view().data, count);
  device_.copy(out.view().data, back_.as<std::byte>(), count, CopyKind::host_to_device,
               out.stream());
  return out;
}

}  // namespace rbee

#include <unistd.h>

#include <utility>

#include "rbee/core/system/process.h"

namespace rbee {

WatchedProcess::WatchedProcess(WatchedProcess&& other) noexcept
    : descriptor_(other.release()), id_(other.id_) {}

WatchedProcess& WatchedProcess::operator=(WatchedProcess&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(id_, other.id_);
  return *this;
}

WatchedProcess::~WatchedProcess() {
  if (descriptor_ >= 0) close(descriptor_);
}

int WatchedProcess::release() {
  return std::exchange(descriptor_, -1);
}

}  // namespace rbee

#include "rbee/group/shared_mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/system/shared_memory.h"

namespace rbee::group {
namespace {

[[noreturn]] void give_up(const char* call) {
  fail(Code::io, "group", call, ": ", std::strerror(errno));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

int Descriptor::release() {
  return std::exchange(number_, -1);
}

SharedMapping::SharedMapping(size_t bytes) : own_(new_shared_memory()) {
  if (own_.get() < 0) give_up("new shared memory");
  if (ftruncate(own_.get(), static_cast<off_t>(bytes)) != 0) give_up("ftruncate");
  map(own_.get(), bytes);
}

SharedMapping::SharedMapping(int descriptor, size_t bytes) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0) give_up("fstat");
  // Beyond the end of the memory a read would end the process.
  check(status.st_size == static_cast<off_t>(bytes), "group", "the shared memory has ",
        status.st_size, " bytes, not ", bytes);
  map(descriptor, bytes);
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void SharedMapping::map(int descriptor, size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) give_up("mmap");
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
}

}  // namespace rbee::group

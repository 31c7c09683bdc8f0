#include "tests/gpu/fake/shared_use.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace rbee::fake {

static_assert(std::atomic<int64_t>::is_always_lock_free, "processes share no locks");

SharedUse::SharedUse(const char* path) : bytes_(nullptr) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  void* mapped = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof *bytes_) == 0) {
    mapped = mmap(nullptr, sizeof *bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) close(file);
  if (mapped == MAP_FAILED) throw std::runtime_error(std::string("cannot map ") + path);
  bytes_ = static_cast<std::atomic<int64_t>*>(mapped);
}

SharedUse::~SharedUse() {
  munmap(bytes_, sizeof *bytes_);
}

}  // namespace rbee::fake

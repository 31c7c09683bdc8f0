#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/hub/cache.h"

namespace rbee::hub {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::seconds kSayEvery{10};
constexpr mode_t kMode = 0664;  // users who share a cache wait for each other

FileLock::FileLock(const std::filesystem::path& path,
                   std::optional<std::chrono::milliseconds> patience) {
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
  if (descriptor_ < 0) {
    fail(Code::io, path.string(), "the lock cannot be opened: ", std::strerror(errno));
  }
  // Whatever the process's mask; another user's file has its mode already.
  (void)fchmod(descriptor_, kMode);
  const Clock::time_point begin = Clock::now();
  Clock::time_point say = begin;
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK && error != EINTR) {
      close(descriptor_);
      fail(Code::io, path.string(), "the lock cannot be taken: ", std::strerror(error));
    }
    if (is_cancelled()) {
      close(descriptor_);
      check_cancelled("hub");
    }
    if (patience && Clock::now() >= begin + *patience) return;
    if (Clock::now() >= say) {
      log(LogLevel::warn, "another process holds a lock; waiting for it",
          {{"lock", path.string()}});
      say = Clock::now() + kSayEvery;
    }
    std::this_thread::sleep_for(kLook);
  }
  ours_ = true;
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return false;
  const bool held = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return held;
}

FileLock::~FileLock() {
  close(descriptor_);  // which releases it
}

}  // namespace rbee::hub

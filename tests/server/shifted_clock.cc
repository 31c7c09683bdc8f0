// Loaded into a program before all else (LD_PRELOAD), it moves the wall clock by the seconds in the
// file RBEE_TEST_CLOCK, a 64-bit number that may change at any time. Code that waits until a
// wall-clock time then waits until a wrong one.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

int64_t offset() {
  static const volatile int64_t* const seconds = [] {
    const char* const path = getenv("RBEE_TEST_CLOCK");
    const int file = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void* const at = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) abort();
    close(file);
    return static_cast<const volatile int64_t*>(at);
  }();
  return *seconds;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long status = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += offset();
  return static_cast<int>(status);
}

int gettimeofday(timeval* now, void*) noexcept {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  *now = {.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out != nullptr) *out = exact.tv_sec;
  return exact.tv_sec;
}

}  // extern "C"

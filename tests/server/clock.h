#pragma once
// The wall clock of a child process; a test moves it while the process runs.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "rbee/core/cat.h"

namespace rbee::testing {

class ShiftedClock {
 public:
  ShiftedClock() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbee-clock-XXXXXX").string();
    const int file = mkstemp(pattern.data());
    path_ = pattern;
    if (ftruncate(file, sizeof(int64_t)) != 0) throw std::runtime_error("no clock");
    void* const at = mmap(nullptr, sizeof(int64_t), PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) throw std::runtime_error("no clock");
    seconds_ = static_cast<volatile int64_t*>(at);
  }
  ~ShiftedClock() {
    munmap(const_cast<int64_t*>(seconds_), sizeof(int64_t));
    std::filesystem::remove(path_);
  }
  ShiftedClock(const ShiftedClock&) = delete;
  ShiftedClock& operator=(const ShiftedClock&) = delete;

  // For child processes. ASan insists on being loaded first; its options turn that check off.
  std::vector<std::string> environment() const {
    return {cat("LD_PRELOAD=", SHIFTED_CLOCK), cat("RBEE_TEST_CLOCK=", path_),
            "ASAN_OPTIONS=verify_asan_link_order=0"};
  }
  // Offset from the machine's own clock.
  void set(std::chrono::seconds offset) { *seconds_ = offset.count(); }
  std::chrono::system_clock::time_point now() const {
    return std::chrono::system_clock::now() + std::chrono::seconds(*seconds_);
  }

 private:
  std::string path_;
  volatile int64_t* seconds_ = nullptr;
};

}  // namespace rbee::testing

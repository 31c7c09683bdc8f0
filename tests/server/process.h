#pragma once
// Starts a worker's program and reads its output.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sanitized.h"

namespace rbee::testing {

// A worker must end within this time of a signal.
inline constexpr std::chrono::milliseconds kStopLimit{kSanitized ? 5000 : 2000};

class Process {
 public:
  // Starts `program` with only this environment ("NAME=value").
  Process(const std::string& program, std::vector<std::string> arguments,
          std::vector<std::string> environment = {});
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Reads until the output contains `mark` or ends; returns all output so far.
  const std::string& read_until(std::string_view mark);
  // Waits until its log says that it is ready; returns the port in the log.
  uint16_t port();
  // Exit status; 128 + number if a signal ended it.
  int wait();
  const std::string& text() const { return text_; }

 private:
  // Reads once; returns whether something came within that time.
  bool fill(int patience_ms = 60'000);

  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;  // of standard output and error
  std::optional<int> status_;
};

}  // namespace rbee::testing

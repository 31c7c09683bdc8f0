#pragma once
// A worker's program, started and watched.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sanitized.h"

namespace rbee::testing {

// Within this time of a signal a worker ends.
inline constexpr std::chrono::milliseconds kStopLimit{kSanitized ? 5000 : 2000};

class Process {
 public:
  // Starts `program`; its environment is `environment` alone ("NAME=value").
  Process(const std::string& program, std::vector<std::string> arguments,
          std::vector<std::string> environment = {});
  ~Process();  // kills it when it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  // Reads on until the output holds `mark`, or ends; gives all output so far.
  const std::string& read_until(std::string_view mark);
  // The port that it listens on, once its log says that it is ready.
  uint16_t port();
  // Exit status; 128 + number when a signal ended it.
  int wait();
  const std::string& text() const { return text_; }

 private:
  // Reads once, when something comes within that time; whether it did.
  bool fill(int patience_ms = 60'000);

  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;  // of standard output and error
  std::optional<int> status_;
};

}  // namespace rbee::testing

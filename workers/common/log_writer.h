#pragma once
// Writes lines to a file descriptor whose reader may be slow or gone. Lines that it does not accept
// in time are dropped and counted, so that logging never blocks for long.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rbee::workers {

class LogWriter {
 public:
  // fd must outlive the writer. lost: makes the line that reports `count` dropped lines.
  LogWriter(int fd, std::function<std::string(uint64_t count)> lost)
      : fd_(fd), lost_(std::move(lost)) {}

  // Adds the line's end. The first line without room waits for a moment; later ones do not, until
  // there is room again. Not thread-safe.
  void write(std::string_view line);
  // Dropped lines since the last report.
  uint64_t lost() const { return count_; }

 private:
  bool room(std::chrono::milliseconds patience) const;
  // False if not all of it was written.
  bool put(std::string_view text);

  const int fd_;
  const std::function<std::string(uint64_t)> lost_;
  uint64_t count_ = 0;
  bool torn_ = false;  // the last line has no end
};

}  // namespace rbee::workers

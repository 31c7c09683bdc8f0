#pragma once
// Lines for a file descriptor whose reader may be slow or gone: what it does not take in time is
// lost and counted, so that nobody who logs waits for it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rbee::workers {

class LogWriter {
 public:
  // fd: outlives the writer. lost: the line that tells of so many lost ones.
  LogWriter(int fd, std::function<std::string(uint64_t count)> lost)
      : fd_(fd), lost_(std::move(lost)) {}

  // Adds the line's end. The first line that finds no room waits for a moment, the others do not
  // until there is room again. Not thread-safe.
  void write(std::string_view line);
  // Since the last line that told of it.
  uint64_t lost() const { return count_; }

 private:
  bool room(std::chrono::milliseconds patience) const;
  // False when not all of it was taken.
  bool put(std::string_view text);

  const int fd_;
  const std::function<std::string(uint64_t)> lost_;
  uint64_t count_ = 0;
  bool torn_ = false;  // the last line has no end
};

}  // namespace rbee::workers

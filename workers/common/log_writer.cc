#include "workers/common/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "rbee/core/cat.h"

namespace rbee::workers {
namespace {

constexpr std::chrono::milliseconds kPatience{100};

}  // namespace

void LogWriter::write(std::string_view line) {
  if (count_ > 0) {
    if (!room(std::chrono::milliseconds(0)) || !put(cat(lost_(count_), "\n"))) {
      ++count_;
      return;
    }
    count_ = 0;
  }
  if (!put(cat(line, "\n"))) ++count_;
}

bool LogWriter::room(std::chrono::milliseconds patience) const {
  pollfd entry{.fd = fd_, .events = POLLOUT, .revents = 0};
  const int ready = poll(&entry, 1, static_cast<int>(patience.count()));
  return ready > 0 && (entry.revents & POLLOUT) != 0;
}

// If poll() reports a pipe writable, it takes PIPE_BUF bytes without waiting (pipe(7)).
bool LogWriter::put(std::string_view text) {
  const std::string whole = cat(torn_ ? "\n" : "", text);
  std::string_view rest = whole;
  while (!rest.empty()) {
    if (!room(kPatience)) break;
    const ssize_t sent = ::write(fd_, rest.data(), std::min<size_t>(rest.size(), PIPE_BUF));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) break;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  if (rest.size() < whole.size()) torn_ = !rest.empty();
  return rest.empty();
}

}  // namespace rbee::workers

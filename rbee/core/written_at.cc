#include "rbee/core/written_at.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace rbee {

namespace fs = std::filesystem;

int64_t written_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const fs::file_time_type time = fs::last_write_time(path, error);
    if (error) return 0;
    const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(since).count();
  }
  int64_t out = 0;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) out = std::max(out, written_at(it->path().string()));
  }
  return out;
}

}  // namespace rbee

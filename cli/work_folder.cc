#include "cli/work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "rbee/core/error.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "work-";
constexpr std::chrono::minutes kYoung{1};  // it may be made just now, and not be locked yet

int open_folder(const fs::path& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

bool is_young(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(path, error);
  return error || fs::file_time_type::clock::now() - changed < kYoung;
}

}  // namespace

WorkFolder::WorkFolder(const fs::path& parent) {
  static std::atomic<uint64_t> last = 0;
  std::error_code error;
  fs::create_directories(parent, error);
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  path_ = parent / cat(kBegin, getpid(), "-", now, "-", ++last);
  if (!error) fs::create_directory(path_, error);
  if (error) fail(Code::io, "models", "a folder cannot be made: ", error.message());
  descriptor_ = open_folder(path_);
  if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int number = errno;
  if (descriptor_ >= 0) close(descriptor_);
  fs::remove_all(path_, error);
  fail(Code::io, "models", "a folder cannot be locked: ", std::strerror(number));
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  close(descriptor_);
}

bool WorkFolder::is_one(const fs::path& path) {
  return path.filename().string().starts_with(kBegin);
}

void WorkFolder::sweep(const fs::path& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (!is_one(entry.path()) || is_young(entry.path())) continue;
    const int descriptor = open_folder(entry.path());
    if (descriptor < 0) continue;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), error);
    close(descriptor);
  }
}

}  // namespace rbee::tools

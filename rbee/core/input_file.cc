#include "rbee/core/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "rbee/core/error.h"

namespace rbee {
namespace {

constexpr uint64_t kMostAtOnce = uint64_t{1} << 20;

std::string system_text(int number) {
  return std::generic_category().message(number);
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

// Throws where `status` is of something else than a file.
void check_kind(const std::filesystem::path& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  fail(Code::io, path.string(), kind_of(status.st_mode), ", not a file");
}

}  // namespace

void refuse_no_file(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) check_kind(path, status);
}

InputFile::InputFile(const std::filesystem::path& path) {
  // Before it is opened, since opening a device may do something, and a socket has no other error.
  refuse_no_file(path);
  // Without O_NONBLOCK a FIFO that came since would wait for a writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) {
    const int error = errno;
    fail(error == ENOENT || error == ENOTDIR ? Code::not_found : Code::io, path.string(),
         "cannot be opened: ", system_text(error));
  }
  struct stat status = {};
  try {
    if (::fstat(descriptor_, &status) != 0) {
      fail(Code::io, path.string(), "cannot be examined: ", system_text(errno));
    }
    check_kind(path, status);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

std::string read_file(const std::filesystem::path& path, uint64_t limit) {
  const InputFile file(path);
  check(file.size() <= limit, path.string(), "its ", file.size(), " bytes are more than the ",
        limit, " allowed");
  std::string text;
  // Files of /proc have no size, and others may grow.
  for (uint64_t room = std::max<uint64_t>(file.size(), 1);; room = kMostAtOnce) {
    const size_t held = text.size();
    text.resize(held + room);
    const ssize_t count = ::read(file.descriptor(), text.data() + held, room);
    const int error = errno;
    text.resize(held + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && error != EINTR) {
      fail(Code::io, path.string(), "cannot be read: ", system_text(error));
    }
    if (count == 0) return text;
    check(text.size() <= limit, path.string(), "it has more than the ", limit, " bytes allowed");
  }
}

}  // namespace rbee

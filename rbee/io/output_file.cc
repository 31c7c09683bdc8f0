#include "rbee/io/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"

namespace rbee::io {
namespace {

constexpr int kMaxTries = 100;

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  refuse_no_file(path_);  // finish() would put a file in the place of a device
  // open() rather than mkstemp(): it gives the mode that the user's umask wants.
  for (int i = 0; descriptor_ < 0; ++i) {
    const std::string candidate = cat(path_.string(), ".", ::getpid(), ".", i, ".part");
    descriptor_ = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) temporary_ = candidate;
    if (descriptor_ < 0 && (errno != EEXIST || i == kMaxTries)) fail_write(errno);
  }
  unfinished_.emplace(temporary_.c_str());
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::fail_write(int error) const {
  const std::string written = offset_ > 0 ? cat(" beyond its first ", offset_, " bytes") : "";
  fail(Code::io, path_.string(), "cannot be written", written, ": ",
       std::generic_category().message(error));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      // They come from a mapped file: better its name than "bad address" of this one.
      if (error == EFAULT) touch_pages(bytes);
      fail_write(error);
    }
    offset_ += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void OutputFile::pad(uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  uint64_t left = (alignment - offset_ % alignment) % alignment;
  while (left > 0) {
    const uint64_t count = std::min<uint64_t>(left, kZeros.size());
    write({kZeros.data(), count});
    left -= count;
  }
}

void OutputFile::finish() {
  RB_ASSERT(descriptor_ >= 0);
  if (::fsync(descriptor_) != 0) fail_write(errno);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail_write(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(errno);
  unfinished_.reset();
  temporary_.clear();
}

}  // namespace rbee::io

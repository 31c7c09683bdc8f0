#include "rbee/hub/parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"

namespace rbee::hub {
namespace {

constexpr const char* kFormat = "rbee-parts-1";

int open_file(const std::filesystem::path& path, int flags) {
  const int descriptor = open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) fail(Code::io, path.string(), "it cannot be opened: ", std::strerror(errno));
  return descriptor;
}

}  // namespace

PartFile::PartFile(std::filesystem::path path, int64_t size, int64_t part_bytes)
    : path_(std::move(path)),
      list_path_(path_.parent_path() / (path_.stem().string() + ".parts")),
      size_(size),
      part_bytes_(part_bytes),
      whole_(static_cast<size_t>((size + part_bytes - 1) / part_bytes)) {
  read_list();
  descriptor_ = open_file(path_, O_RDWR);
  try {
    begin_list();
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

PartFile::~PartFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (list_ >= 0) close(list_);
}

int64_t PartFile::end(int64_t part) const {
  return std::min(size_, (part + 1) * part_bytes_);
}

int64_t PartFile::whole_bytes() const {
  int64_t out = 0;
  for (int64_t part = 0; part < count(); ++part)
    out += is_whole(part) ? end(part) - begin(part) : 0;
  return out;
}

void PartFile::read_list() {
  std::error_code error;
  const auto there = std::filesystem::file_size(path_, error);
  if (error) return;
  if (!std::filesystem::is_regular_file(list_path_, error)) return;
  std::istringstream file(read_file(list_path_));
  std::string format;
  int64_t size = 0, part_bytes = 0;
  file >> format >> size >> part_bytes;
  if (!file || format != kFormat || size != size_ || part_bytes != part_bytes_) return;
  for (int64_t part = 0; file >> part;) {
    const bool inside = part >= 0 && part < count();
    if (inside && static_cast<uint64_t>(end(part)) <= there)
      whole_[static_cast<size_t>(part)] = true;
  }
}

// Written anew, without what a broken end may have left.
void PartFile::begin_list() {
  if (list_ >= 0) close(list_);
  list_ = open_file(list_path_, O_WRONLY | O_TRUNC | O_APPEND);
  const std::string head = cat(kFormat, " ", size_, " ", part_bytes_, "\n");
  if (::write(list_, head.data(), head.size()) != static_cast<ssize_t>(head.size())) {
    fail(Code::io, list_path_.string(), "it cannot be written: ", std::strerror(errno));
  }
  for (int64_t part = 0; part < count(); ++part) {
    if (is_whole(part)) set_whole(part);
  }
}

bool PartFile::write(int64_t offset, const char* data, size_t size) const {
  while (size > 0) {
    const ssize_t count = pwrite(descriptor_, data, size, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    data += count;
    offset += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

void PartFile::set_whole(int64_t part) {
  whole_[static_cast<size_t>(part)] = true;
  const std::string line = cat(part, "\n");
  if (::write(list_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail(Code::io, list_path_.string(), "it cannot be written: ", std::strerror(errno));
  }
}

void PartFile::clear() {
  whole_.assign(whole_.size(), false);
  begin_list();
}

void PartFile::finish(const std::filesystem::path& place) {
  const bool good = ftruncate(descriptor_, size_) == 0 && fsync(descriptor_) == 0 &&
                    rename(path_.c_str(), place.c_str()) == 0;
  if (!good) fail(Code::io, place.string(), "it cannot be written: ", std::strerror(errno));
  unlink(list_path_.c_str());
}

}  // namespace rbee::hub

#pragma once

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "rbee/core/error.h"
#include "rbee/io/mapped_file.h"

namespace rbee::fuzz {

// The input as a mapped file in memory only. With ASan, reading the rest of its last page, which
// the kernel fills with zeros, is an error.
inline std::shared_ptr<const io::MappedFile> memory_file(const uint8_t* data, size_t size) {
  const int descriptor = ::memfd_create("input", MFD_CLOEXEC);
  if (descriptor < 0) fail(Code::io, "memfd_create", "no file in memory");
  const ssize_t written = ::write(descriptor, data, size);
  // Can be opened by this name while the descriptor is open; the mapping outlives both.
  const std::string name = cat("/proc/self/fd/", descriptor);
  auto file = written == static_cast<ssize_t>(size) ? io::MappedFile::open(name) : nullptr;
  ::close(descriptor);
  if (file == nullptr) fail(Code::io, "memfd_create", "the input was not written");
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  [[maybe_unused]] const std::byte* end = file->bytes().data() + size;
  [[maybe_unused]] const size_t rest = (page - size % page) % page;
  if (size == 0 || rest == 0) return file;
  ASAN_POISON_MEMORY_REGION(end, rest);
  return {file.get(),
          [file, end, rest](const io::MappedFile*) { ASAN_UNPOISON_MEMORY_REGION(end, rest); }};
}

}  // namespace rbee::fuzz

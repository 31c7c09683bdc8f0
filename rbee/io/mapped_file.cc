#include "rbee/io/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"

namespace rbee::io {
namespace {

uintptr_t page_size() {
  static const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const InputFile file(path);
  const size_t size = file.size();
  std::span<const std::byte> bytes;
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      fail(error == ENOMEM ? Code::out_of_memory : Code::io, path.string(), "its ", size,
           " bytes cannot be mapped: ", std::generic_category().message(error));
    }
    bytes = {static_cast<const std::byte*>(address), size};
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
}

MappedFile::~MappedFile() {
  entry_.reset();
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::will_need(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const uintptr_t first = reinterpret_cast<uintptr_t>(part.data()) & ~(page_size() - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data() + part.size());
  // A hint: that it failed changes nothing for the caller.
  (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_WILLNEED);
}

void MappedFile::dont_need(std::span<const std::byte> part) const {
  const uintptr_t mask = page_size() - 1;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(part.data()) + mask) & ~mask;
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data() + part.size()) & ~mask;
  if (first >= end) return;
  (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace rbee::io

#pragma once
// A file that appears under its name only when it is whole.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "rbee/io/lost_pages.h"

namespace rbee::io {

// Writes beside the target under a temporary name and renames at the end. So no reader sees half a
// file, not even one that has mapped the old file. A killed process leaves NAME.PID.N.part; a
// process that handle_lost_pages() ends removes it. Throws io, also if the target is a folder,
// a FIFO, a device or a socket.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  // Removes the temporary file if the write is not finished.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // Zeros up to the next multiple of `alignment`.
  void pad(uint64_t alignment);
  uint64_t offset() const { return offset_; }
  const std::filesystem::path& path() const { return path_; }
  // Flushes to the disk and gives the file its name. Call it once, as the last call.
  void finish();

 private:
  [[noreturn]] void fail_write(int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::optional<LostPagesEntry> unfinished_;  // while temporary_ has a name
  int descriptor_ = -1;
  uint64_t offset_ = 0;
};

}  // namespace rbee::io

#pragma once
// A whole file mapped into memory, read-only.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "rbee/core/printable.h"
#include "rbee/io/lost_pages.h"

namespace rbee::io {

// The file must not shrink while it is mapped: a read of a lost page ends the process
// (lost_pages.h). Replacing the file by rename is safe.
class MappedFile {
 public:
  // Throws as InputFile does, and out_of_memory.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

  // Hints about a part of bytes(): will_need() pages are read soon; dont_need() pages may be
  // dropped, and the next touch reads them from the file again. Pages that the part shares with its
  // neighbours stay.
  void will_need(std::span<const std::byte> part) const;
  void dont_need(std::span<const std::byte> part) const;

 private:
  MappedFile(std::filesystem::path path, std::span<const std::byte> bytes)
      : path_(std::move(path)),
        bytes_(bytes),
        shown_(printable_line(path_.string())),
        entry_(std::in_place, bytes_, shown_.c_str()) {}

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  std::string shown_;
  std::optional<LostPagesEntry> entry_;  // while they are mapped
};

}  // namespace rbee::io

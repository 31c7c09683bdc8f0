#pragma once
// A whole file mapped into memory, read-only.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace rbee::io {

// The file must not shrink while it is mapped: reading pages that are gone ends the process with
// SIGBUS. Replacing it by rename is safe.
class MappedFile {
 public:
  // Throws not_found when there is no such file and io when it cannot be read or is no file.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

  // Hints about a part of bytes(): pages that are read soon, and pages whose memory may be taken
  // back (they are read from the file again when touched). Pages that the part shares with its
  // neighbours are kept.
  void will_need(std::span<const std::byte> part) const;
  void dont_need(std::span<const std::byte> part) const;

 private:
  MappedFile(std::filesystem::path path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace rbee::io

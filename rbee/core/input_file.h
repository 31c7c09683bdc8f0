#pragma once
// How the project opens files that a user names.

#include <cstdint>
#include <filesystem>
#include <string>

namespace rbee {

// A regular file, open while this lives. Refuses folders, FIFOs, sockets and devices without
// blocking on them. Throws not_found if there is no file, else io; the error names the path.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int descriptor() const { return descriptor_; }
  // In bytes, when it was opened.
  uint64_t size() const { return size_; }

 private:
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// Throws io if there is a folder, a FIFO, a socket or a device under this name.
void refuse_no_file(const std::filesystem::path& path);

inline constexpr uint64_t kMaxTextFile = uint64_t{256} << 20;

// The whole file. Throws as InputFile does, io if it cannot be read, and invalid_argument if it has
// more than `limit` bytes.
std::string read_file(const std::filesystem::path& path, uint64_t limit = kMaxTextFile);

}  // namespace rbee

#pragma once
// How files that somebody names are opened for reading.

#include <cstdint>
#include <filesystem>
#include <string>

namespace rbee {

// A regular file, open while this lives. Folders, FIFOs, sockets and devices are refused without
// waiting for anybody. Throws not_found where there is nothing, else io; the error names the path.
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

inline constexpr uint64_t kMaxTextFile = uint64_t{256} << 20;

// The whole file. Throws as InputFile does, io when it cannot be read, and invalid_argument when it
// has more than `limit` bytes.
std::string read_file(const std::filesystem::path& path, uint64_t limit = kMaxTextFile);

}  // namespace rbee

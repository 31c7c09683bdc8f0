#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "rbee/core/error.h"

namespace rbee::fuzz {

// The part of `rest` before its first NUL byte, or all of it; `rest` becomes what follows.
inline std::string_view next_field(std::string_view& rest) {
  const size_t end = rest.find('\0');
  const std::string_view field = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return field;
}

// A safetensors file. The header's length is always right, so that the parser reads mutated
// headers; the target `safetensors` tries wrong lengths.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file.append(header).append(data);
}

// A folder of this process; the destructor removes it.
class WeightFolder {
 public:
  WeightFolder() : path_(std::filesystem::temp_directory_path() / cat("rbee-fuzz-", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  WeightFolder(const WeightFolder&) = delete;
  WeightFolder& operator=(const WeightFolder&) = delete;
  ~WeightFolder() { std::filesystem::remove_all(path_); }

  // The file's path. Without bytes no file is written.
  std::filesystem::path put(const char* name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    if (bytes.empty()) {
      std::filesystem::remove(file);
      return file;
    }
    std::ofstream out(file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) fail(Code::io, file.string(), "the input was not written");
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace rbee::fuzz

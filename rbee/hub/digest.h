#pragma once
// Sums of files, in lower-case hexadecimal digits. Throw io if the file cannot be read, and
// cancelled (core/cancel.h).

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace rbee::hub {

// SHA-256 of bytes that come in parts. Throws io if OpenSSL cannot make it.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::string_view bytes);
  // In lower-case hexadecimal digits. The last call.
  std::string end();

 private:
  class Context;
  const std::unique_ptr<Context> context_;
};

std::string sha256_of_file(const std::filesystem::path& path);
// As git names a file's content: SHA-1 of "blob <size>", a NUL and the bytes.
std::string git_blob_of_file(const std::filesystem::path& path);

}  // namespace rbee::hub

#pragma once
// Sums of files, in lower-case hexadecimal digits. Throw io if the file cannot be read.

#include <filesystem>
#include <string>

namespace rbee::hub {

std::string sha256_of_file(const std::filesystem::path& path);
// As git names a file's content: SHA-1 of "blob <size>", a NUL and the bytes.
std::string git_blob_of_file(const std::filesystem::path& path);

}  // namespace rbee::hub

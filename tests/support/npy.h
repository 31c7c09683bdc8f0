#pragma once
// Reads NumPy's .npy format (version 1, row-major, little-endian f4 and i4).

#include <cstdint>
#include <filesystem>
#include <vector>

namespace rbee::test {

template <typename T>  // float or int32_t
struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

// Throws io with the file's name if it is missing or of another type.
template <typename T>
NpyArray<T> read_npy(const std::filesystem::path& path);

}  // namespace rbee::test

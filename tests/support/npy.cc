#include "tests/support/npy.h"

#include <charconv>
#include <fstream>
#include <string>
#include <type_traits>

#include "rbee/core/error.h"

namespace rbee::test {
namespace {

// The sizes of a header such as "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".
std::vector<int64_t> parse_shape(std::string_view header) {
  std::vector<int64_t> shape;
  const size_t open = header.find('(');
  const char* at = header.data() + open + 1;
  const char* end = header.data() + header.find(')', open);
  while (at < end) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error == std::errc{}) shape.push_back(size);
    at = next + (error == std::errc{} ? 0 : 1);
  }
  return shape;
}

}  // namespace

template <typename T>
NpyArray<T> read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  unsigned char prefix[10] = {};
  file.read(reinterpret_cast<char*>(prefix), sizeof prefix);
  std::string header(static_cast<size_t>(prefix[8] | prefix[9] << 8), ' ');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  const char* type = std::is_same_v<T, float> ? "'<f4'" : "'<i4'";
  const bool known = file && prefix[0] == 0x93 && prefix[6] == 1 &&
                     header.find(type) != std::string::npos &&
                     header.find("'fortran_order': False") != std::string::npos;
  if (!known) fail(Code::io, "read_npy", path.string(), " is not a .npy file of ", type);
  NpyArray<T> out{.shape = parse_shape(header), .values = {}};
  size_t count = 1;
  for (const int64_t size : out.shape) count *= static_cast<size_t>(size);
  out.values.resize(count);
  file.read(reinterpret_cast<char*>(out.values.data()),
            static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) fail(Code::io, "read_npy", path.string(), " is cut short");
  return out;
}

template NpyArray<float> read_npy(const std::filesystem::path&);
template NpyArray<int32_t> read_npy(const std::filesystem::path&);

}  // namespace rbee::test

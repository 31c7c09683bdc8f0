#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/weight_folder.h"

namespace rbee::fuzz {

// Makes a safetensors file of: the header, NUL, the number of data bytes, NUL, the first data
// bytes. The rest of the data is zeros, so a short input describes a whole model.
inline std::string padded_safetensors(std::string_view input) {
  constexpr uint64_t kMost = uint64_t{1} << 20;
  const std::string_view header = next_field(input), digits = next_field(input);
  uint64_t bytes = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  std::string data(input);
  data.resize(std::max<uint64_t>(std::min(bytes, kMost), data.size()));
  return safetensors_file(header, data);
}

}  // namespace rbee::fuzz

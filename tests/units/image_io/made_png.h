#pragma once
// PNG files that encode_png() does not write.

#include <zlib.h>

#include <array>
#include <string>
#include <string_view>

#include "rbee/io/image/png.h"

namespace rbee::io {

inline std::string png_number(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
  const auto sum = static_cast<uint32_t>(crc32(0, bytes, static_cast<uInt>(body.size())));
  return png_number(static_cast<uint32_t>(data.size())) + body + png_number(sum);
}

// bits: 8 or 16 for each value, of which 16 repeat the byte. In the seven passes of section 8.2 of
// the standard, or row by row.
inline std::string made_png(const Pixels& pixels, int bits, bool in_passes) {
  using Pass = std::array<int32_t, 4>;  // first column and row, steps
  constexpr Pass kPasses[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}, {0, 0, 1, 1}};
  std::string rows;
  for (size_t pass = in_passes ? 0 : 7; pass < (in_passes ? 7u : 8u); ++pass) {
    const auto& [left, top, right, down] = kPasses[pass];
    if (left >= pixels.width) continue;  // a pass without columns has no rows
    for (int32_t y = top; y < pixels.height; y += down) {
      rows += '\0';  // not filtered
      for (int32_t x = left; x < pixels.width; x += right) {
        for (int32_t c = 0; c < pixels.channels; ++c) {
          const auto at = static_cast<size_t>((y * pixels.width + x) * pixels.channels + c);
          rows.append(static_cast<size_t>(bits / 8), static_cast<char>(pixels.values[at]));
        }
      }
    }
  }
  uLongf size = compressBound(rows.size());
  std::string data(size, '\0');
  compress(reinterpret_cast<Bytef*>(data.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  data.resize(size);
  const char kind = pixels.channels == 4 ? 6 : 2;
  const std::string head =
      png_number(static_cast<uint32_t>(pixels.width)) +
      png_number(static_cast<uint32_t>(pixels.height)) +
      std::string{static_cast<char>(bits), kind, 0, 0, in_passes ? '\1' : '\0'};
  return std::string(kPngSignature) + png_chunk("IHDR", head) + png_chunk("IDAT", data) +
         png_chunk("IEND", {});
}

}  // namespace rbee::io

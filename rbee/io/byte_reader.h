#pragma once
// Reads little-endian values from untrusted bytes; checks every length before it uses it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "rbee/core/error.h"

namespace rbee::io {

class ByteReader {
 public:
  // `source` names the file in errors.
  ByteReader(std::span<const std::byte> bytes, std::string source)
      : bytes_(bytes), source_(std::move(source)) {}

  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }
  const std::string& source() const { return source_; }

  // The next `count` bytes. In errors, `field` names them, here and in the calls below.
  std::span<const std::byte> take(uint64_t count, std::string_view field) {
    check(count <= remaining(), source_, field, " needs ", count, " bytes at offset ", offset_,
          ", the file has ", remaining(), " left");
    const auto part = bytes_.subspan(offset_, static_cast<size_t>(count));
    offset_ += part.size();
    return part;
  }

  template <typename T>
  T value(std::string_view field) {
    T out;
    std::memcpy(&out, take(sizeof(T), field).data(), sizeof(T));
    return out;
  }

  // GGUF's string: a 64-bit length, then that many bytes without an end mark.
  std::string_view string(std::string_view field) {
    const auto part = take(value<uint64_t>(field), field);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

  // Bytes from `start` to here.
  std::span<const std::byte> since(size_t start) const {
    return bytes_.subspan(start, offset_ - start);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string source_;
  size_t offset_ = 0;
};

}  // namespace rbee::io

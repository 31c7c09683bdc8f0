#pragma once
// Flat messages between ranks: little-endian numbers, texts and lists with their sizes before them.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rbee::group {

template <typename T>
concept WireNumber =
    std::same_as<T, uint8_t> || std::same_as<T, int32_t> || std::same_as<T, int64_t> ||
    std::same_as<T, uint64_t> || std::same_as<T, float>;

class WireWriter {
 public:
  template <WireNumber T>
  void put(T value) {
    append(&value, sizeof(T));
  }
  void put_text(std::string_view text);
  template <WireNumber T>
  void put_list(std::span<const T> list) {
    put(static_cast<int64_t>(list.size()));
    append(list.data(), list.size_bytes());
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void append(const void* from, size_t bytes);

  std::vector<std::byte> bytes_;
};

// Each function throws invalid_argument, naming what it read, if that is not there.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  template <WireNumber T>
  T take(std::string_view what) {
    T out;
    copy(what, &out, sizeof(T));
    return out;
  }
  // A number from `least` to `most`.
  int64_t take_within(std::string_view what, int64_t least, int64_t most);
  // At most `most` bytes.
  std::string take_text(std::string_view what, int64_t most);
  // At most `most` numbers.
  template <WireNumber T>
  std::vector<T> take_list(std::string_view what, int64_t most) {
    // The bytes must be there before memory is taken for them.
    const int64_t count = take_count(what, most, sizeof(T));
    std::vector<T> out(static_cast<size_t>(count));
    copy(what, out.data(), out.size() * sizeof(T));
    return out;
  }
  // Nothing may be left.
  void end() const;

 private:
  int64_t take_count(std::string_view what, int64_t most, size_t each);
  void copy(std::string_view what, void* to, size_t bytes);

  std::span<const std::byte> rest_;
};

}  // namespace rbee::group

#pragma once
// A JSON text for the library's parser, which reads a string by its bytes into two buffers that
// double: a picture in base64 would take some eight times its size. So long strings are left out of
// what the parser reads, and taken from the text. Internal to the server.

#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace rbee::server {

// The contents of a string value that mean themselves: ASCII, no escapes.
struct LongString {
  const char* begin;
  const char* end;  // its closing quote
};

// Those of at least 64 KiB, in the order of the text. If the text is no JSON, only those before the
// fault mean something.
std::vector<LongString> long_strings(std::string_view text);

// The text without its long strings, and where the parser is, which it does not report.
class JsonBytes {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  // strings: those that begin after `at`. farthest: where the last read of any copy ended.
  JsonBytes(const char* at, const char** farthest, std::span<const LongString> strings)
      : at_(at), farthest_(farthest), strings_(strings) {}
  reference operator*() const { return *at_; }
  JsonBytes& operator++() {
    ++at_;
    if (!strings_.empty() && at_ == strings_.front().begin) {
      at_ = strings_.front().end;
      strings_ = strings_.subspan(1);
    }
    *farthest_ = at_;
    return *this;
  }
  JsonBytes operator++(int) {
    const JsonBytes before = *this;
    ++*this;
    return before;
  }
  bool operator==(const JsonBytes& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** farthest_;
  std::span<const LongString> strings_;
};

}  // namespace rbee::server

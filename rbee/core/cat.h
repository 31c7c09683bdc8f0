#pragma once
// cat(a, b, ...): one string from values. Types join in by overloading
// `void append_to(std::string&, const T&)` in their own namespace.

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace rbee {

inline void append_to(std::string& out, std::string_view text) {
  out.append(text);
}
inline void append_to(std::string& out, const char* text) {
  out.append(text != nullptr ? text : "(null)");
}
inline void append_to(std::string& out, const std::string& text) {
  out.append(text);
}
inline void append_to(std::string& out, char c) {
  out.push_back(c);
}
inline void append_to(std::string& out, bool value) {
  out.append(value ? "true" : "false");
}

template <typename T>
  requires std::is_arithmetic_v<T>
void append_to(std::string& out, T value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (append_to(out, parts), ...);
  return out;
}

}  // namespace rbee

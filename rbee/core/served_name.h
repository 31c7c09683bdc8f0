#pragma once
// Names by which requests ask for a model or an adapter.

#include <algorithm>
#include <string_view>

namespace rbee {

// What is_served_name() wants, behind "must be".
inline constexpr std::string_view kServedNameRule =
    "1 to 128 printable ASCII characters without space, quote and backslash";

constexpr bool is_served_name(std::string_view text) {
  constexpr size_t kMost = 128;
  return !text.empty() && text.size() <= kMost && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < '\x7f' && c != '"' && c != '\\';
  });
}

}  // namespace rbee

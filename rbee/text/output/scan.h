#pragma once
// Finds markers in a text that arrives in pieces.

#include <cstddef>
#include <span>
#include <string_view>

namespace rbee::text {

struct FoundMarker {
  size_t at = std::string_view::npos;  // npos: none
  size_t which = 0;
};
// The first marker in the text; if several begin there, the longest. Markers must not be empty.
FoundMarker find_first(std::string_view text, std::span<const std::string_view> markers);
// The number of bytes at the end of the text that may begin a marker.
size_t open_tail(std::string_view text, std::span<const std::string_view> markers);

// Blanks, tabs and line breaks at the two ends.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

// Whether the text begins with the marker; unknown: it is too short to tell.
enum class Begins : uint8_t { yes, no, unknown };
Begins begins_with(std::string_view text, std::string_view marker);

}  // namespace rbee::text

#include "rbee/io/image/exif.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cancel.h"

namespace rbee::io {
namespace {

constexpr std::string_view kMark{"Exif\0\0", 6};
constexpr uint32_t kOrientation = 0x0112;
constexpr uint32_t kFurther = 0x8769;  // the directory of Exif's own entries
constexpr uint32_t kComment = 0x9286;
constexpr uint32_t kBytes = 1, kText = 2, kShort = 3, kLong = 4, kUndefined = 7;  // of entries
constexpr size_t kEntry = 12;  // bytes of a directory's entry
// The code at the start of a comment.
constexpr std::string_view kUnicode{"UNICODE\0", 8};
constexpr std::string_view kAscii{"ASCII\0\0\0", 8};
constexpr std::string_view kJapanese{"JIS\0\0\0\0\0", 8};
constexpr char32_t kReplacement = 0xFFFD;

// Numbers of a TIFF block in the order of bytes that it says; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : Tiff(bytes, bytes.starts_with("II")) {}
  Tiff(std::string_view bytes, bool little) : bytes_(bytes), little_(little) {}

  uint32_t number(size_t at, size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) return 0;
    uint32_t out = 0;
    for (size_t i = 0; i < count; ++i) {
      out = out << 8 | static_cast<uint8_t>(bytes_[at + (little_ ? count - 1 - i : i)]);
    }
    return out;
  }

  // The offset of a directory's entry of this tag and type; 0: there is none.
  size_t entry(size_t directory, uint32_t tag, uint32_t type) const {
    const size_t entries = number(directory, 2);
    for (size_t i = 0; i < entries; ++i) {
      const size_t at = directory + 2 + i * kEntry;
      if (at >= bytes_.size()) break;
      if (number(at, 2) == tag && number(at + 2, 2) == type) return at;
    }
    return 0;
  }

  // The bytes that an entry names; empty where they are not there.
  std::string_view bytes_of(size_t entry) const {
    const size_t count = number(entry + 4, 4), at = number(entry + 8, 4);
    if (at > bytes_.size() || bytes_.size() - at < count) return {};
    return bytes_.substr(at, count);
  }

 private:
  std::string_view bytes_;
  bool little_;
};

std::optional<Tiff> tiff_of(std::string_view block) {
  if (!block.starts_with("II") && !block.starts_with("MM")) return std::nullopt;
  return Tiff(block);
}

std::string big_endian(size_t value, int count) {
  std::string out;
  for (int shift = 8 * (count - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xFF);
  }
  return out;
}

void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : (code < 0x10000 ? 2 : 3);
  constexpr int kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(static_cast<char32_t>(kLead[more]) | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

// Takes a character off the front; kReplacement for a byte that begins none.
char32_t take_utf8(std::string_view& text) {
  const auto lead = static_cast<uint8_t>(text.front());
  text.remove_prefix(1);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : (lead >= 0xE0 ? 2 : 1);
  if (lead < 0xC2 || lead > 0xF4 || text.size() < static_cast<size_t>(more)) return kReplacement;
  char32_t code = lead & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    const auto byte = static_cast<uint8_t>(text[static_cast<size_t>(i)]);
    if ((byte & 0xC0) != 0x80) return kReplacement;
    code = code << 6 | (byte & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kSmallest[more] || code > 0x10FFFF || surrogate) return kReplacement;
  text.remove_prefix(static_cast<size_t>(more));
  return code;
}

std::string utf8_of_utf16(const Tiff& units, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    char32_t code = units.number(2 * i, 2);
    const char32_t next = i + 1 < count ? units.number(2 * i + 2, 2) : 0;
    const bool high = code >= 0xD800 && code < 0xDC00, low = next >= 0xDC00 && next < 0xE000;
    if (high && low) {
      code = 0x10000 + ((code - 0xD800) << 10) + (next - 0xDC00);
      ++i;
    } else if (code >= 0xD800 && code < 0xE000) {
      code = kReplacement;
    }
    append_utf8(out, code);
  }
  return out;
}

// Which order of bytes makes more units of one byte's worth: settings are mostly ASCII, and writers
// differ in whether a block's own order holds for its comment.
bool is_little(std::string_view units, bool customary) {
  size_t first = 0, second = 0;
  for (size_t i = 0; i + 1 < units.size(); i += 2) {
    first += units[i] == 0 ? 1 : 0;
    second += units[i + 1] == 0 ? 1 : 0;
  }
  return first == second ? customary : second > first;
}

std::string utf16_of_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char32_t code = take_utf8(text);
    if (code < 0x10000) {
      out += big_endian(code, 2);
    } else {
      out += big_endian(0xD800 + ((code - 0x10000) >> 10), 2);
      out += big_endian(0xDC00 + ((code - 0x10000) & 0x3FF), 2);
    }
  }
  return out;
}

}  // namespace

int exif_orientation(std::string_view block) {
  if (block.starts_with(kMark)) block.remove_prefix(kMark.size());
  const auto tiff = tiff_of(block);
  if (!tiff) return 1;
  // It is of 16 bits; some writers take 32, which readers such as Pillow accept.
  for (const auto& [kind, bytes] : {std::pair{kShort, size_t{2}}, std::pair{kLong, size_t{4}}}) {
    const size_t entry = tiff->entry(tiff->number(4, 4), kOrientation, kind);
    const size_t value = entry == 0 ? 1 : tiff->number(entry + 8, bytes);
    if (entry > 0) return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

bool swaps_sides(int orientation) {
  return orientation >= 5;
}

std::optional<std::string> exif_comment(std::string_view block) {
  if (block.starts_with(kMark)) block.remove_prefix(kMark.size());
  const auto tiff = tiff_of(block);
  if (!tiff) return std::nullopt;
  const size_t further = tiff->entry(tiff->number(4, 4), kFurther, kLong);
  if (further == 0) return std::nullopt;
  const size_t directory = tiff->number(further + 8, 4);
  size_t entry = tiff->entry(directory, kComment, kUndefined);
  if (entry == 0) entry = tiff->entry(directory, kComment, kBytes);  // as Pillow writes it
  if (entry == 0) return std::nullopt;
  const std::string_view comment = tiff->bytes_of(entry);
  if (comment.starts_with(kJapanese)) return std::nullopt;
  if (comment.starts_with(kAscii)) return sound_text(comment.substr(kAscii.size()));
  if (!comment.starts_with(kUnicode)) return sound_text(comment);
  const std::string_view units = comment.substr(kUnicode.size());
  const bool little = is_little(units, block.starts_with("II"));
  return utf8_of_utf16(Tiff(units, little), units.size() / 2);
}

std::optional<std::string> exif_text(std::string_view block, ExifText tag) {
  if (block.starts_with(kMark)) block.remove_prefix(kMark.size());
  const auto tiff = tiff_of(block);
  if (!tiff) return std::nullopt;
  const size_t entry = tiff->entry(tiff->number(4, 4), static_cast<uint32_t>(tag), kText);
  return entry == 0 ? std::nullopt : sound_text(tiff->bytes_of(entry));
}

std::optional<std::string> sound_text(std::string_view bytes) {
  constexpr std::string_view kBlank{" \0", 2};
  const size_t first = bytes.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return std::nullopt;
  bytes = bytes.substr(first, bytes.find_last_not_of(kBlank) + 1 - first);
  std::string out;
  while (!bytes.empty()) {
    const char32_t code = take_utf8(bytes);
    if (code != kReplacement && code != 0) append_utf8(out, code);
  }
  return out;
}

std::string exif_of_comment(std::string_view text) {
  const std::string comment = std::string(kUnicode) + utf16_of_utf8(text);
  constexpr size_t kHeader = 8, kDirectory = 2 + kEntry + 4;  // of one entry
  const auto directory = [](uint32_t tag, uint32_t type, size_t count, size_t value) {
    return big_endian(1, 2) + big_endian(tag, 2) + big_endian(type, 2) + big_endian(count, 4) +
           big_endian(value, 4) + big_endian(0, 4);
  };
  return "MM" + big_endian(42, 2) + big_endian(kHeader, 4) +
         directory(kFurther, kLong, 1, kHeader + kDirectory) +
         directory(kComment, kUndefined, comment.size(), kHeader + 2 * kDirectory) + comment;
}

Pixels upright(Pixels pixels, int orientation) {
  if (orientation == 1) return pixels;
  // Of the stored picture: where its rows and columns begin, and whether rows are columns.
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool turned = swaps_sides(orientation);
  Pixels out{.width = turned ? pixels.height : pixels.width,
             .height = turned ? pixels.width : pixels.height,
             .channels = pixels.channels,
             .values = {}};
  out.values.reserve(pixels.values.size());
  for (int32_t y = 0; y < out.height; ++y) {
    check_cancelled("image");
    for (int32_t x = 0; x < out.width; ++x) {
      int32_t column = turned ? y : x, row = turned ? x : y;
      if (from_right) column = pixels.width - 1 - column;
      if (from_below) row = pixels.height - 1 - row;
      const auto pixel =
          pixels.values.begin() + (int64_t{row} * pixels.width + column) * pixels.channels;
      out.values.insert(out.values.end(), pixel, pixel + pixels.channels);
    }
  }
  return out;
}

}  // namespace rbee::io

#include "rbee/io/image/png.h"

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/io/image/exif.h"

namespace rbee::io {
namespace {

constexpr size_t kChunkFrame = 12;  // length, type, checksum
constexpr size_t kHeaderEnd = 8 + kChunkFrame + 13;
constexpr size_t kLongestKey = 79;
constexpr size_t kMostInflated = size_t{1} << 20;     // of a text
constexpr size_t kMostSurplus = size_t{64} << 10;     // after the last row
constexpr char kColours = 2, kColoursAndOpacity = 6;  // types of pictures

// libpng's reader, released on every path. libpng leaves its functions by longjmp. Nothing with a
// destructor lives in a frame between guarded() and libpng.
struct PngReader {
  explicit PngReader(std::string_view bytes);
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  std::string_view left;
  std::array<char, 200> message{};
  png_structp png = nullptr;
  png_infop info = nullptr;
  bool opacity = false;
  int passes = 1;
};

[[noreturn]] void leave(png_structp png, png_const_charp text) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader->message.data(), reader->message.size(), "%s", text);
  png_longjmp(png, 1);
}

void go_on(png_structp /*png*/, png_const_charp /*warning*/) {}

void take(png_structp png, png_bytep out, size_t count) {
  std::string_view& left = static_cast<PngReader*>(png_get_io_ptr(png))->left;
  if (count > left.size()) png_error(png, "it ends too early");
  std::copy_n(left.begin(), count, reinterpret_cast<char*>(out));
  left.remove_prefix(count);
}

PngReader::PngReader(std::string_view bytes) : left(bytes) {
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, go_on);
  if (png != nullptr) info = png_create_info_struct(png);
  if (info == nullptr) fail(Code::out_of_memory, "png", "libpng does not start");
  png_set_read_fn(png, this, take);
}

// Runs `step`; false when libpng failed within.
bool guarded(PngReader& reader, void (*step)(PngReader&, uint8_t*), uint8_t* pixels) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  step(reader, pixels);
  return true;
}

// Reads what comes before the pixels, which will be 8 bits of sRGB, with opacity if there is any.
void read_head(PngReader& reader, uint8_t* /*pixels*/) {
  png_read_info(reader.png, reader.info);
  const bool channel = (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_ALPHA) != 0;
  reader.opacity = channel || png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0;
  png_set_expand(reader.png);
  png_set_gray_to_rgb(reader.png);
  png_set_scale_16(reader.png);
  // Also of 16 bits, where nothing says that they are linear.
  png_set_alpha_mode_fixed(reader.png, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
  reader.passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
}

void read_rows(PngReader& reader, uint8_t* pixels) {
  const size_t row = png_get_rowbytes(reader.png, reader.info);
  const size_t height = png_get_image_height(reader.png, reader.info);
  for (int pass = 0; pass < reader.passes; ++pass) {
    for (size_t y = 0; y < height; ++y) {
      check_cancelled("image");
      png_read_row(reader.png, pixels + y * row, nullptr);
    }
  }
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

void append_chunk(std::string& out, std::string_view type, std::string_view data) {
  out += big_endian(static_cast<uint32_t>(data.size()));
  const size_t begin = out.size();
  out += type;
  out += data;
  const auto checksum = crc32(0, reinterpret_cast<const Bytef*>(out.data() + begin),
                              static_cast<uInt>(out.size() - begin));
  out += big_endian(static_cast<uint32_t>(checksum));
}

bool is_ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return (c & 0x80) != 0; });
}

void append_text(std::string& out, const PngText& text) {
  const bool printable = std::ranges::all_of(text.key, [](char c) { return c >= ' ' && c <= '~'; });
  check(!text.key.empty() && text.key.size() <= kLongestKey && printable, "png", "a text's key of ",
        text.key.size(), " characters is not 1 to ", kLongestKey, " of printable ASCII");
  std::string value = text.value;
  std::erase(value, '\0');  // ends no text
  std::string data = text.key + '\0';
  if (is_ascii(value)) return append_chunk(out, "tEXt", data + value);
  data += std::string(2, '\0');  // not compressed, by method 0
  data += std::string(2, '\0');  // no language, no translated key
  append_chunk(out, "iTXt", data + value);
}

std::string utf8_of_latin1(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xc0 | byte >> 6);
      out += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return out;
}

std::optional<std::string> inflated(std::string_view data) {
  std::string out(kMostInflated, '\0');
  uLongf size = kMostInflated;
  const int status = uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                                reinterpret_cast<const Bytef*>(data.data()), data.size());
  if (status != Z_OK) return std::nullopt;
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

std::optional<std::string> ztxt_value(std::string_view data) {
  const bool known = data.starts_with('\0');  // the one method of compression
  const auto text = known ? inflated(data.substr(1)) : std::nullopt;
  return text ? std::optional(utf8_of_latin1(*text)) : std::nullopt;
}

std::optional<std::string> itxt_value(std::string_view data) {
  if (data.size() < 2) return std::nullopt;
  const bool compressed = data[0] != 0;
  if (compressed && data[1] != 0) return std::nullopt;
  data.remove_prefix(2);
  for (int i = 0; i < 2; ++i) {  // language, translated key
    const size_t end = data.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    data.remove_prefix(end + 1);
  }
  return compressed ? inflated(data) : std::string(data);
}

bool is_text_of(std::string_view key, std::string_view type, std::string_view data) {
  if (type != "tEXt" && type != "zTXt" && type != "iTXt") return false;
  const size_t end = data.find('\0');
  return end != std::string_view::npos && data.substr(0, end) == key;
}

std::optional<std::string> text_value(std::string_view type, std::string_view data) {
  const std::string_view value = data.substr(data.find('\0') + 1);
  if (type == "tEXt") return utf8_of_latin1(value);
  return type == "zTXt" ? ztxt_value(value) : itxt_value(value);
}

bool is_for_pixels(std::string_view type) {
  constexpr uint8_t kAncillary = 0x20;  // clear: no decoder may skip the chunk
  const bool critical = (static_cast<uint8_t>(type[0]) & kAncillary) == 0;
  return critical || type == "tRNS" || type == "gAMA" || type == "cHRM" || type == "sRGB";
}

// The file without chunks that no pixel depends on: libpng inflates and keeps texts and profiles,
// so a small file could take gigabytes. It also allocates and clears room for a chunk before it
// sees that the file ends within it.
std::string without_notes(std::string_view bytes, std::string_view field) {
  std::string out;
  out.reserve(bytes.size());
  out += bytes.substr(0, kPngSignature.size());
  bytes.remove_prefix(out.size());
  constexpr size_t kHead = 8;  // length, type
  while (bytes.size() >= kHead && bytes.substr(4, 4) != "IEND") {
    const size_t length = big_endian(bytes), left = bytes.size() - kHead;
    check(length + (kChunkFrame - kHead) <= left, field, "it is no whole PNG file: a chunk of ",
          length, " bytes, of which ", left, " are there");
    if (is_for_pixels(bytes.substr(4, 4))) out += bytes.substr(0, length + kChunkFrame);
    bytes.remove_prefix(length + kChunkFrame);
  }
  return out += bytes.substr(0, kChunkFrame);  // the end, which is empty
}

// Rows with the numbers of their filters; for an interlaced picture those of its seven passes
// (section 8.2 of the standard). Nothing if the header is invalid, which libpng then reports.
std::optional<uint64_t> inflated_size(std::string_view bytes) {
  if (bytes.size() < kHeaderEnd) return std::nullopt;
  const uint64_t width = big_endian(bytes.substr(16)), height = big_endian(bytes.substr(20));
  const auto depth = static_cast<uint8_t>(bytes[24]), kind = static_cast<uint8_t>(bytes[25]);
  constexpr std::array<uint64_t, 7> kChannels{1, 0, 3, 1, 2, 0, 4};
  if (kind >= kChannels.size()) return std::nullopt;
  const auto rows = [&](uint64_t wide, uint64_t high) {
    return wide == 0 ? 0 : high * (1 + (wide * kChannels[kind] * depth + 7) / 8);
  };
  if (bytes[28] == 0) return rows(width, height);
  struct Pass {
    uint64_t x, y, step_x, step_y;
  };
  constexpr std::array<Pass, 7> kPasses{{{0, 0, 8, 8},
                                         {4, 0, 8, 8},
                                         {0, 4, 4, 8},
                                         {2, 0, 4, 4},
                                         {0, 2, 2, 4},
                                         {1, 0, 2, 2},
                                         {0, 1, 1, 2}}};
  uint64_t sum = 0;
  for (const Pass& pass : kPasses) {
    sum += rows((width + pass.step_x - 1 - pass.x) / pass.step_x,
                (height + pass.step_y - 1 - pass.y) / pass.step_y);
  }
  return sum;
}

// zlib's expander; released on every path.
class Inflate {
 public:
  Inflate() {
    if (inflateInit(&stream_) != Z_OK) fail(Code::internal, "png", "zlib does not start");
  }
  ~Inflate() { inflateEnd(&stream_); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;

  // The number of bytes that these expand to; stops at the end, a fault, or beyond `most` in all.
  uint64_t add(std::string_view bytes, uint64_t most) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // read only
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      check_cancelled("image");
      stream_.next_out = dropped_.data();
      stream_.avail_out = static_cast<uInt>(dropped_.size());
      status_ = status_ == Z_OK ? inflate(&stream_, Z_NO_FLUSH) : status_;
    } while (status_ == Z_OK && stream_.total_out <= most &&
             (stream_.avail_in > 0 || stream_.avail_out == 0));
    if (status_ == Z_BUF_ERROR) status_ = Z_OK;  // the next chunk goes on
    return stream_.total_out;
  }

 private:
  z_stream stream_{};
  int status_ = Z_OK;
  std::array<Bytef, size_t{32} << 10> dropped_;
};

// libpng also inflates all data after the last row: gigabytes from a small file, for minutes.
void refuse_surplus(std::string_view bytes, std::string_view field) {
  const std::optional<uint64_t> size = inflated_size(bytes);
  if (!size) return;
  const uint64_t most = *size + kMostSurplus;
  Inflate rows;
  for (bytes.remove_prefix(kPngSignature.size()); bytes.size() >= kChunkFrame;) {
    const size_t length = std::min<size_t>(big_endian(bytes), bytes.size() - kChunkFrame);
    const bool fits =
        bytes.substr(4, 4) != "IDAT" || rows.add(bytes.substr(8, length), most) <= most;
    check(fits, field, "a PNG file with more than the ", *size, " bytes of its rows");
    bytes.remove_prefix(length + kChunkFrame);
  }
}

// A row and the bytes that predict it: `channels` zeros come before each row.
class RowFilter {
 public:
  RowFilter(size_t bytes, size_t channels)
      : bytes_(bytes),
        channels_(channels),
        above_(channels + bytes + kBlock),
        row_(channels + bytes + kBlock) {
    for (std::string& line : filtered_) line.resize(1 + bytes);
  }

  // The row under the last one by the filter whose differences sum to least (section 12.7 of the
  // standard), its number in front; until the next call.
  const std::string& operator()(const uint8_t* row) {
    above_.swap(row_);
    std::copy_n(row, bytes_, row_.begin() + static_cast<std::ptrdiff_t>(channels_));
    const auto nothing = [](Value, Value, Value) { return Value{0}; };
    const auto left = [](Value before, Value, Value) { return before; };
    const auto up = [](Value, Value above, Value) { return above; };
    const auto average = [](Value before, Value above, Value) {
      return value((before + above) / 2);
    };
    const auto paeth = [](Value before, Value above, Value corner) {
      const Value to_before = value(std::abs(above - corner));
      const Value to_above = value(std::abs(before - corner));
      const Value to_corner = value(std::abs(before + above - 2 * corner));
      const Value rest = to_above <= to_corner ? above : corner;
      return to_before <= to_above && to_before <= to_corner ? before : rest;
    };
    const std::array<uint64_t, 5> sums = {filter<0>(nothing), filter<1>(left), filter<2>(up),
                                          filter<3>(average), filter<4>(paeth)};
    return filtered_[static_cast<size_t>(std::ranges::min_element(sums) - sums.begin())];
  }

 private:
  using Value = int16_t;  // a byte, or a difference of some
  static Value value(int n) { return static_cast<Value>(n); }
  // In separate blocks, which the compiler turns into vectors.
  template <size_t kNumber, class Predict>
  uint64_t filter(Predict predict) {
    std::string& out = filtered_[kNumber];
    out[0] = static_cast<char>(kNumber);
    uint64_t sum = 0;
    for (size_t from = 0; from < bytes_; from += kBlock) {
      const uint8_t *before = row_.data() + from, *corner = above_.data() + from;
      const uint8_t *now = before + channels_, *above = corner + channels_;
      std::array<int8_t, kBlock> differences;
      uint32_t block_sum = 0;
      for (size_t i = 0; i < kBlock; ++i) {
        const Value predicted = predict(before[i], above[i], corner[i]);
        differences[i] = static_cast<int8_t>(now[i] - predicted);
      }
      const size_t count = std::min(kBlock, bytes_ - from);
      for (size_t i = count; i < kBlock; ++i) differences[i] = 0;
      for (const int8_t difference : differences)
        block_sum += static_cast<uint32_t>(std::abs(int{difference}));
      sum += block_sum;
      std::copy_n(differences.data(), count, out.data() + 1 + from);
    }
    return sum;
  }

  static constexpr size_t kBlock = 512;
  size_t bytes_, channels_;
  std::vector<uint8_t> above_, row_;  // and room to read a whole block at the end
  std::array<std::string, 5> filtered_;
};

// zlib's compressor; released on every path.
class Deflate {
 public:
  // Looks only for runs of equal bytes: filtered pictures hardly repeat in any other way, and
  // the full search takes eight times as long for the same size.
  Deflate() {
    constexpr int kLevel = 1, kWindow = 15, kMemory = 9;
    if (deflateInit2(&stream_, kLevel, Z_DEFLATED, kWindow, kMemory, Z_RLE) != Z_OK)
      fail(Code::internal, "png", "zlib does not start");
  }
  ~Deflate() { deflateEnd(&stream_); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  void add(const std::string& bytes, int flush, std::string& out) {
    constexpr size_t kRoom = size_t{64} << 10;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // read only
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      const size_t written = out.size();
      out.resize(written + kRoom);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + written);
      stream_.avail_out = kRoom;
      deflate(&stream_, flush);
      out.erase(out.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
};

// As chunks of about kPiece bytes: a single chunk would need a buffer until its length is
// known.
void append_rows(std::string& out, const Pixels& pixels) {
  constexpr size_t kPiece = size_t{128} << 10;
  const auto channels = static_cast<size_t>(pixels.channels);
  const size_t row_bytes = static_cast<size_t>(pixels.width) * channels;
  RowFilter filter(row_bytes, channels);
  Deflate deflate;
  std::string piece;
  for (int32_t y = 0; y < pixels.height; ++y) {
    check_cancelled("image");
    const bool last = y + 1 == pixels.height;
    deflate.add(filter(pixels.values.data() + static_cast<size_t>(y) * row_bytes),
                last ? Z_FINISH : Z_NO_FLUSH, piece);
    if (!last && piece.size() < kPiece) continue;
    append_chunk(out, "IDAT", piece);
    piece.clear();
  }
}

}  // namespace

std::string encode_png(const Pixels& pixels, const std::vector<PngText>& texts) {
  constexpr size_t kMostGrowth = 512, kRoomForTexts = size_t{64} << 10;
  const bool sound = pixels.width > 0 && pixels.height > 0 &&
                     (pixels.channels == 3 || pixels.channels == 4) &&
                     pixels.values.size() == static_cast<size_t>(pixels.width) *
                                                 static_cast<size_t>(pixels.height) *
                                                 static_cast<size_t>(pixels.channels);
  check(sound, "png", pixels.values.size(), " values are not ", pixels.width, " x ", pixels.height,
        " pixels of ", pixels.channels, " channels");
  const auto size = [](int32_t n) { return big_endian(static_cast<uint32_t>(n)); };
  const char kind = pixels.channels == 4 ? kColoursAndOpacity : kColours;
  std::string out(kPngSignature);
  // Noise does not shrink. Growing by doubling would hold it three times.
  out.reserve(pixels.values.size() + pixels.values.size() / kMostGrowth + kRoomForTexts);
  append_chunk(out, "IHDR",
               size(pixels.width) + size(pixels.height) + std::string{8, kind, 0, 0, 0});
  for (const PngText& text : texts) append_text(out, text);
  append_rows(out, pixels);
  append_chunk(out, "IEND", {});
  if (out.size() < out.capacity() / 2) out.shrink_to_fit();
  return out;
}

std::optional<std::string> png_text(std::string_view bytes, std::string_view key) {
  if (!bytes.starts_with(kPngSignature)) return std::nullopt;
  bytes.remove_prefix(kPngSignature.size());
  while (bytes.size() >= kChunkFrame) {
    const size_t length = big_endian(bytes);
    if (length > bytes.size() - kChunkFrame) return std::nullopt;
    const std::string_view type = bytes.substr(4, 4), data = bytes.substr(8, length);
    // Only the first, or a file of many small ones would take long to inflate.
    if (is_text_of(key, type, data)) return text_value(type, data);
    bytes.remove_prefix(length + kChunkFrame);
  }
  return std::nullopt;
}

std::string_view png_exif(std::string_view bytes) {
  bytes.remove_prefix(std::min(kPngSignature.size(), bytes.size()));
  while (bytes.size() >= kChunkFrame) {
    const size_t length = big_endian(bytes);
    if (length > bytes.size() - kChunkFrame) break;
    if (bytes.substr(4, 4) == "eXIf") return bytes.substr(8, length);
    bytes.remove_prefix(length + kChunkFrame);
  }
  return {};
}

ImageHeader read_png_header(std::string_view bytes, std::string_view field) {
  check(bytes.size() > kHeaderEnd && bytes.substr(12, 4) == "IHDR", field,
        "it is no PNG file that can be read: the header is missing");
  const uint32_t width = big_endian(bytes.substr(16));
  const uint32_t height = big_endian(bytes.substr(20));
  constexpr uint32_t kMost = 0x7fffffff;
  check(width <= kMost && height <= kMost, field, "it is no PNG file that can be read: its size");
  ImageHeader out{ImageFormat::png, static_cast<int32_t>(width), static_cast<int32_t>(height)};
  if (swaps_sides(exif_orientation(png_exif(bytes)))) std::swap(out.width, out.height);
  return out;
}

Pixels decode_png(std::string_view bytes, std::string_view field) {
  const std::string whole = without_notes(bytes, field);
  refuse_surplus(whole, field);
  PngReader reader(whole);
  const bool begun = guarded(reader, read_head, nullptr);
  check(begun, field, "it is no PNG file that can be read: ", reader.message.data());
  Pixels out{.width = static_cast<int32_t>(png_get_image_width(reader.png, reader.info)),
             .height = static_cast<int32_t>(png_get_image_height(reader.png, reader.info)),
             .channels = reader.opacity ? 4 : 3,
             .values = {}};
  const size_t row = static_cast<size_t>(out.width) * static_cast<size_t>(out.channels);
  const bool sound = png_get_rowbytes(reader.png, reader.info) == row;
  if (!sound) fail(Code::internal, "png", "libpng makes rows of another length");
  out.values.resize(row * static_cast<size_t>(out.height));
  const bool read = guarded(reader, read_rows, out.values.data());
  check(read, field, "it is no whole PNG file: ", reader.message.data());
  return upright(std::move(out), exif_orientation(png_exif(bytes)));
}

}  // namespace rbee::io

#include "rbee/io/image/gif.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"

namespace rbee::io {
namespace {

// The start of the next block; of DGifOpen()'s user data.
struct Source {
  std::string_view left;
};

int read(GifFileType* file, GifByteType* out, int count) {
  auto& source = *static_cast<Source*>(file->UserData);
  const size_t most = std::min(source.left.size(), static_cast<size_t>(std::max(count, 0)));
  std::copy_n(source.left.begin(), most, reinterpret_cast<char*>(out));
  source.left.remove_prefix(most);
  return static_cast<int>(most);
}

struct Close {
  void operator()(GifFileType* file) const { DGifCloseFile(file, nullptr); }
};
using File = std::unique_ptr<GifFileType, Close>;

File open(Source& source, std::string_view field) {
  int error = 0;
  File out(DGifOpen(&source, read, &error));
  check(out != nullptr, field, "it is no GIF file that can be read");
  return out;
}

void must(int status, std::string_view field) {
  check(status == GIF_OK, field, "it is no whole GIF file");
}

// Of the graphics control extensions in front of the first picture: its transparent colour, or
// NO_TRANSPARENT_COLOR. The file is then at the picture.
int go_to_picture(GifFileType* file, std::string_view field) {
  int transparent = NO_TRANSPARENT_COLOR;
  while (true) {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    must(DGifGetRecordType(file, &record), field);
    check(record != TERMINATE_RECORD_TYPE, field, "a GIF file without a picture");
    if (record == IMAGE_DESC_RECORD_TYPE) return transparent;
    int function = 0;
    GifByteType* block = nullptr;  // its size, then its bytes
    must(DGifGetExtension(file, &function, &block), field);
    while (block != nullptr) {
      GraphicsControlBlock control;
      if (function == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent = control.TransparentColor;
      }
      must(DGifGetExtensionNext(file, &block), field);
    }
  }
}

// Settings are shorter. Longer texts are skipped.
constexpr size_t kMostComment = size_t{64} << 10;

// Takes an extension's blocks off the file, and joins them where the extension is a comment.
bool read_extension(GifFileType* file, std::string& comment) {
  int function = 0;
  GifByteType* block = nullptr;  // its size, then its bytes
  if (DGifGetExtension(file, &function, &block) != GIF_OK) return false;
  while (block != nullptr) {
    if (function == COMMENT_EXT_FUNC_CODE) {
      if (comment.size() + block[0] > kMostComment) return false;
      comment.append(reinterpret_cast<const char*>(block + 1), block[0]);
    }
    if (DGifGetExtensionNext(file, &block) != GIF_OK) return false;
  }
  return true;
}

// Rows in the order of the file: all, or those of four passes.
std::vector<int> row_order(int height, bool interlaced) {
  std::vector<int> out;
  constexpr std::array<std::array<int, 2>, 4> kPasses{{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  if (interlaced) {
    for (const auto& [first, step] : kPasses) {
      for (int y = first; y < height; y += step) out.push_back(y);
    }
    return out;
  }
  out.resize(static_cast<size_t>(height));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

Pixels without_opacity(const Pixels& pixels) {
  Pixels out{.width = pixels.width, .height = pixels.height, .channels = 3, .values = {}};
  out.values.reserve(pixels.values.size() / 4 * 3);
  const size_t row = static_cast<size_t>(pixels.width) * 4;
  for (size_t i = 0; i < pixels.values.size(); ++i) {
    if (i % row == 0) check_cancelled("image");
    if (i % 4 != 3) out.values.push_back(pixels.values[i]);
  }
  return out;
}

}  // namespace

ImageHeader read_gif_header(std::string_view bytes, std::string_view field) {
  Source source{bytes};
  const File file = open(source, field);
  return {ImageFormat::gif, file->SWidth, file->SHeight};
}

Pixels decode_gif(std::string_view bytes, std::string_view field) {
  Source source{bytes};
  const File file = open(source, field);
  Pixels out{.width = file->SWidth, .height = file->SHeight, .channels = 4, .values = {}};
  out.values.resize(static_cast<size_t>(out.width) * static_cast<size_t>(out.height) * 4);
  const int transparent = go_to_picture(file.get(), field);
  must(DGifGetImageDesc(file.get()), field);
  const GifImageDesc& place = file->Image;
  const bool inside = place.Left >= 0 && place.Top >= 0 && place.Width >= 1 && place.Height >= 1 &&
                      place.Left + place.Width <= out.width &&
                      place.Top + place.Height <= out.height;
  check(inside, field, "a GIF file whose picture reaches beyond its screen");
  const ColorMapObject* colors = place.ColorMap != nullptr ? place.ColorMap : file->SColorMap;
  check(colors != nullptr, field, "a GIF file without colours");
  bool opaque = place.Width == out.width && place.Height == out.height;
  std::vector<GifPixelType> row(static_cast<size_t>(place.Width));
  for (const int y : row_order(place.Height, place.Interlace)) {
    check_cancelled(field);
    must(DGifGetLine(file.get(), row.data(), place.Width), field);
    const auto first = (static_cast<size_t>(place.Top + y) * static_cast<size_t>(out.width) +
                        static_cast<size_t>(place.Left)) *
                       4;
    uint8_t* to = out.values.data() + first;
    for (const GifPixelType index : row) {
      check(index < colors->ColorCount, field, "a GIF file with a colour that it does not have");
      const GifColorType& color = colors->Colors[index];
      const uint8_t opacity = index == transparent ? 0 : UINT8_MAX;
      opaque &= opacity != 0;
      for (const uint8_t value : {color.Red, color.Green, color.Blue, opacity}) *to++ = value;
    }
  }
  return opaque ? without_opacity(out) : out;
}

std::string gif_comment(std::string_view bytes) {
  Source source{bytes};
  int error = 0;
  const File file(DGifOpen(&source, read, &error));
  std::string out;
  GifRecordType record = UNDEFINED_RECORD_TYPE;
  while (file != nullptr && out.empty()) {
    if (DGifGetRecordType(file.get(), &record) != GIF_OK) return {};
    if (record != EXTENSION_RECORD_TYPE) break;
    if (!read_extension(file.get(), out)) return {};
  }
  return out;
}

}  // namespace rbee::io

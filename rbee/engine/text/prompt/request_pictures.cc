#include "rbee/engine/text/prompt/request_pictures.h"

#include "rbee/io/image/resize.h"

namespace rbee::engine {
namespace {

io::Pixels opaque(io::Pixels pixels) {
  if (pixels.channels == 3) return pixels;
  io::Pixels out{.width = pixels.width, .height = pixels.height, .channels = 3, .values = {}};
  out.values.reserve(pixels.values.size() / 4 * 3);
  for (size_t i = 0; i < pixels.values.size(); i += 4) {
    const auto at = pixels.values.begin() + static_cast<ptrdiff_t>(i);
    out.values.insert(out.values.end(), at, at + 3);
  }
  return out;
}

std::shared_ptr<const io::Pixels> square(const io::Pixels& pixels, int64_t side) {
  const auto size = static_cast<int32_t>(side);
  return std::make_shared<const io::Pixels>(
      io::resized(pixels, size, size, io::Resampler::bilinear));
}

}  // namespace

std::vector<PictureSquares> read_pictures(const TextRequest& request, int64_t side, int64_t most,
                                          const PanAndScan& parts) {
  std::vector<PictureSquares> out;
  for (const ChatMessage& message : request.messages) {
    for (const ChatPicture& picture : message.pictures) {
      check(side > 0, picture.field, "this model reads text alone, no pictures");
      check(std::ssize(out) < most, picture.field, "a request has at most ", most, " pictures");
      out.push_back(picture.file->squares([&](const std::string& bytes) {
        const io::Pixels whole = opaque(io::decode_image(bytes, picture.field));
        PictureSquares squares{square(whole, side)};
        for (const io::Pixels& part : parts_of(whole, parts)) {
          squares.push_back(square(part, side));
        }
        return squares;
      }));
    }
  }
  return out;
}

}  // namespace rbee::engine

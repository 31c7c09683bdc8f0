#include "rbee/engine/image/upscale.h"

#include <algorithm>

#include "rbee/core/log.h"
#include "rbee/engine/image/mosaic.h"

namespace rbee::engine {
namespace {

// The colours of a part, 0 to 1, (1, height, width, 3); beyond the picture its last pixels go on.
Tensor part_of(const io::Pixels& picture, const Area& area, Device& device) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(area.height * area.width * 3));
  for (int64_t y = area.top; y < area.top + area.height; ++y) {
    for (int64_t x = area.left; x < area.left + area.width; ++x) {
      const int64_t row = std::min(y, int64_t{picture.height} - 1);
      const int64_t column = std::min(x, int64_t{picture.width} - 1);
      const auto pixel =
          static_cast<size_t>((row * picture.width + column) * int64_t{picture.channels});
      for (size_t c = 0; c < 3; ++c) {
        values.push_back(static_cast<float>(picture.values[pixel + c]) / 255);
      }
    }
  }
  return from_host<float>(values, {1, area.height, area.width, 3}, device);
}

Area scaled(const Area& area, int64_t scale) {
  return {area.left * scale, area.top * scale, area.width * scale, area.height * scale};
}

// A tile without what its inner edges, which see nothing beyond them, reach most.
Area without_edges(const Area& tile, int64_t height, int64_t width, int64_t margin) {
  const int64_t left = tile.left > 0 ? margin : 0, top = tile.top > 0 ? margin : 0;
  const int64_t right = tile.left + tile.width < width ? margin : 0;
  const int64_t bottom = tile.top + tile.height < height ? margin : 0;
  return {tile.left + left, tile.top + top, tile.width - left - right, tile.height - top - bottom};
}

// The picture's rows that no further tile reaches, as they are done.
void move_rows(Mosaic& mosaic, int64_t end, io::Pixels& out) {
  const auto first = static_cast<int64_t>(out.values.size()) / (3 * int64_t{out.width});
  const int64_t rows = std::min(end, int64_t{out.height}) - first;
  if (rows > 0) {
    std::vector<float> values = mosaic.finish({0, first, out.width, rows});
    for (float& value : values) value = value * 2 - 1;
    const io::Pixels done = pixels_of(values, out.width, static_cast<int32_t>(rows));
    out.values.insert(out.values.end(), done.values.begin(), done.values.end());
  }
  mosaic.drop_above(end);
}

io::Pixels in_tiles(const models::Upscaler& network, const io::Pixels& picture, Device& device,
                    const UpscaleOptions& options) {
  const int64_t step = network.side_step(), scale = network.scale();
  const auto whole = [&](int64_t side) { return (side + step - 1) / step * step; };
  const int64_t height = whole(picture.height), width = whole(picture.width);
  const int64_t margin = options.overlap / 4;
  Mosaic mosaic(width * scale, height * scale, 3, (options.overlap - 2 * margin) * scale);
  const std::vector<Area> areas = areas_of(height, width, options.tile, options.overlap);
  TileProgress tiles{0, static_cast<int32_t>(areas.size())};
  io::Pixels out{.width = static_cast<int32_t>(picture.width * scale),
                 .height = static_cast<int32_t>(picture.height * scale),
                 .channels = 3,
                 .values = {}};
  out.values.reserve(static_cast<size_t>(out.width) * static_cast<size_t>(out.height) * 3);
  int64_t top = 0;  // of the tiles that are being made, as they are used
  for (const Area& area : areas) {
    const Tensor larger = network(part_of(picture, area, device), options.between);
    const Area used = without_edges(area, height, width, margin);
    if (used.top > top) move_rows(mosaic, used.top * scale, out);
    top = used.top;
    const Area part =
        scaled({used.left - area.left, used.top - area.top, used.width, used.height}, scale);
    const Tensor kept =
        larger.slice(Axis{1}, part.top, part.height).slice(Axis{2}, part.left, part.width);
    mosaic.add(kept.to_host<float>(), scaled(used, scale));
    ++tiles.done;
    if (options.tile_done) options.tile_done(tiles);
  }
  move_rows(mosaic, height * scale, out);
  return out;
}

}  // namespace

void check_enlarged(std::string_view field, const models::Upscaler& network, int32_t width,
                    int32_t height) {
  const int64_t scale = network.scale();
  check(std::max(width, height) * scale <= kMostEnlargedSide, field, width, " x ", height,
        " pixels, ", scale, " times as large, are more than ", kMostEnlargedSide, " a side");
}

io::Pixels upscaled(const models::Upscaler& network, const io::Pixels& picture, Device& device,
                    const UpscaleOptions& options) {
  UpscaleOptions now = options;
  while (true) {
    try {
      return in_tiles(network, picture, device, now);
    } catch (const Error& error) {
      const int64_t longer = std::max(picture.width, picture.height);
      const int64_t next = std::min(now.tile, longer) / 16 * 8;
      if (error.code() != Code::out_of_memory || next < 2 * options.overlap) throw;
      log(LogLevel::info, "a picture is enlarged in smaller tiles",
          {{"pixels", cat(next)}, {"reason", error.what()}});
      now.tile = next;
    }
  }
}

}  // namespace rbee::engine

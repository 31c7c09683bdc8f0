#include "rbee/engine/image/tiles.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/engine/image/mosaic.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"

namespace rbee::engine {
namespace {

using models::LatentDistribution;

Tensor cut(const Tensor& x, const Area& area, int64_t scale) {
  return contiguous(x.slice(Axis{1}, area.top * scale, area.height * scale)
                        .slice(Axis{2}, area.left * scale, area.width * scale));
}

Area scaled(const Area& area, int64_t scale) {
  return {area.left * scale, area.top * scale, area.width * scale, area.height * scale};
}

// The source of tiles: a picture with its circular axes continued for the overlap at both ends.
struct Unrolled {
  Tensor x;
  int64_t width = 0, height = 0;  // units
  Area inside;                    // the picture in it
};

// A unit is `scale` of x's pixels.
Unrolled unrolled(const Tensor& x, const TileOptions& options, int64_t scale) {
  const int64_t height = x.dim(1) / scale, width = x.dim(2) / scale;
  const int64_t above = options.circular.y ? std::min(options.overlap, height) : 0;
  const int64_t beside = options.circular.x ? std::min(options.overlap, width) : 0;
  const auto longer = [&](const Tensor& part, Axis axis, int64_t more) {
    if (more == 0) return part;
    const int64_t size = part.dim(axis.index);
    return concat({part.slice(axis, size - more, more), part, part.slice(axis, 0, more)}, axis);
  };
  return {longer(longer(x, Axis{1}, above * scale), Axis{2}, beside * scale),
          width + 2 * beside,
          height + 2 * above,
          {beside, above, width, height}};
}

// `run` with tiles of so many latents on a side, smaller ones while memory does not suffice.
// side: latents on the longer side of the whole.
template <typename Run>
auto with_memory(int64_t side, const TileOptions& options, const Run& run) {
  int64_t tile = options.tiled ? options.tile : std::max(side, options.tile);
  while (true) {
    try {
      return run(tile);
    } catch (const Error& error) {
      const int64_t next = tile > options.tile ? options.tile : std::min(tile, side) / 2;
      if (error.code() != Code::out_of_memory || next < 2 * options.overlap) throw;
      log(LogLevel::info, "the VAE goes on with smaller tiles",
          {{"latents", cat(next)}, {"reason", error.what()}});
      tile = next;
    }
  }
}

std::vector<float> decode(const models::Vae& vae, const Tensor& latent, int64_t tile,
                          const TileOptions& options) {
  const int64_t height = latent.dim(1), width = latent.dim(2), scale = vae.info().scale;
  if (height <= tile && width <= tile) {
    return vae.decode(latent, options.between, options.circular).to_host<float>();
  }
  const Unrolled whole = unrolled(latent, options, 1);
  const Area& inside = whole.inside;
  constexpr int64_t kColours = 3;
  Mosaic mosaic(whole.width * scale, whole.height * scale, kColours, options.overlap * scale);
  for (const Area& area : areas_of(whole.height, whole.width, tile, options.overlap)) {
    const Tensor picture = vae.decode(cut(whole.x, area, 1), options.between);
    mosaic.add(picture.to_host<float>(), scaled(area, scale));
  }
  const bool whole_axes = inside.width == whole.width && inside.height == whole.height;
  return whole_axes ? mosaic.take() : mosaic.finish(scaled(inside, scale));
}

LatentDistribution encode(const models::Vae& vae, const Tensor& image, int64_t tile,
                          const TileOptions& options) {
  const int64_t scale = vae.info().scale, channels = vae.info().latent_channels;
  const int64_t height = image.dim(1) / scale, width = image.dim(2) / scale;
  if (height <= tile && width <= tile) return vae.encode(image, options.circular);
  const Unrolled whole = unrolled(image, options, scale);
  Mosaic mean(whole.width, whole.height, channels, options.overlap);
  Mosaic log_variance = mean;
  bool random = false;
  for (const Area& area : areas_of(whole.height, whole.width, tile, options.overlap)) {
    if (options.between) options.between();
    const LatentDistribution found = vae.encode(cut(whole.x, area, scale));
    mean.add(found.mean.to_host<float>(), area);
    random = found.log_variance.defined();
    if (random) log_variance.add(contiguous(found.log_variance).to_host<float>(), area);
  }
  const Shape shape{1, height, width, channels};
  const auto on_device = [&](Mosaic& mosaic) {
    return from_host<float>(mosaic.finish(whole.inside), shape, image.device());
  };
  LatentDistribution out{.mean = on_device(mean), .log_variance = {}};
  if (random) out.log_variance = on_device(log_variance);
  return out;
}

}  // namespace

std::vector<float> decode_in_tiles(const models::Vae& vae, const Tensor& latent,
                                   const TileOptions& options) {
  const int64_t side = std::max(latent.dim(1), latent.dim(2));
  return with_memory(side, options,
                     [&](int64_t tile) { return decode(vae, latent, tile, options); });
}

LatentDistribution encode_in_tiles(const models::Vae& vae, const Tensor& image,
                                   const TileOptions& options) {
  const int64_t side = std::max(image.dim(1), image.dim(2)) / vae.info().scale;
  return with_memory(side, options,
                     [&](int64_t tile) { return encode(vae, image, tile, options); });
}

}  // namespace rbee::engine

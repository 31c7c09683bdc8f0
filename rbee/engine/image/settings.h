#pragma once
// A request with every default filled in and every picture decoded.

#include <array>
#include <optional>

#include "rbee/diffusion/samplers.h"
#include "rbee/engine/image/repaint.h"
#include "rbee/engine/image/source.h"

namespace rbee::engine {

// Where a repainted part goes.
struct Repainted {
  io::Pixels whole;  // the picture whose other parts stay
  Region region;     // of it
  Mask share;        // of the painted picture in the region
};

// How to enlarge a second pass's start: latents, in the order of LatentFilter, or pictures.
enum class UpscalerKind : uint8_t {
  latent,
  latent_antialiased,
  latent_bicubic,
  latent_bicubic_antialiased,
  latent_nearest,
  latent_nearest_exact,
  lanczos,
  nearest,
  network,
};

struct ImageSettings {
  int32_t width = 0;  // pixels, of the first pass
  int32_t height = 0;
  int32_t steps = 0;
  float guidance = 1;
  diffusion::Sampler sampler = diffusion::Sampler::euler;
  diffusion::Schedule schedule = diffusion::Schedule::automatic;
  uint64_t seed = 0;             // of the first image
  uint64_t variation_seed = 0;   // the same
  float variation_strength = 0;  // 0 to 1
  int32_t batch = 1;
  Circular circular;               // from the request's tiling
  std::optional<io::Pixels> init;  // of width and height
  std::optional<Mask> mask;        // of width and height, all or nothing
  Repainted repainted;             // if there is a mask

  // The request's control pictures at each pass's size; the second is empty without a second pass.
  std::array<std::vector<io::Pixels>, 2> controls;

  bool has_hires = false;
  UpscalerKind upscaler = UpscalerKind::latent;
  const models::Upscaler* hires_network = nullptr;  // for UpscalerKind::network
  const models::Upscaler* final_network = nullptr;  // for the finished pictures, or null
  int32_t final_width = 0;  // of the finished pictures, before a network enlarges them
  int32_t final_height = 0;
};

// The seed of image `index`; with a variation all images have the same.
uint64_t seed_of(const ImageSettings& settings, int32_t index);

// Steps of the second pass.
int32_t hires_steps(const ImageRequest& request, const ImageSettings& settings);

// Throws as ImageEngine::submit says. Thread-safe: reads only what does not change while the engine
// runs.
ImageSettings resolve(const ImageSource& source, const ImageRequest& request);

// Of all pictures that the request is drawn from, as sent. Those that resolve() refuses count none.
int64_t pixels_sent(const ImageRequest& request);

// The step at which sampling from a picture starts, and the number of noise levels for it.
struct Start {
  int32_t levels = 0;
  int32_t first = 0;
};
// `flow`: StrengthRule::part rounds the steps up, as diffusers does only for flow models.
Start start_of(StrengthRule rule, int32_t steps, float strength, bool flow);

// The settings of image `index`, as AUTOMATIC1111 writes them into its pictures.
std::string parameters_text(const ImageRequest& request, const ImageSettings& settings,
                            const ImageModelInfo& model, int32_t index);

}  // namespace rbee::engine

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
  io::Pixels whole;  // the picture that keeps what is not painted
  Region region;     // of it
  Mask share;        // of the painted in the region
};

// How a second pass's start is enlarged: latents, in the order of LatentFilter, or pictures.
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
  Circular circular;               // of the request's tiling
  std::optional<io::Pixels> init;  // of width and height
  std::optional<Mask> mask;        // of width and height, all or nothing
  Repainted repainted;             // where there is a mask

  // Of the request's controls, of each pass's size; the second is empty without a second pass.
  std::array<std::vector<io::Pixels>, 2> controls;

  bool has_hires = false;
  UpscalerKind upscaler = UpscalerKind::latent;
  const models::Upscaler* hires_network = nullptr;  // of UpscalerKind::network
  const models::Upscaler* final_network = nullptr;  // of the pictures that come, or null
  int32_t final_width = 0;  // of the pictures that come, or that a network enlarges
  int32_t final_height = 0;
};

// Of image `index`: with a variation all have one seed.
uint64_t seed_of(const ImageSettings& settings, int32_t index);

// Of a second pass.
int32_t hires_steps(const ImageRequest& request, const ImageSettings& settings);

// Throws as ImageEngine::submit says. Reads what does not change while the engine runs, so any
// thread may call it.
ImageSettings resolve(const ImageSource& source, const ImageRequest& request);

// The step at which sampling starts from a picture, and how many levels there must be for it.
struct Start {
  int32_t levels = 0;
  int32_t first = 0;
};
// `flow`: StrengthRule::part rounds the steps up, as diffusers does for models of that kind alone.
Start start_of(StrengthRule rule, int32_t steps, float strength, bool flow);

// The settings that made image `index`, as AUTOMATIC1111 writes them into its pictures.
std::string parameters_text(const ImageRequest& request, const ImageSettings& settings,
                            const ImageModelInfo& model, int32_t index);

}  // namespace rbee::engine

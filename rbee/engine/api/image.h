#pragma once
// An image model as a server sees it: submit a request, receive events, cancel, read figures.
// make_image_engine() (image/engine.h) implements it; server tests implement it with a script.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/io/image/encode.h"

namespace rbee::engine {

// How a prompt writes weights. a1111: (x:1.2), [x], BREAK; scales the states and restores their
// mean. comfy: (x:1.2); moves the states away from those of the empty prompt. none: the prompt is
// plain text.
enum class PromptRule : uint8_t { a1111, comfy, none };
// How PromptRule::a1111 applies weights, in A1111's words. original: as above. no_norm: does not
// restore the mean. ignore: no weights.
enum class Emphasis : uint8_t { original, no_norm, ignore };
// The random number generator behind a seed. torch: PyTorch's on a CPU (diffusers, ComfyUI).
// philox: PyTorch's on an NVIDIA GPU (AUTOMATIC1111).
enum class NoiseSource : uint8_t { torch, philox };
// What lies under the mask before sampling: the picture, noise, nothing, or colours that run in
// from its surroundings.
enum class MaskFill : uint8_t { original, noise, nothing, surroundings };
// How many of `steps` a strength below 1 runs. part: int(steps * strength), as diffusers. a1111:
// int(steps * strength) + 1, as AUTOMATIC1111. all: exactly `steps`.
enum class StrengthRule : uint8_t { part, a1111, all };

// How a picture changes its ratio: stretch it; crop to the largest middle part; or keep all of it
// and extend its outermost pixels to the edges. A1111's resize modes.
enum class Fit : uint8_t { stretch, crop, fill };

// Axes along which copies of the picture fit together without a seam.
enum class Tiling : uint8_t { none, x, y, both };

// How to hurry a running request: it takes its pictures as they are after the next step. pictures:
// only the current ones. request: it also makes no further ones.
enum class Hurry : uint8_t { none, pictures, request };

struct LoraUse {
  std::string path;       // a file or a PEFT folder, named below the model's folder of adapters
  float strength = 1.0f;  // -10 to 10
  // Strength for the text encoders; absent = strength.
  std::optional<float> text_strength = std::nullopt;
};

// A picture such as edges or a pose that guides a ControlNet (Zhang et al. 2023).
struct ControlUse {
  std::string name;        // of one of the engine's networks; empty = the only one
  std::string image;       // bytes of a picture file
  Fit fit = Fit::stretch;  // fits this picture to the generated one
  float scale = 1.0f;      // 0 to 2: factor of the network's output
  float start = 0.0f;      // 0 to 1: share of the steps at which it begins
  float finish = 1.0f;     // start to 1: share of the steps at which it ends
};

// Moves the starting noise on a sphere towards the noise of another seed.
struct Variation {
  std::optional<uint64_t> seed;  // of the first image; absent: a fresh one
  float strength = 0;  // 0 to 1; above 0 all images share `seed`, and image i uses this seed + i
};

// Extra noise of samplers, under k-diffusion's names; see diffusion::Churn.
struct AddedNoise {
  float churn = 0;  // 0 to 100; for Euler, Heun and DPM2
  float tmin = 0;   // 0 to 1000: churn applies to noise levels from here ...
  float tmax = 0;   // ... to here, 0 to 1000; 0 = no bound
  float noise = 1;  // 0 to 2: deviation of the noise that these, ancestral and SDE samplers add
};

// A second pass at a larger size. It starts from the first pass's enlarged latent, or from its
// enlarged picture, decoded and encoded again. As in AUTOMATIC1111, philox noise starts anew from
// the seed, and a StrengthRule other than `part` runs exactly `steps`.
struct HiresFix {
  float scale = 2.0f;  // 1 to 4, for both sides; the product is rounded to what the model takes
  // In place of scale: pixels, multiples of 8, 64 to 2048. With one of them the ratio stays. With
  // both, the parts beyond that ratio are cut off on two sides.
  int32_t width = 0;
  int32_t height = 0;
  int32_t steps = 0;      // 0 = as in the first pass
  float strength = 0.7f;  // 0 to 1: how much noise the enlarged latent gets
  // A1111's names: "Latent", also followed by (antialiased), (bicubic), (bicubic antialiased),
  // (nearest) or (nearest-exact); "Lanczos"; "Nearest"; or a network's name.
  std::string upscaler;
};

// "0" and "absent" mean the model's default unless a comment says otherwise.
struct ImageRequest {
  std::string job_id;
  std::string client;  // clients share the model for equal times
  std::string prompt;  // may name LoRAs, see image_loras.h
  std::string negative_prompt;
  PromptRule prompt_rule = PromptRule::a1111;
  Emphasis emphasis = Emphasis::original;  // for PromptRule::a1111; the others have one each
  // Take CLIP's n-th last layer, 0 to 12. 1 also means the model's default, whichever layer that
  // is: A1111's clients send it with every request.
  int32_t clip_skip = 0;

  // Pixels, a multiple of 8, 64 to 2048; 0 = the input image's, or the model's own. For an input
  // image above 2048, 0 keeps its ratio: to the other side if that is given, else with the model's
  // own size as the shorter side.
  int32_t width = 0;
  int32_t height = 0;                   // the same
  int32_t steps = 0;                    // 1 to 150
  std::optional<float> guidance_scale;  // 0 to 30; 1 and below = the prompt alone
  float guidance_rescale = 0.0f;        // 0 to 1; 0 = off
  std::string sampler;                  // a name of A1111, diffusers or stable-diffusion.cpp
  // The noise schedule, e.g. "karras". Empty or "automatic": the model's own; with philox noise,
  // A1111's choice for the sampler.
  std::string schedule;
  std::optional<float> eta;  // 0 to 1: share of fresh noise, for samplers that add some

  std::optional<uint64_t> seed;  // of the first image; absent: a fresh one, which is reported
  Variation variation;
  // After a pass's starting noise, draw from seed + seed_delta; 0 = continue with the same numbers.
  // A1111's eta noise seed delta.
  int32_t seed_delta = 0;
  // The middle of the noise is that of a picture of this size, in pixels (both 0 or 8 to 2048), so
  // that a seed gives a similar picture at another size. A1111's "seed resize from".
  int32_t seed_width = 0;
  int32_t seed_height = 0;
  AddedNoise added_noise;
  NoiseSource noise_source = NoiseSource::torch;
  int32_t count = 1;  // images, 1 to 16; image i has seed + i
  int32_t batch = 0;  // most images that share a step; 0 = the engine's choice

  std::string init_image;  // bytes of a picture file; empty = start from noise
  // Its transparent parts become white, as in AUTOMATIC1111; else their colours count.
  bool init_on_white = false;
  Fit fit = Fit::stretch;  // fits init_image and its mask to width and height; not with mask_only
  // Bytes of a picture file, or empty. A mask of another size is resized to init_image, as in
  // A1111. If it has transparent pixels, those are repainted, else the white ones.
  std::string mask_image;
  bool mask_opaque = false;  // repaint its opaque pixels instead, as AUTOMATIC1111 reads masks
  bool mask_invert = false;
  int32_t mask_blur = 0;  // pixels, 0 to 64: standard deviation of the mask's soft edge
  MaskFill mask_fill = MaskFill::original;
  // Paints only the part of init_image around the mask, at width and height (0 = the model's own),
  // and puts it back; the picture keeps its size.
  bool mask_only = false;
  int32_t mask_padding = 32;  // pixels of init_image around the mask, 0 to 512
  float strength = 0.8f;      // 0 to 1: share of the noise that init_image gets
  StrengthRule strength_rule = StrengthRule::part;
  std::optional<HiresFix> hires;
  std::string upscaler;  // a network that enlarges the finished pictures; empty = none

  std::vector<LoraUse> loras;
  std::vector<ControlUse> controls;
  int32_t preview_interval = 0;  // a Preview every this many steps; 0 = none
  // Replaces preview_interval: this many previews, 0 to 150, spread over all steps, none after the
  // last; 0 = off.
  int32_t preview_count = 0;
  Tiling tiling = Tiling::none;
  bool tiled_vae = false;  // decode in overlapping tiles, to save memory
  io::Encoding encoding;   // of the finished files; previews are PNG
};

struct ImageStarted {
  std::string model;
  uint64_t seed = 0;  // of the first image
  int32_t width = 0;  // of the finished images
  int32_t height = 0;
  int32_t steps = 0;  // in all batches and passes together
  int32_t count = 0;
  std::string sampler;  // as this project names them, e.g. "DPM++ 2M", "karras"
  std::string schedule;
  float guidance_scale = 0;
};
// Progress of a network that enlarges a picture tile by tile.
struct TileProgress {
  int32_t done = 0;
  int32_t total = 0;  // grows if memory runs out; 0: no picture is being enlarged
};
struct ImageProgress {
  int32_t step = 0;              // steps done, 1-based; DPM adaptive skips some
  int32_t total = 0;             // as ImageStarted::steps
  double seconds = 0;            // since ImageStarted
  double steps_per_second = 0;   // of the running batch
  double images_per_second = 0;  // at this pace, sampling only; 0 = not known yet
  TileProgress tiles;            // also sent after each of them
};
struct ImagePreview {
  std::string png;  // a small picture of the state after `step`
  int32_t step = 0;
  int32_t index = 0;  // of the image that it shows
};
struct ImageReady {
  std::string file;                               // contains its settings as text, see `parameters`
  io::ImageFormat format = io::ImageFormat::png;  // of the file, as requested
  std::string parameters;                         // in AUTOMATIC1111's form
  uint64_t seed = 0;
  int32_t index = 0;
  int32_t width = 0;
  int32_t height = 0;
};
struct ImageFinished {
  bool cancelled = false;
  int32_t images = 0;  // images sent
  int32_t steps = 0;   // steps run
  double text_ms = 0;  // wall times of text encoding, sampling, and VAE with files
  double sample_ms = 0;
  double decode_ms = 0;
};
struct ImageFailed {
  Code code;
  std::string message;
};

// Receives one request's events, in order: started; progress, preview and image in any number; then
// finished or failed exactly once. Called on threads of the engine; must return at once and must
// not throw.
class ImageSink {
 public:
  virtual ~ImageSink() = default;
  virtual void on_started(const ImageStarted&) noexcept = 0;
  virtual void on_progress(const ImageProgress&) noexcept = 0;
  virtual void on_preview(const ImagePreview&) noexcept = 0;
  virtual void on_image(ImageReady&&) noexcept = 0;
  virtual void on_finished(const ImageFinished&) noexcept = 0;
  virtual void on_failed(const ImageFailed&) noexcept = 0;
};

// A textual inversion: a word that stands for this many tokens.
struct WordInfo {
  std::string word;
  int32_t vectors = 0;
};

// The values of LoraUse::path that name one adapter.
struct LoraName {
  std::string path;   // its place below the model's folder of adapters, without its ending
  std::string alias;  // a name inside the file, if no other file has it; else its path
};

// A network that enlarges pictures.
struct UpscalerInfo {
  std::string name;
  int32_t scale = 1;
};

// The largest side of a picture enlarged by a network, in pixels.
inline constexpr int64_t kMostEnlargedSide = 8192;

// Callbacks while a picture is enlarged, on a thread of the engine; functions may be empty.
struct UpscaleHooks {
  std::string client = {};         // clients take turns
  std::function<bool()> going_on;  // called between layers, and while it waits; false ends it
  std::function<void(const TileProgress&)> tile;  // after each tile
};

struct ImageModelInfo {
  std::string id;            // reported name
  std::string architecture;  // e.g. "sd1", "sdxl"
  std::string device;        // e.g. "cpu:0"
  std::string dtype;         // what the denoiser computes in, e.g. "f16" or "int8"
  int32_t default_width = 0;
  int32_t default_height = 0;
  int32_t max_side = 0;  // pixels
  int32_t default_steps = 0;
  float default_guidance = 0;
  std::string default_sampler;
  std::string default_schedule;
  bool inpainting = false;            // the denoiser reads a mask; other models repaint by blending
  std::vector<std::string> controls;  // names of the ControlNets
  std::vector<UpscalerInfo> upscalers;
  std::vector<WordInfo> embeddings;
  std::vector<std::string> skipped_embeddings;  // files that do not fit the model, by name
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  // Why a picture's steps are not captured and replayed, in one line; empty: they are.
  std::string capture_refusal = {};
};

// Figures since start; a consistent snapshot.
struct ImageStats {
  int32_t running = 0;  // started, including those paused for others
  int32_t waiting = 0;
  uint64_t requests_finished = 0;
  uint64_t requests_failed = 0;
  uint64_t requests_cancelled = 0;
  uint64_t images = 0;
  uint64_t steps = 0;  // calls of the denoiser
  double text_seconds = 0;
  double sample_seconds = 0;
  double decode_seconds = 0;
  // Of a device with its own memory, used by any program; 0 for a CPU, or if unknown.
  int64_t device_memory_bytes = 0;
  int64_t device_memory_free_bytes = 0;
  bool healthy = true;  // false after a device error; the engine then takes no new work
};

class ImageEngine {
 public:
  virtual ~ImageEngine() = default;
  virtual const ImageModelInfo& model() const = 0;
  // Queues the request, after others of its client; thread-safe. Throws invalid_argument for values
  // out of range and images that do not decode (the message names field and range), out_of_memory
  // if the queue is full, and unsupported if the engine takes no new work or the model cannot do
  // what the request asks.
  virtual void submit(ImageRequest request, std::shared_ptr<ImageSink> sink) = 0;
  // Ends the request, waiting or running, at the next step with ImageFinished::cancelled.
  // Thread-safe; false if no such request is waiting or running.
  virtual bool cancel(const std::string& job_id) = 0;
  // Takes the request's current pictures as they are at the next step; a waiting request counts as
  // running. Thread-safe; false if no such request is waiting or running.
  virtual bool hurry(const std::string& job_id, Hurry how) = 0;
  // Enlarges the picture by one of model().upscalers, in turns with other clients' requests, and
  // returns when done. Thread-safe. Throws invalid_argument for an unknown name and for a result of
  // more than 8192 pixels a side, cancelled if a hook ends it, unsupported or cancelled if the
  // engine takes no new work, and what the device throws.
  virtual io::Pixels upscale(const std::string& network, io::Pixels picture,
                             const UpscaleHooks& hooks) = 0;
  virtual ImageStats stats() const = 0;
  virtual std::vector<LoraName> loras() const = 0;
  // Takes no new work, cancels everything, and joins the engine's threads. Idempotent.
  virtual void stop() = 0;
};

// Throws invalid_argument, naming field, value and range, for what no model could do. submit()
// checks the names of samplers and schedules and the contents of images.
void validate(const ImageRequest& request);

// A value of `sampler` or `schedule`: AUTOMATIC1111's name, and its aliases.
struct NamedChoice {
  std::string name;
  std::vector<std::string> aliases;
};
const std::vector<NamedChoice>& sampler_choices();
const std::vector<NamedChoice>& schedule_choices();

}  // namespace rbee::engine

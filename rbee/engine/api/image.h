#pragma once
// What a server sees of an image model: submit a request, receive events, cancel, read figures.
// Implemented by make_image_engine (image_engine.h); tests of the server implement it with a
// script.

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

// How weights are written into a prompt. a1111: (x:1.2), [x], BREAK; the states are scaled and
// their mean restored. comfy: (x:1.2); the states move away from those of the empty prompt. none:
// as it is.
enum class PromptRule : uint8_t { a1111, comfy, none };
// What the weights of PromptRule::a1111 do to the states, in A1111's words. original: as above.
// no_norm: the mean is not restored. ignore: nothing.
enum class Emphasis : uint8_t { original, no_norm, ignore };
// Which generator's numbers a seed means. torch: PyTorch's on a CPU (diffusers, ComfyUI). philox:
// PyTorch's on an NVIDIA GPU (AUTOMATIC1111).
enum class NoiseSource : uint8_t { torch, philox };
// What stands under the mask before sampling: the picture itself, its noise alone, nothing, or
// colours that run in from its surroundings.
enum class MaskFill : uint8_t { original, noise, nothing, surroundings };
// How many of `steps` a strength below 1 runs. part: int(steps * strength), as diffusers.
// a1111: int(steps * strength) + 1 of them, as AUTOMATIC1111. all: exactly `steps`.
enum class StrengthRule : uint8_t { part, a1111, all };

// How a picture becomes one of another ratio: stretched; its middle, as large as fits; or all of
// it, with its outermost pixels going on to the edges. A1111's resize modes.
enum class Fit : uint8_t { stretch, crop, fill };

// Along which axes copies of a picture fit together without a seam.
enum class Tiling : uint8_t { none, x, y, both };

// How a running request is hurried: its pictures are taken as they are after the next step.
// pictures: those in work; the others are made as asked. request: no others are made.
enum class Hurry : uint8_t { none, pictures, request };

struct LoraUse {
  std::string path;       // file or PEFT's folder, a name below the model's folder of adapters
  float strength = 1.0f;  // -10 to 10
  // The same for text encoders; absent = strength.
  std::optional<float> text_strength = std::nullopt;
};

// A picture such as edges or a pose that a ControlNet (Zhang et al. 2023) steers by.
struct ControlUse {
  std::string name;        // of a network that the engine was given; empty = the only one
  std::string image;       // bytes of a picture file
  Fit fit = Fit::stretch;  // of that to the picture that is made
  float scale = 1.0f;      // 0 to 2: of what the network adds
  float start = 0.0f;      // 0 to 1: share of the steps at which it begins
  float finish = 1.0f;     // start to 1: share of the steps at which it ends
};

// The noise that a picture starts from, moved on a sphere towards that of another seed.
struct Variation {
  std::optional<uint64_t> seed;  // of the first image; fresh when absent
  float strength = 0;            // 0 to 1; above 0 all images have the same seed, and this one + i
};

// Noise that samplers add besides, under k-diffusion's names; see diffusion::Churn.
struct AddedNoise {
  float churn = 0;  // 0 to 100; of Euler, Heun and DPM2
  float tmin = 0;   // 0 to 1000: noise levels that churn is for
  float tmax = 0;   // 0 to 1000; 0 = no bound
  float noise = 1;  // 0 to 2: deviation of what these, ancestral and SDE samplers add
};

// A second pass at a larger size, started from the enlarged result of the first: its latent, or its
// picture, which is decoded and encoded again. With philox numbers it draws from the seed anew, and
// with a StrengthRule other than `part` it runs exactly its steps, both as AUTOMATIC1111.
struct HiresFix {
  float scale = 2.0f;  // 1 to 4, of both sides; the product is rounded to what the model takes
  // In place of scale, pixels, multiples of 8, 64 to 2048. One of them: the ratio stays. Both: what
  // is beyond that ratio is cut off on both sides.
  int32_t width = 0;
  int32_t height = 0;
  int32_t steps = 0;      // 0 = as the first pass
  float strength = 0.7f;  // 0 to 1: how far the enlarged latent is noised again
  // A1111's: "Latent", the same with (antialiased), (bicubic), (bicubic antialiased), (nearest) or
  // (nearest-exact) behind it, "Lanczos", "Nearest", or a network's name.
  std::string upscaler;
};

// "0" and "absent" stand for the model's own default unless said otherwise.
struct ImageRequest {
  std::string job_id;
  std::string client;  // whose turn it takes: clients have the model for equal times
  std::string prompt;  // may name LoRAs, see image_loras.h
  std::string negative_prompt;
  PromptRule prompt_rule = PromptRule::a1111;
  Emphasis emphasis = Emphasis::original;  // of PromptRule::a1111; the others have one each
  // The n-th last layer of CLIP, 0 to 12. 1 is the model's own too, whichever that is: clients of
  // A1111 send it with every request.
  int32_t clip_skip = 0;

  // Pixels, multiple of 8, 64 to 2048; 0 = the input image's or the model's own. Of an input image
  // above 2048: with its ratio, from the other one or with the model's own as the shorter one.
  int32_t width = 0;
  int32_t height = 0;                   // the same
  int32_t steps = 0;                    // 1 to 150
  std::optional<float> guidance_scale;  // 0 to 30; 1 and below = the prompt alone
  float guidance_rescale = 0.0f;        // 0 to 1; 0 = off
  std::string sampler;                  // as A1111, diffusers or stable-diffusion.cpp call it
  // Of the noise levels, e.g. "karras". Empty or "automatic": the model's own; with philox numbers
  // what A1111 means by it, which depends on the sampler.
  std::string schedule;
  std::optional<float> eta;  // 0 to 1: share of fresh noise of samplers that add some

  std::optional<uint64_t> seed;  // of the first image; fresh and reported when absent
  Variation variation;
  // Numbers after those that a pass starts from are those of another seed, so much above; 0 = the
  // same one goes on. A1111's eta noise seed delta.
  int32_t seed_delta = 0;
  // The middle of the noise is that of a picture of this size, pixels, both 0 or 8 to 2048: a seed
  // gives a similar picture at another size. A1111's "seed resize from".
  int32_t seed_width = 0;
  int32_t seed_height = 0;
  AddedNoise added_noise;
  NoiseSource noise_source = NoiseSource::torch;
  int32_t count = 1;  // images, 1 to 16; image i has seed + i
  int32_t batch = 0;  // images that share a step at most; 0 = the engine's choice

  std::string init_image;  // bytes of a picture file; empty = from noise alone
  // What of it is transparent becomes white, as in AUTOMATIC1111; else its colours count.
  bool init_on_white = false;
  Fit fit = Fit::stretch;  // of init_image and its mask to width and height; not with mask_only
  // Bytes of a picture file, or empty; of another size than init_image it is brought to that, as in
  // A1111. Where it has transparent pixels those are repainted, else white ones.
  std::string mask_image;
  bool mask_opaque = false;  // its opaque pixels instead, as AUTOMATIC1111 reads masks
  bool mask_invert = false;
  int32_t mask_blur = 0;  // pixels, 0 to 64: standard deviation of the mask's soft edge
  MaskFill mask_fill = MaskFill::original;
  // Only the part of init_image around the mask is painted, at width and height (0 = the model's
  // own), and put back into the picture, whose size stays.
  bool mask_only = false;
  int32_t mask_padding = 32;  // pixels of init_image around the mask, 0 to 512
  float strength = 0.8f;      // 0 to 1: share of the noise that init_image gets
  StrengthRule strength_rule = StrengthRule::part;
  std::optional<HiresFix> hires;
  std::string upscaler;  // a network that enlarges the pictures that are made; empty = none

  std::vector<LoraUse> loras;
  std::vector<ControlUse> controls;
  int32_t preview_interval = 0;  // a Preview after every so many steps; 0 = none
  // In its place so many of them, 0 to 150, spread over all steps and none after the last; 0 = off.
  int32_t preview_count = 0;
  Tiling tiling = Tiling::none;
  bool tiled_vae = false;  // decodes in overlapping tiles, for less memory
  io::Encoding encoding;   // of the files that come; previews are PNG
};

struct ImageStarted {
  std::string model;
  uint64_t seed = 0;  // of the first image
  int32_t width = 0;  // of the images that come
  int32_t height = 0;
  int32_t steps = 0;  // in all, over every batch and pass
  int32_t count = 0;
  std::string sampler;  // names as this project reports them, e.g. "DPM++ 2M", "karras"
  std::string schedule;
  float guidance_scale = 0;
};
// Parts of a picture that a network enlarges one after another.
struct TileProgress {
  int32_t done = 0;
  int32_t total = 0;  // more where memory runs out; 0: no picture is being enlarged
};
struct ImageProgress {
  int32_t step = 0;              // done so far, 1-based; DPM adaptive leaves some out
  int32_t total = 0;             // as ImageStarted::steps
  double seconds = 0;            // since ImageStarted
  double steps_per_second = 0;   // of the running batch
  double images_per_second = 0;  // at this pace, sampling alone; 0 = not known yet
  TileProgress tiles;            // after each of them too
};
struct ImagePreview {
  std::string png;  // a small picture of the state after `step`
  int32_t step = 0;
  int32_t index = 0;  // of the image it shows
};
struct ImageReady {
  std::string file;                               // with its settings as text, see `parameters`
  io::ImageFormat format = io::ImageFormat::png;  // of the file, as asked for
  std::string parameters;                         // in AUTOMATIC1111's form
  uint64_t seed = 0;
  int32_t index = 0;
  int32_t width = 0;
  int32_t height = 0;
};
struct ImageFinished {
  bool cancelled = false;
  int32_t images = 0;  // sent
  int32_t steps = 0;   // run
  double text_ms = 0;  // wall time of the text encoders, of sampling, of the VAE and the PNGs
  double sample_ms = 0;
  double decode_ms = 0;
};
struct ImageFailed {
  Code code;
  std::string message;
};

// Receives one request's events, in order: started, then progress, preview and image as they come,
// then finished or failed exactly once. Called on threads of the engine; must return at once and
// must not throw.
class ImageSink {
 public:
  virtual ~ImageSink() = default;
  virtual void on_started(const ImageStarted&) noexcept = 0;
  virtual void on_progress(const ImageProgress&) noexcept = 0;
  virtual void on_preview(const ImagePreview&) noexcept = 0;
  virtual void on_image(const ImageReady&) noexcept = 0;
  virtual void on_finished(const ImageFinished&) noexcept = 0;
  virtual void on_failed(const ImageFailed&) noexcept = 0;
};

// A word of textual inversion, which stands for as many tokens.
struct WordInfo {
  std::string word;
  int32_t vectors = 0;
};

// What LoraUse::path may be for one adapter.
struct LoraName {
  std::string path;   // its place below the model's folder of adapters, without its ending
  std::string alias;  // a name inside the file, where no other has it; else its path
};

// A network that enlarges pictures.
struct UpscalerInfo {
  std::string name;
  int32_t scale = 1;
};

// Pixels a side of a picture that a network has made, at most.
inline constexpr int64_t kMostEnlargedSide = 8192;

// What is told and asked of a picture that is being enlarged, on a thread of the engine; functions
// may be empty.
struct UpscaleHooks {
  std::string client = {};         // whose turn it takes
  std::function<bool()> going_on;  // asked between layers, and while it waits; false ends it
  std::function<void(const TileProgress&)> tile;  // after each
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
  bool inpainting = false;            // the denoiser reads a mask; others repaint by blending
  std::vector<std::string> controls;  // names of the ControlNets
  std::vector<UpscalerInfo> upscalers;
  std::vector<WordInfo> embeddings;
  std::vector<std::string> skipped_embeddings;  // files that do not fit the model, by name
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  // Why the steps of a picture are not captured and replayed, one line; empty: they are.
  std::string capture_refusal = {};
};

// Figures since start; a consistent snapshot.
struct ImageStats {
  int32_t running = 0;  // begun, those included that are paused for others
  int32_t waiting = 0;
  uint64_t requests_finished = 0;
  uint64_t requests_failed = 0;
  uint64_t requests_cancelled = 0;
  uint64_t images = 0;
  uint64_t steps = 0;  // calls of the denoiser
  double text_seconds = 0;
  double sample_seconds = 0;
  double decode_seconds = 0;
  // Of a device with memory of its own, whoever uses it; 0 for a CPU, and when not known.
  int64_t device_memory_bytes = 0;
  int64_t device_memory_free_bytes = 0;
  bool healthy = true;  // false after a device error; no new work is taken
};

class ImageEngine {
 public:
  virtual ~ImageEngine() = default;
  virtual const ImageModelInfo& model() const = 0;
  // Queues the request, behind others of its client; thread-safe. Throws invalid_argument for
  // values out of range and images that do not decode (the message names field and range),
  // out_of_memory when the queue is full, and unsupported when the engine takes no new work or the
  // model cannot do what is asked.
  virtual void submit(ImageRequest request, std::shared_ptr<ImageSink> sink) = 0;
  // Ends the request with ImageFinished::cancelled, waiting or running, at the next step.
  // Thread-safe; false when no such request is waiting or running.
  virtual bool cancel(const std::string& job_id) = 0;
  // Takes the pictures that the request is at as they are, at the next step; those that wait count
  // as running. Thread-safe; false when no such request is waiting or running.
  virtual bool hurry(const std::string& job_id, Hurry how) = 0;
  // The picture enlarged by one of model().upscalers, in turns with requests of other clients;
  // blocks until then. Thread-safe. Throws invalid_argument for another name and a picture that
  // would become more than 8192 pixels a side, cancelled when a hook ends it, unsupported and
  // cancelled when the engine takes no new work, and what the device throws.
  virtual io::Pixels upscale(const std::string& network, io::Pixels picture,
                             const UpscaleHooks& hooks) = 0;
  virtual ImageStats stats() const = 0;
  virtual std::vector<LoraName> loras() const = 0;
  // Takes no new work, cancels everything, and joins the engine's threads. Idempotent.
  virtual void stop() = 0;
};

// Throws invalid_argument naming field, value and range, for what no model could do. Names of
// samplers and schedules and the contents of images are checked by submit().
void validate(const ImageRequest& request);

// What `sampler` and `schedule` may be, by the names of AUTOMATIC1111 and the aliases understood.
struct NamedChoice {
  std::string name;
  std::vector<std::string> aliases;
};
const std::vector<NamedChoice>& sampler_choices();
const std::vector<NamedChoice>& schedule_choices();

}  // namespace rbee::engine

#pragma once
// An image request as every API reads it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rbee::server {

// A picture as sent.
struct SentImage {
  std::string data;    // bytes of the file, or their base64 form
  bool base64 = true;  // a "data:" URL counts as base64
  bool empty() const { return data.empty(); }
};

struct SentLora {
  std::string path;
  float strength = 1;
  std::optional<float> text_strength;  // for text encoders; absent = strength
};

// A picture that guides a ControlNet.
struct SentControl {
  std::string model;  // empty: the only one
  SentImage image;
  std::string fit;  // "stretch", "crop" or "fill"
  std::optional<float> scale, start, finish;
};

struct SentHires {
  std::optional<float> scale;
  std::optional<int32_t> width, height;  // pixels, in place of scale
  std::optional<int32_t> steps;
  std::optional<float> strength;
  std::string upscaler;
};

// Absent and null fields are empty; rbee/engine/api/image.h has the ranges. In the choices below,
// "" means absent.
struct ImageBody {
  std::string client;                // the sender; no field of a body
  std::shared_ptr<const void> room;  // of a large body, held until the request ends
  std::string prompt;
  std::string negative_prompt;
  std::string prompt_rule;  // "a1111", "comfy" or "none"
  std::string emphasis;     // AUTOMATIC1111: "Original", "No norm" or "Ignore"
  std::optional<int32_t> clip_skip;
  std::optional<int32_t> width, height;  // pixels
  std::optional<int32_t> steps;
  std::optional<float> guidance_scale;
  std::optional<float> distilled_guidance;  // Forge: for a model trained with guidance
  std::optional<float> guidance_rescale;
  std::string sampler;
  std::string schedule;
  std::optional<float> eta;
  std::optional<uint64_t> seed;
  std::optional<uint64_t> subseed;
  std::optional<float> subseed_strength;
  std::optional<int32_t> seed_delta;
  std::optional<int32_t> seed_width, seed_height;  // pixels
  std::optional<float> churn, tmin, tmax, noise;
  std::string noise_source;  // "torch" or "philox"
  std::optional<int32_t> count;
  std::optional<int32_t> batch;
  SentImage init_image;
  bool init_on_white = false;  // its transparent parts become white
  std::string fit;             // "stretch", "crop" or "fill"
  SentImage mask_image;
  bool mask_opaque = false;   // in a partly transparent mask, repaint the opaque part
  bool mask_of_init = false;  // without a mask, repaint init_image's transparent part
  bool mask_invert = false;
  std::optional<int32_t> mask_blur;
  std::string mask_fill;  // "original", "noise", "nothing" or "surroundings"
  bool mask_only = false;
  std::optional<int32_t> mask_padding;  // pixels
  std::optional<float> strength;
  std::string strength_rule;  // "part", "a1111" or "all"
  std::optional<SentHires> hires;
  std::string upscaler;  // a network's name, for the finished pictures
  std::vector<SentLora> loras;
  std::vector<SentControl> controls;
  std::optional<int32_t> preview_interval;
  std::string tiling;  // "none", "x", "y" or "both"
  bool tiled_vae = false;
  std::string output_format;                  // "png", "jpeg" or "webp"
  std::optional<int32_t> output_compression;  // quality of jpeg and webp, 0 to 100
  bool stream = false;                        // OpenAI: events instead of one answer
  std::optional<int32_t> partials;            // OpenAI: pictures before the last one
  bool as_url = false;                        // OpenAI: "data:" URLs instead of base64
  bool send_images = true;                    // AUTOMATIC1111
  std::string checkpoint;                     // AUTOMATIC1111: the model's name, if sent
  std::string hires_checkpoint;               // AUTOMATIC1111: the same for a second pass
  std::string task;                           // AUTOMATIC1111: name for progress requests
  std::string request;  // AUTOMATIC1111: the body without its pictures; the answer repeats it
};

}  // namespace rbee::server

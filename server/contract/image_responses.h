#pragma once
// What an image worker sends, as JSON on one line. Pictures are given as base64 of files: PNG
// unless something else was asked for, previews always.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rbee::server {

struct ImageHealth {
  bool healthy = true;
  std::string model;
  std::string architecture;
  std::string dtype;
  std::string device;
  int32_t default_width = 0, default_height = 0;  // pixels
  int32_t default_steps = 0;
  bool inpainting = false;
  int64_t parameters = 0;
  int64_t memory_bytes = 0;
  double uptime_seconds = 0;
  std::string capture_refusal = {};  // why steps are not captured and replayed; empty: they are
};

struct ImageStartedEvent {
  std::string job_id;
  std::string model;
  std::string started_at;  // ISO 8601
  uint64_t seed = 0;
  int32_t width = 0, height = 0;
  int32_t steps = 0;
  int32_t count = 0;
  std::string sampler;
  std::string schedule;
  float guidance_scale = 0;
};

struct ImageProgressEvent {
  int32_t step = 0;
  int32_t total = 0;
  double seconds = 0;
  double steps_per_second = 0;
  double images_per_second = 0;
  int32_t tile = 0, tiles = 0;  // of a picture that a network enlarges; 0: none is
};

struct ImageResult {
  std::string base64;
  std::string format;      // "png", "jpeg" or "webp"
  std::string parameters;  // its settings in AUTOMATIC1111's form
  uint64_t seed = 0;
  int32_t index = 0;
  int32_t width = 0, height = 0;
};

struct ImageTimes {
  double text_ms = 0, sample_ms = 0, decode_ms = 0;
  double total_ms = 0;  // since the request's arrival
};

std::string to_json(const ImageHealth& health);

// Payloads of a job's stream.
std::string to_json(const ImageStartedEvent& event);
std::string to_json(const ImageProgressEvent& event);
std::string preview_json(const ImageProgressEvent& progress, std::string_view base64,
                         int32_t index);
std::string complete_json(const std::vector<ImageResult>& images, const ImageTimes& times);

// OpenAI's forms. created: seconds since 1970.
std::string openai_images_json(const std::vector<ImageResult>& images, int64_t created,
                               bool as_url);
// operation: what begins the events' types, "image_generation" or "image_edit".
struct OpenAiPartial {
  std::string_view operation, base64;
  std::string_view size;  // of the picture that it is a preview of, "512x768"
  int32_t index = 0;
  int64_t created = 0;
};
std::string openai_partial_json(const OpenAiPartial& partial);
std::string openai_completed_json(std::string_view operation, const ImageResult& image,
                                  int64_t created);

// AUTOMATIC1111's forms.
// What an answer says besides of how its pictures were made.
struct SdapiInfo {
  std::string sampler{};
  std::optional<int32_t> steps{};
  std::optional<float> guidance_scale{};
  float subseed_strength = 0;
  std::vector<std::optional<uint64_t>> subseeds{};  // of each picture; empty: it had none
};
// request: the body that is repeated.
std::string sdapi_images_json(const std::vector<ImageResult>& images, const SdapiInfo& info,
                              std::string_view request, bool with_images);
struct SdapiProgress {
  bool busy = false;
  int32_t jobs = 0;  // running and waiting
  std::string job{};
  ImageProgressEvent progress{};
  std::string preview{};   // base64 of a PNG; empty: none
  int32_t preview_id = 0;  // 1 of a request's first one
};
// The share of an enlargement's tiles where there are no steps.
std::string sdapi_progress_json(const SdapiProgress& progress);
// Of one request.
struct SdapiTaskProgress {
  bool queued = false;
  bool completed = false;    // well or not
  SdapiProgress progress{};  // busy: it runs
};
// seen: the preview that the client has, which is not repeated.
std::string sdapi_task_json(const SdapiTaskProgress& task, int32_t seen);
struct SdapiName {
  std::string name;
  std::vector<std::string> aliases;
};
std::string sdapi_samplers_json(const std::vector<SdapiName>& names);
std::string sdapi_schedulers_json(const std::vector<SdapiName>& names);
std::string sdapi_models_json(std::string_view model);
std::string sdapi_options_json(std::string_view model);
// networks: their names and how many times larger pictures become, behind those that are none.
std::string sdapi_upscalers_json(const std::vector<std::pair<std::string, int32_t>>& networks);
std::string sdapi_extra_image_json(std::string_view base64);
std::string sdapi_extra_images_json(const std::vector<std::string>& base64);
// Bytes of a device with memory of its own; a total of 0: there is none.
std::string sdapi_memory_json(int64_t total, int64_t free);
// Lists that clients ask for and that are the same for every worker; empty: not such a path.
std::string sdapi_fixed_json(std::string_view path);
std::vector<std::string_view> sdapi_fixed_paths();
struct SdapiPngInfo {
  std::string text;                                         // as the file has it; empty: none
  std::vector<std::pair<std::string, std::string>> fields;  // prompts, and what else it says
};
std::string sdapi_png_info_json(const SdapiPngInfo& info);
struct SdapiEmbeddings {
  std::vector<std::pair<std::string, int32_t>> loaded;  // word and vectors
  std::vector<std::string> skipped;
};
std::string sdapi_embeddings_json(const SdapiEmbeddings& embeddings);
struct SdapiLora {
  std::string name, alias;
};
std::string sdapi_loras_json(const std::vector<SdapiLora>& loras);
std::string controlnet_models_json(const std::vector<std::string>& names);
// The one type that has them all: what a network is for its file does not say.
std::string controlnet_types_json(const std::vector<std::string>& names);

}  // namespace rbee::server

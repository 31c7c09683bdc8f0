#pragma once
// Answers of AUTOMATIC1111's API, and of its ControlNet extension, as JSON on one line.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/image/service.h"

namespace rbee::server {

// The settings that an answer repeats.
struct SdapiInfo {
  std::string sampler{};
  std::optional<int32_t> steps{};
  std::optional<float> guidance_scale{};
  float subseed_strength = 0;
  std::vector<std::optional<uint64_t>> subseeds{};  // of each picture; empty: none
};
// request: the body, which the answer repeats.
std::string sdapi_images_json(const std::vector<ImageResult>& images, const SdapiInfo& info,
                              std::string_view request, bool with_images);
// Without steps, the progress is an enlargement's share of done tiles.
std::string sdapi_progress_json(const WorkProgress& progress);
// seen: the preview that the client has already; it is not sent again.
std::string sdapi_task_json(const TaskProgress& task, int32_t seen);
struct SdapiName {
  std::string name;
  std::vector<std::string> aliases;
};
std::string sdapi_samplers_json(const std::vector<SdapiName>& names);
std::string sdapi_schedulers_json(const std::vector<SdapiName>& names);
std::string sdapi_models_json(std::string_view model);
std::string sdapi_options_json(std::string_view model);
// networks: names and scale factors; listed after the upscalers without a network.
std::string sdapi_upscalers_json(const std::vector<std::pair<std::string, int32_t>>& networks);
std::string sdapi_extra_image_json(std::string_view file);
std::string sdapi_extra_images_json(const std::vector<std::string>& files);
// Bytes of a device with its own memory; a total of 0: there is none.
std::string sdapi_memory_json(int64_t total, int64_t free);
// Answers that are the same for every worker; empty: not such a path.
std::string sdapi_fixed_json(std::string_view path);
std::vector<std::string_view> sdapi_fixed_paths();
struct SdapiPngInfo {
  std::string text;                                         // as in the file; empty: none
  std::vector<std::pair<std::string, std::string>> fields;  // prompts and all other settings
};
std::string sdapi_png_info_json(const SdapiPngInfo& info);
struct SdapiEmbeddings {
  std::vector<std::pair<std::string, int32_t>> loaded;  // word and number of vectors
  std::vector<std::string> skipped;
};
std::string sdapi_embeddings_json(const SdapiEmbeddings& embeddings);
struct SdapiLora {
  std::string name, alias;
};
std::string sdapi_loras_json(const std::vector<SdapiLora>& loras);
std::string controlnet_models_json(const std::vector<std::string>& names);
// A single type with all networks: a network's file does not say its type.
std::string controlnet_types_json(const std::vector<std::string>& names);

}  // namespace rbee::server

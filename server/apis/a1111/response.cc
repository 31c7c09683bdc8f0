#include "server/apis/a1111/response.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "rbee/core/cat.h"
#include "server/image/picture_json.h"
#include "server/wire/json_text.h"

namespace rbee::server {

namespace {

using Json = nlohmann::ordered_json;

// Lists that are empty here. Clients fill their menus from these paths, so they need an answer.
struct FixedAnswer {
  std::string_view path;
  std::string_view json;
};
constexpr FixedAnswer kFixedAnswers[] = {
    {"/sdapi/v1/latent-upscale-modes",
     R"json([{"name":"Latent"},{"name":"Latent (antialiased)"},{"name":"Latent (bicubic)"},)json"
     R"json({"name":"Latent (bicubic antialiased)"},{"name":"Latent (nearest)"},)json"
     R"json({"name":"Latent (nearest-exact)"}])json"},
    {"/sdapi/v1/sd-vae", "[]"},
    {"/sdapi/v1/sd-modules", "[]"},
    {"/sdapi/v1/hypernetworks", "[]"},
    {"/sdapi/v1/face-restorers", "[]"},
    {"/sdapi/v1/realesrgan-models", "[]"},
    {"/sdapi/v1/prompt-styles", "[]"},
    {"/sdapi/v1/script-info", "[]"},
    {"/sdapi/v1/scripts", R"({"txt2img":["controlnet"],"img2img":["controlnet"]})"},
    {"/sdapi/v1/cmd-flags", "{}"},
    {"/sdapi/v1/extensions", "[]"},
    {"/internal/ping", "{}"},
    {"/controlnet/module_list", R"({"module_list":["none"]})"},
    {"/controlnet/version", R"({"version":2})"},
    {"/controlnet/settings", R"({"control_net_unit_count":8})"},
};

Json names_of(const std::vector<SdapiName>& names, const char* label) {
  Json list = Json::array();
  for (const SdapiName& entry : names) {
    Json item = {{"name", entry.name}, {"aliases", entry.aliases}};
    if (label != nullptr) item[label] = entry.name;
    list.push_back(std::move(item));
  }
  return list;
}

// The share of a request's steps, or of an upscaling's tiles, and the seconds that are left.
std::pair<double, double> share_and_rest(const ImageProgressEvent& at) {
  const bool steps = at.total > 0;
  const int32_t done = steps ? at.step : at.tile, total = steps ? at.total : at.tiles;
  const double share = total > 0 ? static_cast<double>(done) / total : 0;
  return {share, share > 0 ? at.seconds * (1 - share) / share : 0};
}

Json info_text(const ImageProgressEvent& at) {
  return at.tiles > 0 ? Json(cat("tile ", at.tile, " of ", at.tiles)) : Json();
}

}  // namespace

std::string sdapi_images_json(const std::vector<ImageResult>& images, const SdapiInfo& made,
                              std::string_view request, bool with_images) {
  Json pictures = Json::array(), seeds = Json::array(), texts = Json::array();
  Json subseeds = Json::array();
  std::vector<PictureText> files;
  for (const ImageResult& image : images) {
    if (with_images) {
      pictures.push_back(picture_here());
      files.push_back({image.file});
    }
    seeds.push_back(image.seed);
    texts.push_back(image.parameters);
  }
  for (const auto& subseed : made.subseeds) subseeds.push_back(subseed ? Json(*subseed) : Json(-1));
  const Json sent = Json::parse(request, nullptr, false);
  const auto words = [&](const char* name) {
    const bool there = sent.is_object() && sent.contains(name) && sent[name].is_string();
    return there ? sent[name].get<std::string>() : std::string();
  };
  const std::string prompt = words("prompt"), negative = words("negative_prompt");
  Json info = {{"prompt", prompt},
               {"all_prompts", std::vector<std::string>(images.size(), prompt)},
               {"negative_prompt", negative},
               {"all_negative_prompts", std::vector<std::string>(images.size(), negative)},
               {"all_seeds", seeds},
               {"all_subseeds", subseeds},
               {"subseed_strength", decimal(made.subseed_strength)},
               {"sampler_name", made.sampler},
               {"infotexts", texts}};
  if (made.steps) info["steps"] = *made.steps;
  if (made.guidance_scale) info["cfg_scale"] = decimal(*made.guidance_scale);
  if (!made.subseeds.empty()) info["subseed"] = subseeds.front();
  if (!images.empty()) {
    info["seed"] = images.front().seed;
    info["width"] = images.front().width;
    info["height"] = images.front().height;
  }
  return dump({{"images", std::move(pictures)},
               {"parameters", sent.is_discarded() ? Json::object() : sent},
               {"info", dump(info)}},
              files);
}

std::string sdapi_progress_json(const WorkProgress& progress) {
  const ImageProgressEvent& at = progress.progress;
  const auto [share, left] = share_and_rest(at);
  return dump({{"progress", progress.busy ? rounded(share) : 0},
               {"eta_relative", progress.busy ? rounded(left) : 0},
               {"state",
                {{"skipped", false},
                 {"interrupted", false},
                 {"job", progress.job},
                 {"job_count", progress.jobs},
                 {"job_no", 0},
                 {"sampling_step", at.step},
                 {"sampling_steps", at.total}}},
               {"current_image", progress.preview.empty() ? Json() : Json(progress.preview)},
               {"textinfo", info_text(at)}});
}

std::string sdapi_task_json(const TaskProgress& task, int32_t seen) {
  const WorkProgress& now = task.progress;
  Json out = {{"active", now.busy},
              {"queued", task.queued},
              {"paused", false},
              {"completed", task.completed},
              {"progress", nullptr},
              {"eta", nullptr},
              {"live_preview", nullptr},
              {"id_live_preview", -1},
              {"textinfo", task.queued ? "Queued..." : "Waiting..."}};
  if (!now.busy) return dump(out);
  const auto [share, left] = share_and_rest(now.progress);
  out["progress"] = rounded(share);
  if (share > 0) out["eta"] = rounded(left);
  out["textinfo"] = info_text(now.progress);
  const bool fresh = !now.preview.empty() && now.preview_id != seen;
  out["id_live_preview"] = fresh ? now.preview_id : seen;
  if (fresh) out["live_preview"] = cat("data:image/png;base64,", now.preview);
  return dump(out);
}

std::string sdapi_samplers_json(const std::vector<SdapiName>& names) {
  Json list = names_of(names, nullptr);
  for (Json& entry : list) entry["options"] = Json::object();
  return dump(list);
}

std::string sdapi_schedulers_json(const std::vector<SdapiName>& names) {
  return dump(names_of(names, "label"));
}

std::string sdapi_models_json(std::string_view model) {
  return dump(Json::array({{{"title", model},
                            {"model_name", model},
                            {"hash", nullptr},
                            {"sha256", nullptr},
                            {"filename", model},
                            {"config", nullptr}}}));
}

std::string sdapi_options_json(std::string_view model) {
  return dump({{"sd_model_checkpoint", model},
               {"sd_vae", "Automatic"},
               {"CLIP_stop_at_last_layers", 1},
               {"samples_format", "png"}});
}

std::string sdapi_upscalers_json(const std::vector<std::pair<std::string, int32_t>>& networks) {
  Json list = Json::array();
  const auto add = [&](const std::string& name, const Json& model, int32_t scale) {
    list.push_back({{"name", name},
                    {"model_name", model},
                    {"model_path", nullptr},
                    {"model_url", nullptr},
                    {"scale", scale}});
  };
  for (const char* name : {"None", "Lanczos", "Nearest"}) add(name, nullptr, 2);
  for (const auto& [name, scale] : networks) add(name, name, scale);
  return dump(list);
}

std::string sdapi_extra_image_json(std::string_view file) {
  const PictureText picture{file};
  return dump({{"html_info", ""}, {"image", picture_here()}}, {&picture, 1});
}

std::string sdapi_extra_images_json(const std::vector<std::string>& files) {
  Json images = Json::array();
  std::vector<PictureText> pictures;
  for (const std::string& file : files) {
    images.push_back(picture_here());
    pictures.push_back({file});
  }
  return dump({{"html_info", ""}, {"images", std::move(images)}}, pictures);
}

std::string sdapi_memory_json(int64_t total, int64_t free) {
  const Json unknown = {{"error", "unavailable"}};
  Json device = unknown;
  if (total > 0) {
    device = {{"system", {{"free", free}, {"used", total - free}, {"total", total}}}};
  }
  return dump({{"ram", unknown}, {"cuda", std::move(device)}});
}

std::vector<std::string_view> sdapi_fixed_paths() {
  std::vector<std::string_view> out;
  for (const FixedAnswer& answer : kFixedAnswers) out.push_back(answer.path);
  return out;
}

std::string sdapi_fixed_json(std::string_view path) {
  const auto found = std::ranges::find(kFixedAnswers, path, &FixedAnswer::path);
  return found == std::end(kFixedAnswers) ? std::string() : std::string(found->json);
}

// Appends without a lookup: a file may have a hundred thousand names; Json compares each with all.
std::string sdapi_png_info_json(const SdapiPngInfo& info) {
  Json items = Json::object();
  if (!info.text.empty()) items["parameters"] = info.text;
  Json::object_t::Container parameters;
  std::unordered_map<std::string_view, size_t> places;
  for (const auto& [name, value] : info.fields) {
    const auto [at, fresh] = places.emplace(name, parameters.size());
    if (fresh) {
      parameters.emplace_back(name, value);
    } else {
      parameters[at->second].second = value;
    }
  }
  Json out = {{"info", info.text}, {"items", items}, {"parameters", Json::object()}};
  static_cast<Json::object_t::Container&>(out["parameters"].get_ref<Json::object_t&>()) =
      std::move(parameters);
  return dump(out);
}

std::string sdapi_embeddings_json(const SdapiEmbeddings& embeddings) {
  const Json unknown = {
      {"step", nullptr}, {"sd_checkpoint", nullptr}, {"sd_checkpoint_name", nullptr}};
  Json loaded = Json::object(), skipped = Json::object();
  for (const auto& [word, vectors] : embeddings.loaded) {
    loaded[word] = unknown;
    loaded[word]["vectors"] = vectors;
  }
  for (const std::string& word : embeddings.skipped) skipped[word] = unknown;
  return dump({{"loaded", std::move(loaded)}, {"skipped", std::move(skipped)}});
}

std::string sdapi_loras_json(const std::vector<SdapiLora>& loras) {
  Json list = Json::array();
  for (const auto& [name, alias] : loras) {
    list.push_back(
        {{"name", name}, {"alias", alias}, {"path", name}, {"metadata", Json::object()}});
  }
  return dump(list);
}

std::string controlnet_models_json(const std::vector<std::string>& names) {
  return dump({{"model_list", names}});
}

std::string controlnet_types_json(const std::vector<std::string>& names) {
  Json models = Json::array({"None"});
  for (const std::string& name : names) models.push_back(name);
  return dump({{"control_types",
                {{"All",
                  {{"module_list", {"none"}},
                   {"model_list", std::move(models)},
                   {"default_option", "none"},
                   {"default_model", "None"}}}}}});
}

}  // namespace rbee::server

#include "server/apis/ollama/models.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "rbee/core/cat.h"
#include "rbee/core/hex.h"
#include "server/apis/ollama/names.h"
#include "server/apis/ollama/request.h"
#include "server/apis/ollama/response.h"
#include "server/http/clock.h"
#include "server/wire/json_text.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// A loaded model stays until the worker ends.
constexpr const char* kNever = "9999-12-31T23:59:59Z";

// As Ollama writes counts: 134.52M, 3.2B, 8B.
std::string short_count(int64_t count) {
  struct Unit {
    double size;
    int digits;  // after the point
    char letter;
  };
  for (const Unit& unit : {Unit{1e9, 1, 'B'}, Unit{1e6, 2, 'M'}, Unit{1e3, 0, 'K'}}) {
    const double number = static_cast<double>(count) / unit.size;
    if (number < 1) continue;
    char text[32];
    const int digits = number == std::floor(number) ? 0 : unit.digits;
    std::snprintf(text, sizeof text, "%.*f%c", digits, number, unit.letter);
    return text;
  }
  return cat(count);
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// Ollama hashes the model's files. This hash changes with any of the model's properties.
std::string digest_of(const engine::ModelInfo& info) {
  return ollama_digest(cat(info.id, "\n", info.architecture, "\n", info.quantization, "\n",
                           info.parameters, "\n", info.weight_bytes, "\n", info.vocab_size, "\n",
                           info.chat_template));
}

// parent: the model of an adapter; empty: none.
Json details_json(const OllamaModel& model, std::string_view parent) {
  const engine::ModelInfo& info = model.info;
  return {{"parent_model", parent},
          {"format", model.file.ends_with(".gguf") ? "gguf" : "safetensors"},
          {"family", info.architecture},
          {"families", Json::array({info.architecture})},
          {"parameter_size", short_count(info.parameters)},
          {"quantization_level", upper(info.quantization)}};
}

// When the model's files were written; if that is unknown, when its worker was started.
std::string modified_text(const WorkerService& service) {
  const int64_t written = service.options().model_modified;
  const std::chrono::seconds since(written > 0 ? written : service.started_at());
  return iso8601(std::chrono::system_clock::time_point(since));
}

// An entry of the list for each name.
Json entries_json(const WorkerService& service, const OllamaModel& model) {
  Json out = Json::array();
  const auto add = [&](const std::string& name, std::string_view parent) {
    out.push_back({{"name", name},
                   {"model", name},
                   {"modified_at", modified_text(service)},
                   {"size", model.info.weight_bytes},
                   {"digest", digest_of(model.info)},
                   {"details", details_json(model, parent)},
                   {"capabilities", model.capabilities}});
  };
  add(model.name, "");
  for (const std::string& alias : model.aliases) add(alias, "");
  for (const std::string& adapter : model.adapters) add(adapter, model.name);
  return out;
}

// The values of generation_config.json, as the lines of a Modelfile.
std::string parameters_text(const engine::SamplingDefaults& sampling) {
  std::string out;
  const auto add = [&](std::string_view name, const auto& value) {
    if (!value) return;
    const std::string gap(31 - name.size(), ' ');
    out += cat(out.empty() ? "" : "\n", name, gap, Json(decimal(float(*value))).dump());
  };
  add("min_p", sampling.min_p);
  add("repeat_penalty", sampling.repetition_penalty);
  add("temperature", sampling.temperature);
  if (sampling.top_k) {
    out += cat(out.empty() ? "" : "\n", "top_k", std::string(26, ' '), *sampling.top_k);
  }
  add("top_p", sampling.top_p);
  return out;
}

Json model_info_json(const OllamaModel& model) {
  const std::string& family = model.info.architecture;
  Json out = {{"general.architecture", family},
              {"general.parameter_count", model.info.parameters},
              {family + ".context_length", model.info.context_length},
              {family + ".vocab_size", model.info.vocab_size}};
  if (model.dimensions > 0) out[family + ".embedding_length"] = model.dimensions;
  return out;
}

}  // namespace

std::optional<std::string> OllamaModel::find(std::string_view sent) const {
  const auto is_sent = [&](const std::string& known) { return same_model_name(known, sent); };
  const auto adapter = std::ranges::find_if(adapters, is_sent);
  if (adapter != adapters.end()) return *adapter;
  if (is_sent(name) || std::ranges::any_of(aliases, is_sent)) return name;
  return std::nullopt;
}

std::optional<std::string> OllamaModel::find_for(const Request& request,
                                                 std::string_view sent) const {
  const std::optional<std::string> found = find(sent);
  const bool front_found_it = !found && !sent.empty() && !request.behalf.empty();
  return front_found_it ? name : found;
}

std::string ollama_digest(const std::string& text) {
  unsigned char bytes[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes);
  return hex(bytes);
}

OllamaModel ollama_model(const WorkerService& service, engine::ModelInfo info) {
  return {.name = service.model_id(),
          .aliases = service.options().aliases,
          .adapters = {},
          .file = service.options().model_file,
          .info = std::move(info),
          .capabilities = {}};
}

Response ollama_version() {
  return json_response(200, dump({{"version", kOllamaVersion}}));
}

Response ollama_tags(const WorkerService& service, const OllamaModel& model) {
  return json_response(200, dump({{"models", entries_json(service, model)}}));
}

std::string ollama_file_json(const OllamaFile& file) {
  return dump({{"name", file.name},
               {"model", file.name},
               {"modified_at", file.modified_at},
               {"size", file.bytes},
               {"digest", file.digest},
               {"details",
                {{"parent_model", ""},
                 {"format", file.gguf ? "gguf" : "safetensors"},
                 {"family", ""},
                 {"families", Json::array()},
                 {"parameter_size", ""},
                 {"quantization_level", ""}}},
               {"capabilities", {file.capability}}});
}

Response ollama_running(const OllamaModel& model) {
  const int64_t bytes = model.info.weight_bytes + model.info.kv_cache_bytes;
  const bool on_host = model.info.device.starts_with("cpu");
  const Json one = {{"name", model.name},
                    {"model", model.name},
                    {"size", bytes},
                    {"digest", digest_of(model.info)},
                    {"details", details_json(model, "")},
                    {"expires_at", kNever},
                    {"size_vram", on_host ? 0 : bytes},
                    {"context_length", model.info.context_length}};
  return json_response(200, dump({{"models", Json::array({one})}}));
}

Response ollama_show(const WorkerService& service, const Request& request,
                     const OllamaModel& model) {
  return guarded(ollama_error, [&] {
    const std::string sent = parse_ollama_show(request.body);
    const std::optional<std::string> found = model.find_for(request, sent);
    if (!found) return no_ollama_model(sent);
    const Json out = {
        {"modelfile", cat("FROM ", model.file.empty() ? model.name : model.file, "\n")},
        {"parameters", parameters_text(model.info.sampling)},
        {"template", model.info.chat_template},
        {"details", details_json(model, *found == model.name ? "" : model.name)},
        {"model_info", model_info_json(model)},
        {"capabilities", model.capabilities},
        {"modified_at", modified_text(service)}};
    return json_response(200, dump(out));
  });
}

Response no_ollama_model(const std::string& sent) {
  const bool named = !sent.empty();
  Response out = json_response(
      named ? 404 : 400,
      ollama_error_json(named ? cat("model '", sent, "' not found") : "model is required"));
  out.reason = {
      .code = named ? "NOT_FOUND" : "INVALID_REQUEST", .field = "model", .constraint = {}};
  return out;
}

std::string ollama_error(int, std::string_view, const std::exception& error) {
  return ollama_error_json(error.what());
}

}  // namespace rbee::server

#include "server/front/ollama_lists.h"

#include <chrono>
#include <string>

#include "rbee/core/cat.h"
#include "server/apis/ollama/models.h"
#include "server/http/clock.h"

namespace rbee::server {

using nlohmann::json;

namespace {

// Of a made model with a worker of its own, without the adapters that it is made of.
json own_entries(const ServedModel& model, json list) {
  if (model.record.empty()) return list;
  json out = json::array();
  for (json& entry : list) {
    if (entry.is_object() && entry.value("name", "") == model.name) out.push_back(std::move(entry));
  }
  return out;
}

// The same before, while and after a worker has the model. Each name of an adapter has its own.
std::string digest_of(const ServedModel& model, const std::string& name) {
  return ollama_digest(cat(model.files.empty() ? model.model : model.files, "\n", model.bytes,
                           name == model.name ? "" : "\n" + name));
}

}  // namespace

std::map<size_t, json> lists_of(const Pool& pool, const std::vector<Pool::WorkerReply>& replies) {
  std::map<size_t, json> out;
  for (const Pool::WorkerReply& one : replies) {
    const json told = json::parse(one.text, nullptr, false);
    const bool list = one.whole && one.status == 200 && told.is_object() &&
                      told.value("models", json()).is_array();
    if (!list) continue;
    const size_t index = pool.members()[one.member].model;
    const ServedModel& model = pool.models()[index].served;
    json entries = own_entries(model, told.at("models"));
    for (json& entry : entries) {
      if (model.on_demand() && entry.is_object()) {
        entry["digest"] = digest_of(model, entry.value("name", ""));
      }
    }
    if (!entries.empty()) out.emplace(index, std::move(entries));
  }
  return out;
}

std::string time_text(int64_t seconds) {
  return iso8601(std::chrono::sys_seconds{std::chrono::seconds(seconds)});
}

std::string shown_with_time(const std::string& answer, int64_t modified) {
  auto out = nlohmann::ordered_json::parse(answer, nullptr, false);
  if (!out.is_object()) return answer;
  out["modified_at"] = time_text(modified);
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

json tags_of(const ServedModel& model, int64_t modified) {
  const bool embeds = model.kind == ModelKind::embedding;
  std::vector<std::string> names{model.name};
  names.insert(names.end(), model.adapters.begin(), model.adapters.end());
  json out = json::array();
  for (const std::string& name : names) {
    out.push_back(json::parse(ollama_file_json({.name = name,
                                                .bytes = model.bytes,
                                                .digest = digest_of(model, name),
                                                .capability = embeds ? "embedding" : "completion",
                                                .modified_at = time_text(modified),
                                                .gguf = model.model.ends_with(".gguf")})));
  }
  return out;
}

}  // namespace rbee::server

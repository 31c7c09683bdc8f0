#include "server/front/ollama_lists.h"

#include <chrono>
#include <string>

#include "server/apis/ollama/models.h"
#include "server/http/clock.h"

namespace rbee::server {

using nlohmann::json;

std::map<size_t, json> lists_of(const Pool& pool, const std::vector<Pool::WorkerReply>& replies) {
  std::map<size_t, json> out;
  for (const Pool::WorkerReply& one : replies) {
    const json told = json::parse(one.text, nullptr, false);
    const bool list = one.whole && one.status == 200 && told.is_object() &&
                      told.value("models", json()).is_array();
    if (list) out.emplace(pool.members()[one.member].model, told.at("models"));
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
                                                .capability = embeds ? "embedding" : "completion",
                                                .modified_at = time_text(modified),
                                                .gguf = model.model.ends_with(".gguf")})));
  }
  return out;
}

}  // namespace rbee::server

#include "server/front/made_models.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/ollama/names.h"
#include "server/http/error_form.h"

namespace rbee::server {

using nlohmann::json;

std::optional<Response> use_record(Exchange& exchange, std::optional<OllamaRecord> record) {
  if (!record) return std::nullopt;
  exchange.record = std::make_shared<const OllamaRecord>(std::move(*record));
  const OllamaRecord& made = *exchange.record;
  // One with files, adapters or a template has a worker of its own, which the hook that finds
  // models describes.
  exchange.wanted.model = made.has_own_worker() ? made.name : made.from;
  if (exchange.wanted.kind != ModelKind::chat) return std::nullopt;
  std::optional<std::string> body =
      with_record(made, exchange.wanted.operation, exchange.request.body);
  if (!body) {
    const std::string message =
        cat("The settings of '", made.name, "' are used by /api/chat, /api/generate and ",
            "/v1/chat/completions alone", made.from.empty() ? "" : ": name ", made.from,
            made.from.empty() ? "" : " here");
    return error_response(exchange.request, 400, {"UNSUPPORTED", message, "model"});
  }
  exchange.request.body = std::move(*body);
  return std::nullopt;
}

bool is_listed_with_another(const Records& records, const std::string& name) {
  return std::ranges::any_of(records, [&](const OllamaRecord& record) {
    return record.files.empty() && same_model_name(record.name, name);
  });
}

bool is_made(const Records& records, const std::string& name) {
  return std::ranges::any_of(
      records, [&](const OllamaRecord& record) { return same_model_name(record.name, name); });
}

namespace {

void add_made(const Records& records, const std::string& name, const char* key, json entry,
              json& list) {
  for (const OllamaRecord& record : records) {
    if (record.from != name) continue;
    entry[key] = record.name;
    entry["parent"] = name;
    list.push_back(entry);
  }
}

bool shares_worker(const OllamaRecord& record, const std::string& name) {
  return record.from == name && !record.has_own_worker();
}

}  // namespace

void add_made_ids(const Records& records, const std::string& name, json entry, json& list) {
  add_made(records, name, "id", std::move(entry), list);
}

void add_made_names(const Records& records, const std::string& name, json entry, json& list) {
  add_made(records, name, "name", std::move(entry), list);
}

std::vector<std::string> made_names(const Records& records, const std::string& name) {
  std::vector<std::string> out;
  for (const OllamaRecord& record : records) {
    if (shares_worker(record, name)) out.push_back(record.name);
  }
  return out;
}

void add_made_tags(const Records& records, const std::string& name, const json& entry, json& list) {
  for (const OllamaRecord& record : records) {
    if (record.from == name) list.push_back(listed_as_record(record, entry));
  }
}

void add_loaded(const Records& records, const std::string& name, const json& entry, json& list) {
  if (!is_made(records, name)) list.push_back(entry);
  for (const OllamaRecord& record : records) {
    if (shares_worker(record, name) || same_model_name(record.name, name))
      list.push_back(listed_as_record(record, entry));
  }
}

}  // namespace rbee::server

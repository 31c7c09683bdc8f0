#include "server/front/made_models.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "server/http/error_form.h"

namespace rbee::server {

using nlohmann::json;

std::optional<Response> use_record(Exchange& exchange, std::optional<OllamaRecord> record) {
  if (!record) return std::nullopt;
  exchange.record = std::make_shared<const OllamaRecord>(std::move(*record));
  const OllamaRecord& made = *exchange.record;
  // One with a template has a worker of its own, which the hook that finds models describes.
  exchange.wanted.model = made.chat_template.empty() ? made.from : made.name;
  if (exchange.wanted.kind != ModelKind::chat) return std::nullopt;
  std::optional<std::string> body = with_record(made, exchange.request.path, exchange.request.body);
  if (!body) {
    const std::string message =
        cat("The settings of '", made.name, "' are used by /api/chat, /api/generate and ",
            "/v1/chat/completions alone: name ", made.from, " here");
    return error_response(exchange.request, 400, {"UNSUPPORTED", message, "model"});
  }
  exchange.request.body = std::move(*body);
  return std::nullopt;
}

bool is_made(const Records& records, const std::string& name) {
  return std::ranges::count(records, name, &OllamaRecord::name) > 0;
}

void add_made_ids(const Records& records, const std::string& name, json entry, json& list) {
  for (const OllamaRecord& record : records) {
    if (record.from != name) continue;
    entry["id"] = record.name;
    entry["parent"] = name;
    list.push_back(entry);
  }
}

void add_made_tags(const Records& records, const std::string& name, const json& entry, json& list) {
  for (const OllamaRecord& record : records) {
    if (record.from == name) list.push_back(listed_as_record(record, entry));
  }
}

void add_loaded(const Records& records, const std::string& name, const json& entry, json& list) {
  if (!is_made(records, name)) list.push_back(entry);
  for (const OllamaRecord& record : records) {
    const bool shares = record.from == name && record.chat_template.empty();
    if (shares || record.name == name) list.push_back(listed_as_record(record, entry));
  }
}

}  // namespace rbee::server

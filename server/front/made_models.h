#pragma once
// The models that clients made of others, in requests and lists of the front. Internal to
// server/front.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/apis/ollama/record.h"
#include "server/front/exchange.h"

namespace rbee::server {

// A request for a made model becomes one for the model that answers for it, with its settings.
// Returns the refusal of a path that has no place for them.
std::optional<Response> use_record(Exchange& exchange, std::optional<OllamaRecord> record);

using Records = std::vector<OllamaRecord>;
// Whether a client made the model of this name.
bool is_made(const Records& records, const std::string& name);
// The same, of one that is listed beside the model that it is made of; others have their own files.
bool is_listed_with_another(const Records& records, const std::string& name);
// Append the models that are made of `name`, whose entry is given: of /v1/models, of /health, of
// /api/tags.
void add_made_ids(const Records& records, const std::string& name, nlohmann::json entry,
                  nlohmann::json& list);
void add_made_names(const Records& records, const std::string& name, nlohmann::json entry,
                    nlohmann::json& list);
void add_made_tags(const Records& records, const std::string& name, const nlohmann::json& entry,
                   nlohmann::json& list);
// Names of models that are made of `name` and that its worker answers for.
std::vector<std::string> made_names(const Records& records, const std::string& name);
// Appends an entry of /api/ps, and those of the models that its worker answers for.
void add_loaded(const Records& records, const std::string& name, const nlohmann::json& entry,
                nlohmann::json& list);

}  // namespace rbee::server

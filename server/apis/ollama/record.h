#pragma once
// Models that clients make of others: the bodies of Ollama's POST /api/create and /api/copy, what
// is kept of them, and how it changes requests and answers. docs/decisions/0049-made-models.md

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace rbee::server {

struct OllamaRecord {
  using Json = nlohmann::ordered_json;

  std::string name;                  // as its maker wrote it
  std::string from;                  // the served model that answers for it
  std::string system;                // for chats without one; empty: none
  std::string chat_template;         // Jinja, in the place of the model's; empty: the model's
  Json parameters = Json::object();  // of Ollama's "options", for requests that do not give them
  Json messages = Json::array();     // before those of a chat
  Json license = Json::array();      // texts, only shown
  int64_t created = 0;               // seconds since 1970

  // Requests with its name are other ones than those with the name of `from`.
  bool has_settings() const { return !system.empty() || !parameters.empty() || !messages.empty(); }
};

struct OllamaCreate {
  OllamaRecord record;  // as sent: `from` may be any name of a model; without `created`
  bool stream = true;
  bool gives_parameters = false, gives_messages = false;

  // What it makes of a record: the other's settings where it gives none.
  OllamaRecord made_of(const OllamaRecord& other) const;
};
// Throws InvalidBody, also for "files", "adapters", "quantize" and "modelfile".
OllamaCreate parse_ollama_create(std::string_view body);

struct OllamaCopy {
  std::string source, destination;  // empty: not given
};
OllamaCopy parse_ollama_copy(std::string_view body);

// The form in which it is kept.
std::string record_to_json(const OllamaRecord& record);
// Throws invalid_argument if it is none.
OllamaRecord record_from_json(std::string_view json);

// The body of a request for this model as `from` takes it; nothing: this path has no place for its
// settings. Bodies that are no JSON objects stay as they are.
std::optional<std::string> with_record(const OllamaRecord& record, std::string_view path,
                                       const std::string& body);
// The answer of /api/show about `from`, as one about this model.
std::string shown_of_record(const OllamaRecord& record, const std::string& answer);
// The entry of `from` in /api/tags and /api/ps, as one of this model.
nlohmann::json listed_as_record(const OllamaRecord& record, nlohmann::json entry);

}  // namespace rbee::server

#pragma once
// Models that clients make of others: the bodies of Ollama's POST /api/create and /api/copy, what
// is kept of them, and how it changes requests and answers. docs/decisions/0049-made-models.md

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/router.h"

namespace rbee::server {

struct OllamaRecord {
  using Json = nlohmann::ordered_json;
  // Clients' files: names below the model's folder, and SHA-256 in lower-case hexadecimal digits.
  using Files = std::map<std::string, std::string>;

  std::string name;                  // as its maker wrote it
  std::string from;                  // the served model that it is made of; empty: it has `files`
  Files files;                       // of the model
  Files adapters;                    // all are used by each request
  std::string system;                // for chats without one; empty: none
  std::string chat_template;         // Jinja, in the place of the model's; empty: the model's
  Json parameters = Json::object();  // of Ollama's "options", for requests that do not give them
  Json messages = Json::array();     // before those of a chat
  Json license = Json::array();      // texts, only shown
  int64_t created = 0;               // seconds since 1970

  // No other model's worker can answer for it.
  bool has_own_worker() const {
    return !files.empty() || !adapters.empty() || !chat_template.empty();
  }
  // Requests with its name are other ones than those with the name of `from`.
  bool has_settings() const { return !system.empty() || !parameters.empty() || !messages.empty(); }
};

struct OllamaCreate {
  OllamaRecord record;   // as sent: `from` may be any name of a model; without `created`
  std::string quantize;  // the type that the weights are to have, as sent; empty: as they are
  bool stream = true;
  bool gives_parameters = false, gives_messages = false;

  // What it makes of a record: the other's settings where it gives none.
  OllamaRecord made_of(const OllamaRecord& other) const;
};
// Throws InvalidBody, also for "modelfile", and if it names no model or both one and files.
OllamaCreate parse_ollama_create(std::string_view body);

// The 64 digits of "sha256:<digits>" in lower case, also with '-'; nothing: it is none.
std::optional<std::string> digits_of_digest(std::string_view digest);

struct OllamaCopy {
  std::string source, destination;  // empty: not given
};
OllamaCopy parse_ollama_copy(std::string_view body);

// The form in which it is kept.
std::string record_to_json(const OllamaRecord& record);
// Throws invalid_argument if it is none.
OllamaRecord record_from_json(std::string_view json);

// The body of a request for this model as `from` takes it; nothing: this operation has no place for
// its settings. Bodies that are no JSON objects stay as they are.
std::optional<std::string> with_record(const OllamaRecord& record, Operation operation,
                                       const std::string& body);
// The answer of /api/show about `from`, as one about this model.
std::string shown_of_record(const OllamaRecord& record, const std::string& answer);
// The entry of `from` in /api/tags and /api/ps, as one of this model.
nlohmann::json listed_as_record(const OllamaRecord& record, nlohmann::json entry);

}  // namespace rbee::server

#pragma once
// Ollama's lists of models: GET /api/version, /api/tags and /api/ps, POST /api/show.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/text.h"
#include "server/http/router.h"
#include "server/worker/service.h"

namespace rbee::server {

// The release of Ollama whose API this is. Clients compare it with the one that they need.
inline constexpr std::string_view kOllamaVersion = "0.33.0";

// The served model.
struct OllamaModel {
  std::string name;                   // reported
  std::vector<std::string> aliases;   // more names of the same
  std::vector<std::string> adapters;  // names of the model with an adapter
  std::string file;                   // its name, without folders
  engine::ModelInfo info;
  int64_t dimensions = 0;                      // of an embedding model
  std::vector<std::string_view> capabilities;  // Ollama's words

  // The name of the adapter, or of the model; nothing for names that stand for neither. sent: as
  // clients write it (names.h).
  std::optional<std::string> find(std::string_view sent) const;
  // The same for a request. A front before this worker may know more names of its model.
  std::optional<std::string> find_for(const Request& request, std::string_view sent) const;
};
OllamaModel ollama_model(const WorkerService& service, engine::ModelInfo info);

Response ollama_version();
Response ollama_tags(const WorkerService& service, const OllamaModel& model);
// An entry of that list for a model that no worker has loaded yet; `modified_at` in ISO 8601.
struct OllamaFile {
  std::string name;
  int64_t bytes = 0;
  std::string digest;           // see ollama_digest()
  std::string_view capability;  // Ollama's word
  std::string modified_at;
  bool gguf = false;
};
std::string ollama_file_json(const OllamaFile& file);
Response ollama_running(const OllamaModel& model);
Response ollama_show(const WorkerService& service, const Request& request,
                     const OllamaModel& model);
// The answer to a name that nothing here has; empty: to a body without a name.
Response no_ollama_model(const std::string& sent);

// SHA-256 in hexadecimal digits, as Ollama's lists tell models apart.
std::string ollama_digest(const std::string& text);

// An error in Ollama's form; see ErrorBody.
std::string ollama_error(int status, std::string_view code, const std::exception& error);

// kModel: the model at the time of a request.
template <typename Service, OllamaModel (*kModel)(const Service&)>
constexpr std::array<ServiceRoute<Service>, 4> ollama_model_routes() {
  constexpr auto route = [](std::string_view method, std::string_view path,
                            Response (*handler)(Service&, const Request&), Body body = Body::none,
                            Operation operation = Operation::other) {
    return ServiceRoute<Service>{method, path, handler, body, ErrorForm::ollama, operation};
  };
  return {
      route("GET", "/api/version", [](Service&, const Request&) { return ollama_version(); }),
      route("GET", "/api/tags",
            [](Service& service, const Request&) { return ollama_tags(service, kModel(service)); }),
      route("GET", "/api/ps",
            [](Service& service, const Request&) { return ollama_running(kModel(service)); }),
      route(
          "POST", "/api/show",
          [](Service& service, const Request& request) {
            return ollama_show(service, request, kModel(service));
          },
          Body::any, Operation::ollama_show)};
}

}  // namespace rbee::server

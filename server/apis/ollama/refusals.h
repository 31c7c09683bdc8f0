#pragma once
// Ollama's routes for files of models, which a worker refuses: it serves the model that it was
// started with. `rbee serve` has some of them.

#include <array>
#include <string_view>

#include "server/http/router.h"

namespace rbee::server {

struct OllamaRefusal {
  std::string_view method;
  std::string_view path;
  bool of_store = true;  // a server that has a store of models' files serves it
};
inline constexpr OllamaRefusal kOllamaRefusals[] = {
    {"POST", "/api/pull"},           {"POST", "/api/push", false}, {"POST", "/api/create"},
    {"POST", "/api/copy"},           {"DELETE", "/api/delete"},    {"GET", "/api/blobs/{digest}"},
    {"POST", "/api/blobs/{digest}"},
};

// 501 in Ollama's form.
Response refuse_ollama(const Request& request);

// Those rows for one kind of worker.
template <typename Service>
constexpr auto ollama_refusal_routes() {
  std::array<ServiceRoute<Service>, std::size(kOllamaRefusals)> out{};
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = {.method = kOllamaRefusals[i].method,
              .pattern = kOllamaRefusals[i].path,
              .handler = [](Service&, const Request& request) { return refuse_ollama(request); },
              .errors = ErrorForm::ollama};
  }
  return out;
}

}  // namespace rbee::server

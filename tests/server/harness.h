#pragma once
// A chat worker on loopback whose engine follows a script.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/apis/chat_routes.h"
#include "server/http/server.h"
#include "server/llm/service.h"
#include "tests/server/fake_engine.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {

struct WorkerOptions {
  Script script;
  server::ServerOptions server;
  server::JobStoreOptions jobs;
  std::string token;
  std::function<void()> shutdown;
  server::ChatRouteOptions routes;
  server::LlmDefaults defaults;
  server::ResponseStoreOptions stored;
};

struct Worker {
  explicit Worker(WorkerOptions options = {})
      : engine(std::move(options.script)),
        service(engine,
                {.worker_id = "w-1",
                 .model_id = "hf:fake",
                 .implementation = "llm-worker-rbee-test",
                 .version = "1.2.3",
                 .jobs = options.jobs},
                options.defaults, options.stored),
        server(options.server, server::chat_routes(service, options.shutdown, options.routes),
               server::ApiKeys(options.token)) {
    service.set_port(server.port());
  }

  uint16_t port() const { return server.port(); }
  RawResponse get(std::string_view path, std::string_view headers = {}) const {
    return ask(port(), request("GET", path, {}, headers));
  }
  RawResponse post(std::string_view path, std::string_view body) const {
    return ask(port(), request("POST", path, body));
  }
  // Starts a job and returns its stream's path.
  std::string new_stream(std::string_view body = R"({"prompt":"Hi","max_tokens":100000})") const {
    const RawResponse response = post("/v1/jobs", body);
    return nlohmann::json::parse(response.body).at("sse_url").get<std::string>();
  }

  FakeEngine engine;
  server::LlmService service;
  server::Server server;
};

// Payloads of the `data:` lines of an event stream's body.
inline std::vector<std::string> payloads(const std::string& body) {
  std::vector<std::string> out;
  size_t at = 0;
  while ((at = body.find("data: ", at)) != std::string::npos) {
    const size_t end = body.find("\n\n", at);
    out.push_back(body.substr(at + 6, end - at - 6));
    at = end;
  }
  return out;
}

}  // namespace rbee::testing

#pragma once
// A picture worker on loopback whose engine follows a script.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/apis/image_routes.h"
#include "server/http/server.h"
#include "server/image/service.h"
#include "tests/server/fake_image_engine.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {

struct ImageWorker {
  static constexpr size_t kMostBody = size_t{64} << 20;  // as the worker's program has it

  explicit ImageWorker(ImageScript script = {}, server::JobStoreOptions jobs = {},
                       server::ServerOptions options = {.max_body_bytes = kMostBody})
      : engine(std::move(script)),
        service(engine, {.worker_id = "sd-1",
                         .model_id = "",
                         .implementation = "sd-worker-test",
                         .version = "1.2.3",
                         .jobs = jobs}),
        server(std::move(options), server::image_routes(service, nullptr), server::ApiKeys()) {
    service.set_port(server.port());
  }

  uint16_t port() const { return server.port(); }
  RawResponse get(std::string_view path, std::string_view headers = {}) const {
    return ask(port(), request("GET", path, {}, headers));
  }
  RawResponse post(std::string_view path, std::string_view body) const {
    return ask(port(), request("POST", path, body));
  }
  nlohmann::json get_json(std::string_view path) const {
    return nlohmann::json::parse(get(path).body);
  }
  std::string new_stream(std::string_view body) const {
    const RawResponse response = post("/v1/jobs", body);
    EXPECT_EQ(response.status, 200) << response.body;
    return nlohmann::json::parse(response.body).at("sse_url").get<std::string>();
  }

  FakeImageEngine engine;
  server::ImageService service;
  server::Server server;
};

struct Event {
  std::string name;  // empty: the event has none
  std::string data;
};

inline std::vector<Event> events_of(const std::string& body) {
  std::vector<Event> out;
  size_t at = 0;
  for (size_t end; (end = body.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string block = body.substr(at, end - at);
    const size_t data = block.find("data: ");
    if (data == std::string::npos) continue;  // a comment
    out.push_back({data == 0 ? "" : block.substr(7, data - 8), block.substr(data + 6)});
  }
  return out;
}

inline std::vector<std::string> names_of(const std::vector<Event>& events) {
  std::vector<std::string> names;
  for (const Event& event : events) names.push_back(event.name);
  return names;
}

inline std::string error_of(const RawResponse& response) {
  return nlohmann::json::parse(response.body).at("error").at("message");
}

constexpr const char* kCat = R"({"operation":"image_generation","prompt":"a cat"})";

}  // namespace rbee::testing

#pragma once
// A worker for embeddings or ranking on loopback, over a tiny random model. transformers computed
// its vectors and scores (tools/goldens/make_embedding_goldens.py).

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rbee/engine/embedding/engine.h"
#include "server/apis/embeddings/routes.h"
#include "server/http/server.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/server/raw_client.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {

inline std::filesystem::path embedding_folder(const std::string& name) {
  return std::filesystem::path(test::data_folder()) / "models/embedding/data" / name;
}

struct EmbeddingWorker {
  explicit EmbeddingWorker(const std::string& name, const char* chat_template = "")
      : engine(engine::make_embedding_engine(
            engine::load_embedding_source(
                embedding_folder(name) / "hf",
                {.device = &test::cpu_device(), .chat_template = chat_template}),
            {})),
        service(*engine, {.worker_id = "w-1",
                          .model_id = "hf:tiny",
                          .implementation = "llm-worker-rbee-test",
                          .version = "1.2.3"}),
        server({}, server::embedding_routes(service, nullptr), server::ApiKeys("")) {
    std::ifstream file(embedding_folder(name) / "golden.json");
    golden = nlohmann::json::parse(file);
  }

  RawResponse post(std::string_view path, const nlohmann::json& body) const {
    return ask(server.port(), request("POST", path, body.dump()));
  }
  nlohmann::json answer(std::string_view path, const nlohmann::json& body) const {
    const RawResponse response = post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return nlohmann::json::parse(response.body);
  }
  // Returns the field that a 400 names.
  nlohmann::json wrong(std::string_view path, const nlohmann::json& body) const {
    const RawResponse response = post(path, body);
    EXPECT_EQ(response.status, 400) << response.body;
    const nlohmann::json error = nlohmann::json::parse(response.body).at("error");
    EXPECT_EQ(error.at("type"), "invalid_request_error");
    return error.at("param");
  }

  nlohmann::json golden;
  std::unique_ptr<engine::EmbeddingEngine> engine;
  server::EmbeddingService service;
  server::Server server;
};

inline void expect_vector(const nlohmann::json& got, const nlohmann::json& wanted) {
  EXPECT_THAT(got.get<std::vector<float>>(),
              ::testing::Pointwise(::testing::FloatNear(1e-4f), wanted.get<std::vector<float>>()));
}

}  // namespace rbee::testing

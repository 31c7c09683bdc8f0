// What `rbee serve` answers itself under the names that workers and other servers have.

#include <gtest/gtest.h>

#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

TEST(Front, NamesOfRequestsComeBackOnce) {
  Front front(json::array({fake("a", "any")}));
  front.wait_ready();
  for (const char* path : {"/v1/infer", "/workers"}) {  // of a worker, and its own
    RawClient client(front.port());
    const bool post = std::string_view(path) == "/v1/infer";
    client.send(request(post ? "POST" : "GET", path, post ? R"({"prompt":"Hi"})" : "",
                        "X-Request-ID: r-1\r\n"));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.headers.at("x-request-id"), "r-1") << path;
    EXPECT_EQ(response.headers.at("x-correlation-id"), "r-1") << path;
  }
}

TEST(Front, AnswersUnderTheNamesOfWorkers) {
  Front front(json::array({fake("a", "any")}));
  front.wait_ready();
  for (const char* path : {"/health/ready", "/ready", "/v1/ready"}) {
    EXPECT_EQ(front.get(path).body, R"({"ready":true})") << path;
  }
  EXPECT_EQ(front.get("/v1/health").body, front.get("/health").body);
  EXPECT_TRUE(json::parse(front.get("/version").body).at("version").is_string());
  EXPECT_EQ(front.get("/models").body, front.get("/v1/models").body);
  EXPECT_EQ(front.get("/models/a").body, front.get("/v1/models/a").body);
  EXPECT_EQ(front.post("/chat/completions", chat("a", "Hi", false)).status, 200);
}

// Whatever their order: of two models of one kind, one makes vectors and one ranks.
TEST(Front, PathsOfEmbeddingsAndRankingFindTheirModel) {
  const auto model = [](const char* name) -> json {
    const std::string path = cat(RBEE_TEST_DATA, "/models/data_embedding/", name, "/hf");
    return {{"name", name},
            {"kind", "embedding"},
            {"program", LLM_WORKER},
            {"model", path},
            {"flags", {"--threads", "1"}}};
  };
  for (const bool turned : {false, true}) {
    Front front(json::array(
        {model(turned ? "bert_ranker" : "bert"), model(turned ? "bert" : "bert_ranker")}));
    front.wait_ready();
    const RawResponse vectors = front.post("/v1/embeddings", {{"input", "a"}});
    EXPECT_EQ(vectors.status, 200) << vectors.body;
    for (const char* path : {"/rerank", "/v1/reranking"}) {
      const RawResponse ranked = front.post(path, {{"query", "a"}, {"documents", {"b"}}});
      EXPECT_EQ(ranked.status, 200) << ranked.body;
    }
    const RawResponse wrong =
        front.post("/rerank", {{"model", "bert"}, {"query", "a"}, {"documents", {"b"}}});
    EXPECT_EQ(wrong.status, 400) << wrong.body;
  }
}

}  // namespace
}  // namespace rbee::testing

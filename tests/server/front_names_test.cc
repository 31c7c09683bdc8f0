// Routes that `rbee serve` answers itself, under the names of workers and other servers.

#include <gmock/gmock.h>

#include "tests/server/front_harness.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

TEST(Front, NamesOfRequestsComeBackOnce) {
  Front front(json::array({fake("a", "any")}));
  front.wait_ready();
  constexpr std::string_view kMessage =
      R"({"max_tokens":8,"messages":[{"role":"user","content":"Hi"}])";
  const std::string whole = cat(kMessage, "}"), stream = cat(kMessage, R"(,"stream":true})");
  const std::string other = cat(kMessage, R"(,"model":"other"})");
  struct Case {
    const char* path;
    std::string body;
    int status = 200;
  };
  // A worker's answer, whole and as a stream, and the front's own.
  for (const Case& c : {Case{"/v1/infer", R"({"prompt":"Hi"})"}, Case{"/v1/messages", whole},
                        Case{"/v1/messages", stream}, Case{"/v1/messages", other, 404},
                        Case{"/v1/messages", "{}", 400}, Case{"/workers", ""}}) {
    const RawResponse response = ask(front.port(), request(c.body.empty() ? "GET" : "POST", c.path,
                                                           c.body, "X-Request-ID: r-1\r\n"));
    EXPECT_EQ(response.status, c.status) << c.path << c.body;
    EXPECT_EQ(response.headers.at("x-request-id"), "r-1") << c.path;
    EXPECT_EQ(response.headers.at("x-correlation-id"), "r-1") << c.path;
    const bool anthropics = std::string_view(c.path) == "/v1/messages";
    EXPECT_EQ(response.headers.count("request-id"), anthropics ? 1U : 0U) << c.path;
    if (anthropics) {
      EXPECT_EQ(response.headers.at("request-id"), "r-1") << c.body;
    }
  }
}

// GET is the front's, POST the form of text-generation-inference and text-embeddings-inference.
TEST(Front, TheRootTakesRequests) {
  Front front(json::array({fake("a", "any"), fake("b", "any")}));
  front.wait_ready();
  for (const char* body :
       {R"({"inputs":"Hi","parameters":{"max_new_tokens":4}})", R"({"inputs":"Hi","model":"b"})"}) {
    const RawResponse answer = front.post("/", json::parse(body));
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_TRUE(json::parse(answer.body).at(0).contains("generated_text")) << answer.body;
  }
  EXPECT_EQ(front.post("/", json::parse(R"({"inputs":"Hi","model":"c"})")).status, 404);
  EXPECT_EQ(ask(front.port(), request("PUT", "/")).status, 405);
}

TEST(Front, AnswersUnderTheNamesOfWorkers) {
  Front front(json::array({fake("a", "any")}));
  front.wait_ready();
  for (const char* path : {"/health/ready", "/ready", "/v1/ready"}) {
    EXPECT_EQ(front.get(path).body, R"({"ready":true})") << path;
  }
  EXPECT_EQ(front.get("/v1/health").body, front.get("/health").body);
  EXPECT_TRUE(json::parse(front.get("/version").body).at("version").is_string());
  // The front learns a model's context length a moment after it is ready.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (front.get("/v1/models").body.find("max_model_len") == std::string::npos &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(front.get("/models").body, front.get("/v1/models").body);
  EXPECT_EQ(front.get("/models/a").body, front.get("/v1/models/a").body);
  EXPECT_EQ(front.post("/chat/completions", chat("a", "Hi", false)).status, 200);
}

// For the page: whether to offer a fetch, and which state a name has.
TEST(Front, PagesAreToldOtherNamesAndWhetherClientsMayFetch) {
  json model = fake("b", "any");
  model["flags"] = {"--lora", "wit=/nowhere/wit"};
  Front front(json::array({fake("a", "any"), model}));
  front.wait_ready();
  EXPECT_EQ(json::parse(front.get("/health").body).at("pull"), false);
  const json told = json::parse(front.get("/workers").body).at("models");
  EXPECT_EQ(told.at(1).at("aliases"), json::array({"wit"}));
  EXPECT_FALSE(told.at(0).contains("aliases"));
}

// In any order: of two models of one kind, one embeds and one ranks.
TEST(Front, PathsOfEmbeddingsAndRankingFindTheirModel) {
  const auto model = [](const char* name) -> json {
    const std::string path = cat(test::data_folder(), "/models/embedding/data/", name, "/hf");
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

// A worker of another kind or version may say "ready" too early.
TEST(Front, AWorkerIsReadyWhenItsHealthSaysSo) {
  const Folder folder;
  const std::string sign = folder.file("sign", "");
  const std::string program = folder.file("late", R"(#!/usr/bin/python3
import http.server, json, os
class Late(http.server.BaseHTTPRequestHandler):
    refused = 0
    def do_GET(self):
        early = os.path.exists(")" + sign + R"(")
        self.send_response(503 if early else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        if early:
            Late.refused += 1
            print("refused", Late.refused, flush=True)
server = http.server.HTTPServer(("127.0.0.1", 0), Late)
print(json.dumps({"message": "ready", "port": str(server.server_address[1])}), flush=True)
server.serve_forever()
)");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  nlohmann::json model = fake("a", "any");
  model["program"] = program;
  Front front(nlohmann::json::array({model}), {{"health_interval_ms", 50}});
  front.port();
  front.process().read_until("refused 2");
  EXPECT_EQ(front.get("/health/ready").status, 503);
  std::filesystem::remove(sign);
  front.wait_ready();
}

TEST(Front, UnknownPathsOfOllamaHaveItsForm) {
  Front front(json::array({fake("a", "any")}));
  const RawResponse unknown = front.get("/api/unknown");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body), json({{"error", "There is no such path"}}));
}

// OLLAMA_HOST says where to listen; a flag goes before it.
TEST(Front, ListensWhereOllamasVariableSays) {
  const std::vector<std::string> model{"serve", "--model", "nowhere.gguf"};
  const auto port_of = [&](std::vector<std::string> more, const char* variable) {
    more.insert(more.begin(), model.begin(), model.end());
    Process front(RBEE, more, {variable});
    return std::pair(front.port(), front.text());
  };
  const auto [free, text] = port_of({}, "OLLAMA_HOST=127.0.0.2:0");
  EXPECT_NE(free, 8080);
  EXPECT_THAT(text, ::testing::HasSubstr("127.0.0.2"));
  const auto [other, both] = port_of({"--port", "0"}, "OLLAMA_HOST=127.0.0.2:1");
  EXPECT_NE(other, 1);
  EXPECT_THAT(both, ::testing::HasSubstr("127.0.0.2"));
  EXPECT_THAT(port_of({"--host", "127.0.0.1"}, "OLLAMA_HOST=127.0.0.2:0").second,
              ::testing::HasSubstr("127.0.0.1"));
  EXPECT_THAT(port_of({}, "OLLAMA_HOST= \"127.0.0.2:0\" ").second,
              ::testing::HasSubstr("127.0.0.2"));
}

}  // namespace
}  // namespace rbee::testing

// rbee serve: workers as child processes behind one port. Most tests use a scripted engine, so that
// the test decides when a model is loaded and when an answer ends.

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/checkpoints/model_folder.h"
#include "tests/server/front_harness.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

std::string said(const RawResponse& response) {
  return json::parse(response.body)["choices"][0]["message"]["content"];
}

TEST(Front, RoutesByModelAndPath) {
  Front front(json::array({fake("a", "echo"), fake("b", "any")}));
  front.wait_ready();
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("a", "parrot"))), "parrot");
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("b", "parrot"))), "Hello, world");
  json unnamed = chat("a", "first");
  unnamed.erase("model");
  EXPECT_EQ(said(front.post("/v1/chat/completions", unnamed)), "first");
  const RawResponse unknown = front.post("/v1/chat/completions", chat("c", "Hi"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body).at("error"),
            json({{"message", "The model 'c' does not exist"},
                  {"type", "invalid_request_error"},
                  {"param", "model"},
                  {"code", "model_not_found"}}));
  const json message = {{"model", "c"}, {"max_tokens", 1}, {"messages", json::array()}};
  EXPECT_EQ(json::parse(front.post("/v1/messages", message).body).at("error").at("type"),
            "not_found_error");
  EXPECT_EQ(front.post("/v1/images/generations", {{"prompt", "x"}}).status, 404);
  // The front forwards no paths that are not for its clients.
  EXPECT_EQ(front.post("/v1/shutdown", json::object()).status, 404);
  const json models = json::parse(front.get("/v1/models").body);
  ASSERT_EQ(models.at("data").size(), 2);
  EXPECT_EQ(models["data"][1]["id"], "b");
  EXPECT_EQ(models["data"][1]["kind"], "chat");
  EXPECT_THAT(front.get("/health").body, HasSubstr("healthy"));
  EXPECT_THAT(front.post("/v1/chat/completions", json{{"model", "a"}, {"messages", 3}}).body,
              HasSubstr("messages"));
}

TEST(Front, AdaptersAreNamesOfTheirModel) {
  json model = fake("b", "echo");
  model["flags"] = {"--lora", "wit=/nowhere/wit", "--lora-modules=/nowhere/loud.gguf:0.5"};
  Front front(json::array({fake("a", "any"), model}));
  front.wait_ready();
  for (const char* name : {"b", "wit", "loud"}) {
    EXPECT_EQ(said(front.post("/v1/chat/completions", chat(name, "parrot"))), "parrot") << name;
  }
  EXPECT_EQ(front.post("/v1/chat/completions", chat("quiet", "Hi")).status, 404);
  const json models = json::parse(front.get("/v1/models").body).at("data");
  ASSERT_EQ(models.size(), 4);
  EXPECT_EQ(models[2].at("id"), "wit");
  EXPECT_EQ(models[2].at("parent"), "b");
  EXPECT_FALSE(models[1].contains("parent"));
  for (const json& each : models) EXPECT_EQ(each.at("max_model_len"), 2048);
  EXPECT_EQ(json::parse(front.get("/v1/models/wit").body), models[2]);
  const RawResponse none = front.get("/v1/models/no/such");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(json::parse(none.body).at("error").at("code"), "model_not_found");
  EXPECT_EQ(front.post("/v1/models/wit", json::object()).status, 405);
  const char* version = "anthropic-version: 2023-06-01\r\n";
  const json list = json::parse(front.get("/v1/models", version).body);
  EXPECT_EQ(list.at("first_id"), "a");
  EXPECT_EQ(list.at("last_id"), "loud");
  EXPECT_EQ(list.at("data")[2].at("display_name"), "wit");
  EXPECT_EQ(json::parse(front.get("/v1/models/wit", version).body), list.at("data")[2]);
  EXPECT_EQ(json::parse(front.get("/v1/models/no/such", version).body).at("error").at("type"),
            "not_found_error");
  const json alive = json::parse(front.get("/health").body);
  EXPECT_EQ(alive.at("models")[0], json({{"name", "a"}, {"kind", "chat"}}));
  EXPECT_EQ(alive.at("models")[3].at("name"), "loud");
}

TEST(Front, StreamsPassWhole) {
  Front front(json::array({fake("a", "any")}));
  front.wait_ready();
  const RawResponse stream = front.post("/v1/chat/completions", chat("a", "Hi", true));
  EXPECT_EQ(stream.headers.at("content-type"), "text/event-stream");
  EXPECT_THAT(stream.body, HasSubstr("world"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n")) << stream.body;
  RawClient client(front.port());
  client.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})", "X-Correlation-ID: c-1\r\n"));
  EXPECT_EQ(client.read_response().headers.at("x-correlation-id"), "c-1");
}

TEST(Front, JobsStayWithTheirWorker) {
  Front front(json::array({fake("a", "any", 3)}));
  front.workers(0, 3);
  for (int i = 0; i < 6; ++i) {
    const RawResponse job = front.post("/v1/jobs", {{"prompt", "Hi"}});
    ASSERT_EQ(job.status, 200) << job.body;
    const std::string path = json::parse(job.body).at("sse_url");
    EXPECT_THAT(front.get(path).body, HasSubstr("world"));
  }
  EXPECT_EQ(front.get("/v1/jobs/job-none/stream").status, 404);
}

TEST(Front, EqualWorkersShareAndLeftRequestsAreCancelled) {
  Front front(json::array({fake("a", "hold", 2)}));
  front.workers(0, 2);
  RawClient first(front.port());
  RawClient second(front.port());
  for (RawClient* client : {&first, &second}) {
    client->send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
    EXPECT_THAT(client->read_until("world"), HasSubstr("Hello"));
  }
  EXPECT_EQ(front.metric(R"(rbee_front_worker_running{worker="a-0"})"), 1);
  EXPECT_EQ(front.metric(R"(rbee_front_worker_running{worker="a-1"})"), 1);
  EXPECT_EQ(front.metric(R"(worker_requests_total{worker="a-0",outcome="cancelled"})"), 0);
  first.close();
  second.close();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (front.metric(R"(worker_requests_total{worker="a-0",outcome="cancelled"})") < 1) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  EXPECT_EQ(front.metric("rbee_front_requests_total{outcome=\"left\"}"), 2);
}

TEST(Front, RequestsWaitForASlowStart) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({fake("a", "gate:" + gate)}));
  EXPECT_EQ(front.get("/health/ready").status, 503);
  RawClient early(front.port());
  early.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  while (front.metric("rbee_front_requests_waiting") < 1) {
  }
  std::ofstream(gate) << "open";
  const RawResponse answer = early.read_response();
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("world"));
}

TEST(Front, AnswersHaveALargestSize) {
  Front front(json::array({fake("chat", "echo")}), {{"max_answer_bytes", 1024}});
  EXPECT_EQ(front.post("/v1/chat/completions", chat("chat", "short")).status, 200);
  const std::string text(1100, 'a');
  const RawResponse refused = front.post("/v1/chat/completions", chat("chat", text));
  EXPECT_EQ(refused.status, 502);
  EXPECT_THAT(refused.body, HasSubstr("ANSWER_TOO_LARGE"));
  // The front forwards a stream while it arrives.
  const RawResponse stream = front.post("/v1/chat/completions", chat("chat", text, true));
  EXPECT_EQ(stream.status, 200);
  EXPECT_THAT(stream.body, HasSubstr("[DONE]"));
}

TEST(Front, KeysGuardItAndItsWorkers) {
  Front front(json::array({fake("a", "any")}), json::object(), {}, {"LLORCH_API_TOKEN=secret"});
  const std::string key = "Authorization: Bearer secret\r\n";
  const uint16_t port = front.port();
  EXPECT_EQ(ask(port, request("GET", "/v1/models")).status, 401);
  EXPECT_EQ(ask(port, request("POST", "/v1/infer", R"({"prompt":"Hi"})")).status, 401);
  EXPECT_EQ(ask(port, request("POST", "/v1/infer", R"({"prompt":"Hi"})", key)).status, 200);
  // The worker's own port requires its own key: no key and the client's key are refused.
  const std::string mark = R"(\"port\":\")";
  const std::string& log = front.process().read_until(R"("path":"/v1/infer","status":200)");
  const size_t at = log.find(mark, log.find(R"("text":"ready")"));
  const auto worker = static_cast<uint16_t>(std::stoi(log.substr(at + mark.size())));
  EXPECT_EQ(ask(worker, request("GET", "/info")).status, 401);
  EXPECT_EQ(ask(worker, request("GET", "/info", {}, key)).status, 401);
}

TEST(Front, BadConfigurationsNameTheField) {
  const Folder folder;
  const auto complaint = [&](const std::string& text) {
    Process process(RBEE, {"serve", "--config", folder.file("bad.json", text)});
    EXPECT_EQ(process.wait(), 1) << text;
    return process.text();
  };
  EXPECT_THAT(complaint("{"), HasSubstr("is not JSON: line 1, column 2"));
  EXPECT_THAT(complaint("{}"), HasSubstr("models must be an array"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a"}]})"), HasSubstr("models[0].model is required"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a","model":"m","replicas":0}]})"),
              HasSubstr("models[0].replicas must be an integer from 1 to 64"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a","model":"m","kind":"sound"}]})"),
              HasSubstr("models[0].kind must be one of chat, image, embedding"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a","model":"m"},{"name":"a","model":"m"}]})"),
              HasSubstr("models[1].name is another model's too"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a","model":"m","colour":1}]})"),
              HasSubstr("models[0].colour is not known"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a","model":"m","program":"/none"}]})"),
              HasSubstr("the program of a cannot be run: /none"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a","model":"m","keep_alive":"soon"}]})"),
              HasSubstr("models[0].keep_alive must be a duration"));
  EXPECT_THAT(complaint(R"({"models":[{"name":"a","model":"m","keep_alive":1,"replicas":2}]})"),
              HasSubstr("models[0].replicas must be 1 beside keep_alive"));
  Process both(RBEE, {"serve", "--model", "m", "--pull"});
  EXPECT_EQ(both.wait(), 2);
  EXPECT_THAT(both.text(), HasSubstr("--model excludes --pull"));
  Process soon(RBEE, {"serve", "--keep-alive", "soon"});
  EXPECT_EQ(soon.wait(), 2);
  EXPECT_THAT(soon.text(), HasSubstr("'soon' is no duration such as 5m"));
}

TEST(Front, ChatAndPicturesOfRealModels) {
  const test::ModelFolder model(test::data_folder());
  const json models =
      json::array({{{"name", "chat"},
                    {"program", LLM_WORKER},
                    {"model", model.path().string()},
                    {"flags", {"--threads", "1", "--context", "256"}}},
                   {{"name", "emoji"},
                    {"kind", "image"},
                    {"program", SD_WORKER},
                    {"model", fs::path(test::data_folder()).parent_path() / "models/tiny-emoji"},
                    {"flags", {"--threads", "1"}}}});
  Front front(models);
  front.wait_ready();
  json question = chat("chat", "Hi");
  question["max_tokens"] = 4;
  EXPECT_EQ(front.post("/v1/chat/completions", question).status, 200);
  const json drawing = {{"prompt", "a red heart"}, {"steps", 1}, {"width", 64}, {"height", 64}};
  const RawResponse picture = front.post("/sdapi/v1/txt2img", drawing);
  EXPECT_EQ(picture.status, 200) << picture.body;
  EXPECT_EQ(json::parse(picture.body).at("images").size(), 1);
  const RawResponse refused = front.post("/api/generate", {{"model", "emoji"}, {"prompt", "x"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json::parse(refused.body), json({{"error", "\"emoji\" does not support generate"}}));
  const std::string metrics = front.get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr(R"({worker="chat-0",outcome="completed"} 1)"));
  EXPECT_THAT(metrics, HasSubstr(R"({worker="emoji-0",outcome="completed"} 1)"));
  EXPECT_THAT(front.get("/").body, HasSubstr("chat"));
}

TEST(Front, TheOpenApiDocumentStaysWhileWorkersComeAndGo) {
  Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({fake("chat", "gate:" + gate)}),
              {{"back_off_ms", 600'000}, {"max_back_off_ms", 600'000}});
  const auto paths = [&] { return json::parse(front.get("/openapi.json").body).at("paths"); };
  EXPECT_EQ(paths().size(), 20u);  // its own
  std::ofstream(gate).close();     // the worker has its model
  front.wait_ready();
  const json there = paths();
  EXPECT_TRUE(there.contains("/v1/chat/completions"));
  EXPECT_FALSE(there.contains("/v1/shutdown"));
  kill(front.workers(0, 1).at(0).at("pid").get<pid_t>(), SIGKILL);
  while (front.workers(0, 0).at(0).at("state") == "ready") {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(paths(), there);
}

// A monitor sends these as long as the front runs.
TEST(Front, QuestionsToAllWorkersLeaveNothingBehind) {
  Front front(json::array({fake("a", "any")}), json::object(), {},
              {"ASAN_OPTIONS=quarantine_size_mb=1"});
  front.wait_ready();
  const auto resident = [&](int questions) {
    for (int i = 0; i < questions; ++i) front.get("/metrics");
    return front.metric(R"(process_resident_memory_bytes{worker="front"})");
  };
  const double before = resident(200);
  EXPECT_GT(before, 0);
  EXPECT_LT(resident(600) - before, 8 << 20);  // each question has a buffer of 16 KiB per worker
}

TEST(Front, ItsOwnPathsTakeNoOtherMethod) {
  Front front(json::array({fake("chat", "any")}));
  const RawResponse response = front.post("/workers", {});
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.at("allow"), "GET, HEAD");
}

}  // namespace
}  // namespace rbee::testing

// Other projects' clients against the CPU workers over tiny random models; see clients/.

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cat.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/checkpoints/made_upscaler.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/checkpoints/tiny_tokenizer.h"
#include "tests/server/client_script.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void run_client(Process& worker, const char* script, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {(fs::path(CLIENTS) / script).string(),
                                        cat("http://127.0.0.1:", worker.port())};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Process client(python(), arguments, {variable("PATH"), variable("HOME"), "NO_PROXY=*"});
  const int status = client.wait();
  if (status == kSkipped) GTEST_SKIP() << client.text();
  EXPECT_EQ(status, 0) << client.text();
}

class Clients : public ::testing::Test {
 protected:
  Clients() {
    fs::copy(test::image_data("tokenizer"), model_.path() / "tokenizer",
             fs::copy_options::recursive);
  }

  void run(const char* script, const std::vector<std::string>& more = {}) {
    const fs::path network = model_.path() / "tiny-x2.safetensors";
    test::write_safetensors(
        network, test::made_upscaler({.blocks = 1, .width = 8, .growth = 4, .doublings = 1}));
    Process worker(SD_WORKER, {"--model-path", model_.path().string(), "--port", "0", "--threads",
                               "1", "--upscale-model", network.string()});
    run_client(worker, script, more);
  }

  test::ImageFolder model_{"sd1"};
};

TEST_F(Clients, OpenAisOwnPythonClient) {
  run("openai_client.py");
}

TEST_F(Clients, ThePageInABrowser) {
  run("page.py", {(model_.path() / "screenshots").string()});
}

TEST_F(Clients, ACollectorOfTraces) {
  Process collector(python(),
                    {(fs::path(CLIENTS) / "traces.py").string(), FAKE_WORKER, RBEE, SD_WORKER,
                     model_.path().string()},
                    {variable("PATH"), "no_proxy=*"});
  EXPECT_EQ(collector.wait(), 0) << collector.text();
}

// The engine answers with scripted text, so the test knows what the page must show.
TEST(ChatClients, ThePageInABrowser) {
  Process worker(FAKE_WORKER, {"--model", "echo", "--port", "0", "--model-ref", "hf:tiny/chat"},
                 {"LLORCH_API_TOKEN=page secret"});
  const fs::path shots = fs::temp_directory_path() / cat("rbee-page-", worker.port());
  run_client(worker, "chat_page.py", {shots.string(), "page secret"});
  fs::remove_all(shots);
}

TEST(ChatClients, PartsOfThePagesInABrowser) {
  Process worker(FAKE_WORKER, {"--model", "echo", "--port", "0", "--model-ref", "hf:tiny/chat"});
  run_client(worker, "page_parts.py");
}

TEST(ChatClients, ThePageOfSeveralModelsInABrowser) {
  const auto model = [](const char* name, const char* script, json flags) -> json {
    return {{"name", name}, {"program", FAKE_WORKER}, {"model", script}, {"flags", flags}};
  };
  json lazy = model("lazy", "echo", json::array());
  lazy["keep_alive"] = "1h";
  const json config = {
      {"models",
       {model("parrot", "echo", {"--lora", "crow=/nowhere"}),
        model("other", "any", json::array()),
        lazy,
        {{"name", "sketch/1"}, {"kind", "image"}, {"program", FAKE_SD_WORKER}, {"model", "any"}}}}};
  const fs::path file = fs::temp_directory_path() / cat("rbee-serve-", getpid(), ".json");
  std::ofstream(file) << config.dump();
  Process front(RBEE, {"serve", "--port", "0", "--config", file.string()});
  const fs::path shots = fs::temp_directory_path() / cat("rbee-front-", front.port());
  run_client(front, "front_page.py", {shots.string()});
  fs::remove_all(shots);
  fs::remove(file);
}

TEST(ChatClients, OpenAisOwnPythonClient) {
  const test::ModelFolder model(test::data_folder());
  Process worker(LLM_WORKER, {"--model", model.path().string(), "--port", "0", "--threads", "1",
                              "--context", "256", "--model-ref", "hf:tiny/chat"});
  run_client(worker, "openai_chat_client.py");
}

TEST(ChatClients, ARoutersIndexOfTheCache) {
  const test::ModelFolder model(test::data_folder());
  const fs::path sockets = fs::temp_directory_path() / cat("rbee-kv-", getpid());
  fs::create_directory(sockets);
  const std::string events = "ipc://" + (sockets / "events").string();
  const std::string replay = "ipc://" + (sockets / "replay").string();
  const json config = {{"enable_kv_cache_events", true},
                       {"publisher", "zmq"},
                       {"endpoint", events},
                       {"replay_endpoint", replay},
                       {"topic", "kv"}};
  {
    Process worker(LLM_WORKER,
                   {"--model", model.path().string(), "--port", "0", "--threads", "1", "--context",
                    "256", "--cache-tokens", "256", "--max-running", "1", "--host-cache-gib",
                    "0.00006", "--kv-events-config", config.dump()},
                   {"PYTHONHASHSEED=7"});
    run_client(worker, "kv_events_client.py", {events, replay});
  }
  fs::remove_all(sockets);
}

// A tiny random model whose template opens its reasoning.
class ThinkingFolder {
 public:
  ThinkingFolder() {
    std::ofstream(path() / "tokenizer.json")
        << test::tiny_tokenizer_json("<none>", {"<think>", "</think>"});
    std::ofstream(path() / "tokenizer_config.json")
        << R"({"bos_token": "<s>", "chat_template": "{{ messages[-1].content }}<think>\n"})";
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  test::ModelFolder folder_{test::data_folder()};
};

TEST(ChatClients, BudgetsOfReasoning) {
  const ThinkingFolder model;
  Process worker(LLM_WORKER, {"--model", model.path().string(), "--port", "0", "--threads", "1",
                              "--context", "256"});
  run_client(worker, "tools_client.py", {"thinking"});
}

TEST(ChatClients, BudgetsOfReasoningInTheTerminal) {
  const ThinkingFolder model;
  // The text before the figures after the answer.
  const auto said = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run",
                                       "-m",
                                       model.path().string(),
                                       "--device",
                                       "cpu",
                                       "-t",
                                       "1",
                                       "-n",
                                       "20",
                                       "--temperature",
                                       "0",
                                       "--logit-bias",
                                       "159=-100",
                                       "--reasoning-budget",
                                       "4",
                                       "Hi"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process program(RBEE, arguments);
    EXPECT_EQ(program.wait(), 0) << program.text();
    EXPECT_THAT(program.text(), ::testing::HasSubstr("answer 20 tokens, 4 of them reasoning"));
    return program.text().substr(0, program.text().find("\n\n[prompt "));
  };
  const std::string shown = said({}), hidden = said({"--hide-reasoning"});
  EXPECT_FALSE(hidden.empty());
  EXPECT_THAT(shown, ::testing::EndsWith("\n\n" + hidden));
  EXPECT_GT(shown.find("\n\n" + hidden), 0u);
}

TEST(ChatClients, OpenAisOwnPythonClientChoosesAdapters) {
  const test::ModelFolder model(test::data_folder());
  const std::string adapter = cat(test::data_folder(), "/models/language/data/lora/smollm");
  Process worker(LLM_WORKER,
                 {"--model", model.path().string(), "--port", "0", "--threads", "1", "--context",
                  "256", "--model-ref", "hf:tiny/chat", "--lora", cat("loud=", adapter), "--lora",
                  cat("quiet=", adapter, ":0.25"), "--lora-loading"});
  run_client(worker, "openai_lora_client.py", {adapter});
}

TEST(ChatClients, TheOpenApiDocumentIsTrue) {
  Process worker(FAKE_WORKER, {"--model", "any", "--port", "0", "--host", "127.0.0.1"},
                 {"LLORCH_API_TOKEN=secret"});
  run_client(worker, "openapi.py", {"secret"});
}

TEST(PictureClients, TheOpenApiDocumentIsTrue) {
  Process worker(FAKE_SD_WORKER, {"--model-path", "any", "--port", "0", "--host", "127.0.0.1"},
                 {"LLORCH_API_TOKEN=secret"});
  run_client(worker, "openapi.py", {"secret"});
}

TEST(EmbeddingClients, TheOpenApiDocumentIsTrue) {
  for (const char* name : {"bert", "bert_ranker"}) {
    const fs::path model = fs::path(test::data_folder()) / "models/embedding/data" / name / "hf";
    Process worker(
        LLM_WORKER,
        {"--model", model.string(), "--port", "0", "--threads", "1", "--host", "127.0.0.1"},
        {"LLORCH_API_TOKEN=secret"});
    run_client(worker, "openapi.py", {"secret"});
  }
}

TEST(FrontClients, TheOpenApiDocumentIsTrue) {
  const fs::path config = fs::temp_directory_path() / cat("rbee-serve-", getpid(), ".json");
  std::ofstream(config) << cat(R"({"models":[{"name":"chat","model":"any","program":")",
                               FAKE_WORKER,
                               R"("},{"name":"pictures","kind":"image","model":"any","program":")",
                               FAKE_SD_WORKER, R"("}]})");
  Process front(RBEE, {"serve", "--config", config.string(), "--port", "0", "--host", "127.0.0.1"},
                {"LLORCH_API_TOKEN=secret"});
  const auto get = [&](std::string_view path) { return ask(front.port(), request("GET", path)); };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (get("/health/ready").status != 200) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << front.text();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::string document = get("/openapi.json").body;
  for (const char* path : {"/v1/chat/completions", "/v1/images/generations", "/workers"}) {
    EXPECT_THAT(document, ::testing::HasSubstr(path));
  }
  run_client(front, "openapi.py", {"secret", "front"});
  fs::remove(config);
}

TEST(Packaging, TheHelmChartRendersAndValidates) {
  const fs::path chart = fs::path(CLIENTS) / "../../../packaging/helm/rbee";
  Process check(python(),
                {(fs::path(CLIENTS) / "chart.py").string(), chart.string(), LLM_WORKER, SD_WORKER},
                {variable("PATH"), variable("HOME")});
  const int status = check.wait();
  if (status == kSkipped) GTEST_SKIP() << check.text();
  EXPECT_EQ(status, 0) << check.text();
}

TEST(Packaging, DebianPackagesHoldProgramsUnitsAndScripts) {
  const fs::path repository = fs::path(CLIENTS) / "../../..";
  Process check("/usr/bin/python3",
                {(fs::path(CLIENTS) / "packages.py").string(), repository.string()},
                {variable("PATH"), variable("HOME")});
  const int status = check.wait();
  if (status == kSkipped) GTEST_SKIP() << check.text();
  EXPECT_EQ(status, 0) << check.text();
}

TEST(ChatClients, AHiveThatSpawnsLosesAndReplacesWorkers) {
  const test::ModelFolder model(test::data_folder());
  Process hive("/usr/bin/python3",
               {(fs::path(CLIENTS) / "hive.py").string(), LLM_WORKER, model.path().string()},
               {variable("PATH"), "no_proxy=*"});
  EXPECT_EQ(hive.wait(), 0) << hive.text();
}

TEST(EmbeddingClients, OpenAisOwnPythonClient) {
  const fs::path model = fs::path(test::data_folder()) / "models/embedding/data" / "bert";
  Process worker(LLM_WORKER, {"--model", (model / "hf").string(), "--port", "0", "--threads", "1",
                              "--model-ref", "hf:tiny/bert"});
  run_client(worker, "openai_embeddings_client.py", {(model / "golden.json").string()});
}

TEST(ChatClients, AnthropicsOwnPythonClient) {
  const test::ModelFolder model(test::data_folder());
  Process worker(LLM_WORKER,
                 {"--model", model.path().string(), "--port", "0", "--threads", "1", "--context",
                  "256", "--model-ref", "hf:tiny/chat"},
                 {"LLORCH_API_TOKEN=secret"});
  run_client(worker, "anthropic_client.py");
}

// LangChain's, LiteLLM's and LlamaIndex's clients use it too.
TEST(ChatClients, OllamasOwnPythonClient) {
  const test::ModelFolder model(test::data_folder());
  Process worker(LLM_WORKER, {"--model", model.path().string(), "--port", "0", "--threads", "1",
                              "--context", "1024", "--model-ref", "tiny"});
  run_client(worker, "ollama_client.py", {"chat"});
}

TEST(EmbeddingClients, OllamasOwnPythonClient) {
  const fs::path model = fs::path(test::data_folder()) / "models/embedding/data" / "bert";
  Process worker(LLM_WORKER, {"--model", (model / "hf").string(), "--port", "0", "--threads", "1",
                              "--model-ref", "tiny"});
  run_client(worker, "ollama_client.py", {"embedding", (model / "golden.json").string()});
}

// Runs a client against `rbee serve` with these models, once they are loaded.
void run_client_of_front(const json& models, const char* script, const char* part) {
  const fs::path file = fs::temp_directory_path() / cat("rbee-", part, "-", getpid(), ".json");
  std::ofstream(file) << json{{"models", models}}.dump();
  Process front(RBEE, {"serve", "--port", "0", "--config", file.string()});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (ask(front.port(), request("GET", "/health/ready")).status != 200) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << front.text();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  run_client(front, script, {part});
  fs::remove(file);
}

TEST(FrontClients, OllamasOwnPythonClient) {
  const json models = {{{"name", "parrot"}, {"program", FAKE_WORKER}, {"model", "echo"}},
                       {{"name", "other"}, {"program", FAKE_WORKER}, {"model", "any"}}};
  run_client_of_front(models, "ollama_client.py", "front");
}

// Requests take turns between two workers, each with a memory of its own.
TEST(FrontClients, OpenAisOwnPythonClientGoesOnFromStoredResponses) {
  const test::ModelFolder model(test::data_folder());
  const json models = json::array({{{"name", "tiny"},
                                    {"program", LLM_WORKER},
                                    {"model", model.path().string()},
                                    {"replicas", 2},
                                    {"flags", {"--threads", "1", "--context", "256"}}}});
  run_client_of_front(models, "openai_chat_client.py", "memory");
}

TEST(ChatClients, CoheresOwnPythonClient) {
  const test::ModelFolder model(test::data_folder());
  Process worker(LLM_WORKER, {"--model", model.path().string(), "--port", "0", "--threads", "1",
                              "--context", "1024", "--tool-parser", "llama3"});
  run_client(worker, "cohere_client.py");
}

TEST(ChatClients, PicturesWithBothPythonClients) {
  const fs::path model = fs::path(test::data_folder()) / "models/vision/data" / "hf";
  Process worker(LLM_WORKER, {"--model", model.string(), "--port", "0", "--threads", "1",
                              "--context", "256", "--model-ref", "hf:tiny/chat"});
  run_client(worker, "pictures_client.py");
}

TEST(ChatClients, ToolsWithBothPythonClients) {
  {
    Process worker(FAKE_WORKER, {"--model", "echo", "--port", "0", "--model-ref", "hf:tiny/chat"});
    run_client(worker, "tools_client.py", {"echo"});
  }
  if (IsSkipped()) return;
  const test::ModelFolder model(test::data_folder());
  Process worker(LLM_WORKER, {"--model", model.path().string(), "--port", "0", "--threads", "1",
                              "--context", "1024", "--tool-parser", "llama3"});
  run_client(worker, "tools_client.py", {"forced"});
}

}  // namespace
}  // namespace rbee::testing

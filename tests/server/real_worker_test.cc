// The CPU worker's own program over a tiny random model: many streams, and ending running ones.

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cat.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/checkpoints/undefined_tensor.h"
#include "tests/server/harness.h"
#include "tests/server/process.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class RealWorker : public ::testing::Test {
 protected:
  std::vector<std::string> arguments(std::string_view context,
                                     std::vector<std::string> more = {}) const {
    std::vector<std::string> out{"--model",   model_.path().string(), "--port",    "0",
                                 "--context", std::string(context),   "--threads", "1"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  std::string model() const { return model_.path().string(); }

 private:
  test::ModelFolder model_{test::data_folder()};
};

using Clients = std::vector<std::unique_ptr<RawClient>>;

// Creates `count` jobs and opens all their streams. prompts: the number of different ones.
Clients open_streams(uint16_t port, int count, int prompts, int max_tokens) {
  Clients clients;
  for (int i = 0; i < count; ++i) {
    const json body = {
        {"prompt", cat("prompt ", i % prompts)}, {"max_tokens", max_tokens}, {"temperature", 0}};
    const RawResponse job = ask(port, request("POST", "/v1/jobs", body.dump()));
    EXPECT_EQ(job.status, 200) << job.body;
    clients.push_back(std::make_unique<RawClient>(port));
    clients.back()->send(request("GET", json::parse(job.body).at("sse_url").get<std::string>()));
  }
  for (const auto& client : clients) EXPECT_EQ(client->read_head().status, 200);
  return clients;
}

double metric(uint16_t port, const std::string& name) {
  const std::string all = "\n" + ask(port, request("GET", "/metrics")).body;
  const size_t at = all.find("\n" + name);
  if (at == std::string::npos) return -1;
  return std::stod(all.substr(all.find(' ', at)));
}

// Waits for at most a minute.
bool comes_to(uint16_t port, const std::string& name, double wanted) {
  for (int i = 0; i < 600; ++i) {
    if (metric(port, name) == wanted) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

std::string text_of(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) {
    if (!event.starts_with('{')) continue;
    const json object = json::parse(event);
    if (object.at("type") == "token") text += object.at("t").get<std::string>();
  }
  return text;
}

TEST_F(RealWorker, AModelThatIsCutEndsTheWorkerWithTheFilesName) {
  Process worker(LLM_WORKER, arguments("64"));
  RawClient client(worker.port());
  std::filesystem::resize_file(model() + "/model.safetensors", 4096);
  client.send(request("POST", "/v1/completions", R"({"prompt":"any","max_tokens":40})"));
  EXPECT_EQ(worker.wait(), 3);
  EXPECT_THAT(worker.text(), HasSubstr("llm-worker-rbee-cpu: " + model() +
                                       "/model.safetensors: cannot be read any more: it was cut"));
}

TEST_F(RealWorker, AModelThatComputesNaNFailsEveryAnswer) {
  test::make_undefined(model() + "/model.safetensors", "model.layers.0.input_layernorm.weight");
  Process worker(LLM_WORKER, arguments("64"));
  const uint16_t port = worker.port();
  for (const double temperature : {0.0, 0.8}) {
    const json body = {{"prompt", "some words"}, {"temperature", temperature}};
    const RawResponse answer = ask(port, request("POST", "/v1/completions", body.dump()));
    EXPECT_EQ(answer.status, 500) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("the model gave no finite logit"));
  }
  for (const json& scored : {json{{"echo", true}, {"logprobs", 1}}, {{"prompt_logprobs", 0}}}) {
    json body = {{"prompt", "some words"}, {"max_tokens", 0}};
    body.update(scored);
    const RawResponse answer = ask(port, request("POST", "/v1/completions", body.dump()));
    EXPECT_EQ(answer.status, 500) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("the model gave no finite logit"));
  }
  const Clients clients = open_streams(port, 1, 1, 5);
  EXPECT_THAT(clients[0]->read_until("data: [DONE]"), HasSubstr(R"("type":"error")"));
  EXPECT_EQ(metric(port, R"(worker_requests_total{outcome="failed"})"), 5);
}

TEST_F(RealWorker, ServesAHundredStreamsAtOnce) {
  constexpr int kStreams = 100;
  constexpr int kPrompts = 7;
  constexpr int kTokens = 40;
  Process worker(LLM_WORKER, arguments("64"));
  const uint16_t port = worker.port();
  const Clients clients = open_streams(port, kStreams, kPrompts, kTokens);
  std::map<int, std::string> texts;
  for (int i = 0; i < kStreams; ++i) {
    const std::string body = clients[static_cast<size_t>(i)]->read_until("data: [DONE]\n\n");
    EXPECT_THAT(body, EndsWith("data: [DONE]\n\n")) << i;
    EXPECT_THAT(body, Not(HasSubstr(R"("type":"error")"))) << i;
    EXPECT_THAT(body, HasSubstr(cat(R"("type":"end","tokens_out":)", kTokens))) << i;
    const std::string text = text_of(payloads(body));
    EXPECT_FALSE(text.empty()) << i;
    // Streams with one prompt give the same text.
    EXPECT_EQ(texts.emplace(i % kPrompts, text).first->second, text) << i;
  }
  const std::string metrics = ask(port, request("GET", "/metrics")).body;
  EXPECT_THAT(metrics, HasSubstr(cat("worker_requests_total{outcome=\"completed\"} ", kStreams)));
  EXPECT_THAT(metrics, HasSubstr(cat("worker_tokens_generated_total ", kStreams * kTokens, "\n")));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST_F(RealWorker, LlamaServersCompletionIsTheEnginesAndItsPromptIsKept) {
  Process worker(LLM_WORKER, arguments("256"));
  const uint16_t port = worker.port();
  const auto post = [&](const char* path, const json& body) {
    const RawResponse response = ask(port, request("POST", path, body.dump()));
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  };
  const json body = {{"prompt", "a prompt of some words, and more of them"}, {"n_predict", 0}};
  const json none = post("/completion", body);  // fills the cache
  EXPECT_EQ(none.at("content"), "");
  EXPECT_EQ(none.at("tokens_predicted"), 0);
  json ask_for = body;
  ask_for.merge_patch({{"n_predict", 6}, {"temperature", 0}, {"return_tokens", true}});
  const json answer = post("/completion", ask_for);
  EXPECT_GT(answer.at("timings").at("cache_n"), 0);
  EXPECT_EQ(answer.at("tokens").size(), answer.at("tokens_predicted"));
  const json plain = post("/v1/completions",
                          {{"prompt", body.at("prompt")}, {"max_tokens", 6}, {"temperature", 0}});
  EXPECT_EQ(answer.at("content"), plain.at("choices").at(0).at("text"));
  const json props = json::parse(ask(port, request("GET", "/props")).body);
  EXPECT_EQ(props.at("default_generation_settings").at("n_ctx"), 256);
  const json slots = json::parse(ask(port, request("GET", "/slots")).body);
  EXPECT_EQ(slots.size(), props.at("total_slots").get<size_t>());
  EXPECT_GT(metric(port, "llamacpp:n_decode_total"), 0);
}

// Text that spells a special token stays plain text here, too.
TEST_F(RealWorker, TokensOfAChatAreThoseThatItIsAnsweredFrom) {
  Process worker(LLM_WORKER, arguments("256"));
  const auto post = [&](const char* path, const json& body) {
    const RawResponse response = ask(worker.port(), request("POST", path, body.dump()));
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  };
  const json body = {{"messages", {{{"role", "user"}, {"content", "a <s> and <none>"}}}},
                     {"max_tokens", 1}};
  const json tokens = post("/tokenize", body);
  const json answer = post("/v1/chat/completions", body);
  EXPECT_EQ(tokens.at("count"), answer.at("usage").at("prompt_tokens"));
  EXPECT_EQ(tokens.at("tokens").size(), tokens.at("count").get<size_t>());
}

TEST_F(RealWorker, ADraftModelChangesNoText) {
  constexpr int kTokens = 30;
  const auto texts = [&](std::vector<std::string> more, double* accepted) {
    Process worker(LLM_WORKER, arguments("64", std::move(more)));
    std::vector<std::string> out;
    for (const auto& client : open_streams(worker.port(), 6, 6, kTokens)) {
      out.push_back(text_of(payloads(client->read_until("data: [DONE]\n\n"))));
    }
    const double drafted = metric(worker.port(), "vllm:spec_decode_num_draft_tokens_total");
    *accepted = metric(worker.port(), "vllm:spec_decode_num_accepted_tokens_total") / drafted;
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0);
    return out;
  };
  double none = 0, all = 0;
  const auto wanted = texts({}, &none);
  EXPECT_TRUE(std::isnan(none));  // no draft tokens
  EXPECT_EQ(texts({"--draft-model", model(), "--draft-tokens", "4"}, &all), wanted);
  EXPECT_EQ(all, 1);  // the model itself drafts
}

TEST_F(RealWorker, ClientsThatLeaveMidStreamGiveTheirPlacesToOthers) {
  Process worker(LLM_WORKER, arguments("32768", {"--max-running", "4"}));
  const uint16_t port = worker.port();
  Clients leaving = open_streams(port, 4, 4, 32'000);
  for (const auto& client : leaving) client->read_until(R"("type":"token")");
  EXPECT_EQ(metric(port, "vllm:num_requests_running"), 4);
  EXPECT_GT(metric(port, "vllm:kv_cache_usage_perc"), 0);
  const Clients waiting = open_streams(port, 2, 2, 5);
  EXPECT_EQ(metric(port, "vllm:num_requests_waiting"), 2);
  for (const auto& client : leaving) client->close();
  for (const auto& client : waiting) {
    EXPECT_THAT(client->read_until("data: [DONE]\n\n"), HasSubstr(R"("tokens_out":5)"));
  }
  EXPECT_TRUE(comes_to(port, "vllm:num_requests_running", 0));
  EXPECT_EQ(metric(port, "rbee_kv_cache_blocks_used"), 0);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST_F(RealWorker, TheNameThatItIsServedUnderIsTheOneThatIsTold) {
  Process worker(LLM_WORKER, arguments("64", {"--model-ref", "hf:org/name"}));
  const uint16_t port = worker.port();
  const RawResponse job =
      ask(port, request("POST", "/v1/jobs", R"({"prompt":"more","max_tokens":2})"));
  const std::string stream = json::parse(job.body).at("sse_url").get<std::string>();
  const json started = json::parse(payloads(ask(port, request("GET", stream)).body).front());
  EXPECT_EQ(started.at("type"), "started");
  EXPECT_EQ(started.at("model"), "hf:org/name");
  EXPECT_THAT(ask(port, request("GET", "/metrics")).body,
              HasSubstr(R"(vllm:num_requests_running{model_name="hf:org/name"} 0)"));
}

TEST_F(RealWorker, AFullQueueIs429AndAShareOfTheCacheIsEnough) {
  Process worker(LLM_WORKER, arguments("1280", {"--max-running", "8", "--max-waiting", "8",
                                                "--cache-tokens", "1920", "--step-tokens", "32"}));
  const uint16_t port = worker.port();
  // Long enough to run on while the other requests are sent.
  const Clients clients = open_streams(port, 12, 12, 1000);
  int refused = 0;
  std::vector<std::string> streams;
  for (int i = 0; i < 30; ++i) {
    const RawResponse job =
        ask(port, request("POST", "/v1/jobs", R"({"prompt":"more","max_tokens":300})"));
    if (job.status == 429) {
      ++refused;
      EXPECT_EQ(job.headers.at("retry-after"), "1");
      EXPECT_THAT(job.body, HasSubstr("the queue of 8 is full"));
    } else {
      streams.push_back(json::parse(job.body).at("sse_url").get<std::string>());
    }
  }
  EXPECT_GT(refused, 0);
  for (const auto& client : clients) {
    EXPECT_THAT(client->read_until("data: [DONE]\n\n"), HasSubstr(R"("tokens_out":1000)"));
  }
  for (const std::string& stream : streams) {
    EXPECT_THAT(ask(port, request("GET", stream)).body, HasSubstr(R"("tokens_out":300)"));
  }
  // Sixty blocks for eight requests of 32 each: some waited for others, none failed.
  EXPECT_GT(metric(port, "vllm:num_preemptions_total"), 0);
  EXPECT_TRUE(comes_to(port, "vllm:num_requests_running", 0));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST_F(RealWorker, SignalsEndRunningStreamsWithAnErrorInTime) {
  for (const int number : {SIGTERM, SIGINT}) {
    Process worker(LLM_WORKER, arguments("32768"));
    // Far more tokens than this model generates during the test.
    const Clients clients = open_streams(worker.port(), 20, 20, 32'000);
    EXPECT_THAT(clients[0]->read_until(R"("type":"token")"), HasSubstr(R"("type":"started")"));

    const auto begin = std::chrono::steady_clock::now();
    worker.signal(number);
    for (const auto& client : clients) {
      EXPECT_THAT(client->read_until("data: [DONE]\n\n"), HasSubstr(R"("code":"CANCELLED")"));
    }
    EXPECT_EQ(worker.wait(), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kStopLimit);
    EXPECT_THAT(worker.text(), HasSubstr("\"message\":\"stopped\""));
  }
}

// As Ollama: when the model's files were written, not when the worker was started.
TEST_F(RealWorker, TellsWhenItsModelWasWritten) {
  namespace fs = std::filesystem;
  const test::ModelFolder copy(test::data_folder());
  const auto written = fs::file_time_type::clock::from_sys(
      std::chrono::sys_seconds(std::chrono::seconds(981173106)));  // 2001-02-03T04:05:06Z
  for (const auto& file : fs::directory_iterator(copy.path())) {
    fs::last_write_time(file.path(), written);
  }
  Process worker(LLM_WORKER, {"--model", copy.path().string(), "--port", "0", "--threads", "1"});
  const RawResponse tags = ask(worker.port(), request("GET", "/api/tags"));
  EXPECT_EQ(json::parse(tags.body).at("models").at(0).at("modified_at"),
            "2001-02-03T04:05:06.000Z");
}

}  // namespace
}  // namespace rbee::testing

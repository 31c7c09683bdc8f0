// The order of a worker's start, its answers meanwhile, and its reports to the hive.

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cat.h"
#include "tests/server/hive.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model that is loaded when open() is called.
class Gate {
 public:
  Gate() {
    std::string pattern = (fs::temp_directory_path() / "rbee-gate-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    if (mkfifo(path().c_str(), 0600) != 0) throw std::runtime_error("no fifo");
  }
  ~Gate() { fs::remove_all(folder_); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  std::string path() const { return (folder_ / "gate").string(); }
  void open() const { std::ofstream(path()) << "open"; }

 private:
  fs::path folder_;
};

uint16_t free_port() {
  return Hive().port();
}

// The answer's status; 0 if nothing listens.
int health(uint16_t port) {
  try {
    return ask(port, request("GET", "/health")).status;
  } catch (const std::runtime_error&) {
    return 0;
  }
}

// The port that a worker listens on while it loads its model.
uint16_t early_port(Process& worker) {
  const std::string& text = worker.read_until("\"message\":\"listening\"");
  const size_t at = text.rfind("\"port\":\"");
  return static_cast<uint16_t>(std::stoi(text.substr(at + 8)));
}

std::vector<std::string> statuses(Hive& hive) {
  std::vector<std::string> out;
  for (const std::string& message : hive.messages()) {
    out.push_back(json::parse(message).at("worker").at("status"));
  }
  return out;
}

TEST(Start, IsReadyOnlyWhenTheModelIsLoaded) {
  const uint16_t port = free_port();
  std::atomic<int> answered = 0;
  Hive hive({.on_message = [&] { answered = health(port); }});
  const Gate gate;
  Process worker(FAKE_WORKER, {"--model", cat("gate:", gate.path()), "--port", cat(port),
                               "--hive-url", hive.url(), "--worker-id", "w-7"});
  ASSERT_TRUE(hive.wait_messages(1));
  EXPECT_NE(answered, 200);
  const json first = json::parse(hive.messages()[0]).at("worker");
  EXPECT_EQ(first.at("status"), "starting");
  EXPECT_EQ(first.at("id"), "w-7");
  EXPECT_EQ(first.at("port"), port);
  EXPECT_EQ(first.at("device"), "cpu:0");

  gate.open();
  EXPECT_EQ(worker.port(), port);
  EXPECT_EQ(health(port), 200);
  ASSERT_TRUE(hive.wait_messages(2));
  EXPECT_EQ(answered, 200);  // a ready worker answers requests
  const json message = json::parse(hive.messages()[1]);
  EXPECT_EQ(message.at("worker").at("id"), "w-7");
  EXPECT_EQ(message.at("worker").at("status"), "ready");
  EXPECT_EQ(message.at("worker").at("port"), port);

  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(statuses(hive), ElementsAre("starting", "ready", "stopping", "stopped"));
}

TEST(Start, TellsHowFarTheModelIs) {
  Hive hive;
  const Gate fetched, loaded;
  Process worker(FAKE_WORKER,
                 {"--model", cat("fetch:", fetched.path(), ",", loaded.path()), "--model-ref", "m",
                  "--port", "0", "--hive-url", hive.url(), "--worker-id", "w-7"});
  const uint16_t port = early_port(worker);
  // The first report does not know the port yet, and each phase brings one.
  const auto hears = [&](const json& progress) {
    for (size_t count = 1; count < 9 && hive.wait_messages(count); ++count) {
      const json message = json::parse(hive.messages()[count - 1]);
      if (message.value("progress", json()) != progress) continue;
      EXPECT_EQ(message.at("worker").at("status"), "starting");
      EXPECT_EQ(message.at("worker").at("port"), port);
      return true;
    }
    return false;
  };
  const json fetching = {{"phase", "fetching"},
                         {"done", 30},
                         {"total", 100},
                         {"bytes_per_second", 10.0},
                         {"seconds_left", 7.0}};
  EXPECT_TRUE(hears(fetching));
  const RawResponse first = ask(port, request("GET", "/health"));
  EXPECT_EQ(first.status, 503);
  EXPECT_EQ(first.headers.at("retry-after"), "7");
  const json body = json::parse(first.body);
  EXPECT_EQ(body.at("status"), "starting");
  EXPECT_EQ(body.at("worker_id"), "w-7");
  EXPECT_EQ(body.at("model"), "m");
  EXPECT_EQ(body.at("resident"), false);
  EXPECT_EQ(body.at("progress"), fetching);
  const RawResponse page = ask(port, request("GET", "/", {}, "Accept: text/html\r\n"));
  EXPECT_EQ(page.status, 503);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.headers.at("retry-after"), "7");
  EXPECT_THAT(page.body, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(page.body, HasSubstr("Fetching the model: 30 B of 100 B (30 %), 10 B/s, 7 s left"));
  EXPECT_THAT(ask(port, request("GET", "/")).body, HasSubstr("MODEL_LOADING"));

  fetched.open();
  const json loading = {{"phase", "loading"}, {"done", 50}, {"total", 100}};
  EXPECT_TRUE(hears(loading));
  EXPECT_EQ(json::parse(ask(port, request("GET", "/v1/health")).body).at("progress"), loading);

  loaded.open();
  EXPECT_EQ(worker.port(), port);
  EXPECT_EQ(health(port), 200);
  EXPECT_FALSE(json::parse(ask(port, request("GET", "/health")).body).contains("progress"));
}

TEST(Start, RefusesRequestsUntilTheModelIsLoaded) {
  const Gate gate;
  Process worker(FAKE_WORKER, {"--model", cat("gate:", gate.path()), "--port", "0"},
                 {"LLORCH_API_TOKEN=secret"});
  const uint16_t port = early_port(worker);
  const std::string key = "Authorization: Bearer secret\r\n";
  const std::string chat = R"({"messages":[{"role":"user","content":"Hi"}]})";
  EXPECT_EQ(ask(port, request("POST", "/v1/chat/completions", chat)).status, 401);
  const RawResponse refused = ask(port, request("POST", "/v1/chat/completions", chat, key));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(json::parse(refused.body).at("error"), json::parse(R"({"message":"The model is loading",
            "type":"server_error","param":null,"code":"MODEL_LOADING"})"));
  const RawResponse anthropic =
      ask(port, request("POST", "/v1/messages", "{}", key + "anthropic-version: 2023-06-01\r\n"));
  EXPECT_EQ(json::parse(anthropic.body).at("error").at("type"), "overloaded_error");
  const RawResponse ollama = ask(port, request("POST", "/api/chat", "{}", key));
  EXPECT_EQ(ollama.body, R"({"error":"The model is loading"})");
  // As of the routes beside it that the worker will have.
  const RawResponse unknown = ask(port, request("GET", "/api/none", {}, key));
  EXPECT_EQ(unknown.body, ollama.body);
  // No body is waited for, however large.
  RawClient large(port);
  large.send(cat("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n", key,
                 "Content-Type: application/json\r\nContent-Length: 60000000\r\n\r\n"));
  EXPECT_EQ(large.read_response().status, 503);

  EXPECT_EQ(ask(port, request("GET", "/health/live")).status, 503);
  EXPECT_EQ(ask(port, request("GET", "/health", {}, "Accept: text/plain\r\n")).body, "starting");
  EXPECT_EQ(ask(port, request("GET", "/health/ready")).body,
            R"({"ready":false,"state":"starting","model_loaded":false})");
  EXPECT_EQ(ask(port, request("GET", "/ping")).status, 503);
  EXPECT_EQ(ask(port, request("GET", "/")).status, 503);
  EXPECT_EQ(ask(port, request("GET", "/metrics", {}, key)).status, 503);

  gate.open();
  EXPECT_EQ(worker.port(), port);
  EXPECT_EQ(ask(port, request("POST", "/v1/chat/completions", chat, key)).status, 200);
}

// Clients that come in the moment between the two servers wait for the second.
TEST(Start, NobodyIsTurnedAwayWhenTheModelIsLoaded) {
  const Gate gate;
  Process worker(FAKE_WORKER, {"--model", cat("gate:", gate.path()), "--port", "0"});
  const uint16_t port = early_port(worker);
  std::thread opener([&] { gate.open(); });
  int status = 503;
  while (status == 503) status = health(port);
  EXPECT_EQ(status, 200);
  opener.join();
}

TEST(Start, ASignalEndsAWorkerThatLoads) {
  const Gate gate;
  Process worker(FAKE_WORKER, {"--model", cat("gate:", gate.path()), "--port", "0"});
  const uint16_t port = early_port(worker);
  RawClient stays(port);
  stays.send(request("GET", "/health"));
  EXPECT_EQ(stays.read_response().status, 503);
  const auto begin = std::chrono::steady_clock::now();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kStopLimit);
}

TEST(Start, ATakenPortIsToldBeforeTheModelIsLoaded) {
  Process first(FAKE_WORKER, {"--model", "m", "--port", "0"});
  Process second(FAKE_WORKER, {"--model", "slow", "--port", cat(first.port())});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.text(), HasSubstr(cat("port ", first.port())));
}

TEST(Start, APictureWorkerAnswersOnThePortThatItHadFirst) {
  Process worker(FAKE_SD_WORKER, {"--model", "m", "--port", "0"});
  const uint16_t port = early_port(worker);
  EXPECT_EQ(worker.port(), port);
  EXPECT_EQ(health(port), 200);
}

TEST(Start, AWorkerThatCannotStartSaysThatItHasStopped) {
  Hive hive;
  Process worker(FAKE_WORKER, {"--model", "missing", "--port", "0", "--hive-url", hive.url()});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(statuses(hive), Contains("stopped"));
}

TEST(Start, TheHiveHearsOfEveryChange) {
  Hive hive;
  Process worker(FAKE_WORKER, {"--model", "hold", "--port", "0", "--hive-url", hive.url()});
  const uint16_t port = worker.port();
  size_t heard = 0;
  const auto hears = [&](const std::string& status) {
    while (heard < 20 && hive.wait_messages(heard + 1)) {
      if (statuses(hive)[heard++] == status) return true;
    }
    return false;
  };
  ASSERT_TRUE(hears("ready"));
  const RawResponse job = ask(port, request("POST", "/v1/jobs", R"({"prompt":"Hi"})"));
  ASSERT_TRUE(hears("busy"));
  const std::string id = json::parse(job.body).at("job_id");
  EXPECT_EQ(ask(port, request("DELETE", cat("/v1/jobs/", id))).status, 202);
  ASSERT_TRUE(hears("ready"));
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait(), 0);
  std::vector<std::string> last = statuses(hive);
  last.erase(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(heard));
  EXPECT_THAT(last, ElementsAre("stopping", "stopped"));
}

}  // namespace
}  // namespace rbee::testing

// The worker as a process: what it prints, how it ends.

#include <gmock/gmock.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using std::chrono::steady_clock;

using ::testing::HasSubstr;
using ::testing::Not;

// The worker's program with a scripted engine.
class Worker : public Process {
 public:
  explicit Worker(std::vector<std::string> arguments, std::vector<std::string> environment = {})
      : Process(FAKE_WORKER, std::move(arguments), std::move(environment)) {}
};

std::string stream_of(uint16_t port, std::string_view headers = {}) {
  const RawResponse response =
      ask(port, request("POST", "/v1/inference", R"({"prompt":"Hi","max_tokens":9})", headers));
  return nlohmann::json::parse(response.body).at("sse_url").get<std::string>();
}

TEST(Process, SignalsEndRunningStreamsWithAnError) {
  for (const int number : {SIGTERM, SIGINT}) {
    Worker worker({"--model", "hold", "--port", "0", "--worker-id", "w"});
    const uint16_t port = worker.port();
    RawClient running(port);
    running.send(request("GET", stream_of(port)));
    EXPECT_THAT(running.read_until("world"), HasSubstr("Hello"));
    RawClient waiting(port);
    waiting.send(request("GET", stream_of(port)));
    EXPECT_EQ(waiting.read_head().status, 200);

    const auto begin = steady_clock::now();
    worker.signal(number);
    for (RawClient* client : {&running, &waiting}) {
      EXPECT_THAT(client->read_until("[DONE]"), HasSubstr(R"("code":"CANCELLED")"));
    }
    running.close();
    waiting.close();
    EXPECT_EQ(worker.wait(), 0);
    EXPECT_LT(steady_clock::now() - begin, kStopLimit);
    EXPECT_THAT(worker.text(), HasSubstr("\"message\":\"stopped\""));
  }
}

TEST(Process, ClientsThatStayDoNotHoldIt) {
  Worker worker({"--model", "hold", "--port", "0"});
  RawClient idle(worker.port());
  RawClient reader(worker.port());
  reader.send(request("GET", stream_of(worker.port())));
  reader.read_until("world");
  const auto begin = steady_clock::now();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, kStopLimit);
}

TEST(Process, StuckEngineDoesNotHoldIt) {
  Worker worker({"--model", "stuck", "--port", "0"});
  RawClient reader(worker.port());
  reader.send(request("GET", stream_of(worker.port())));
  reader.read_until("world");
  const auto begin = steady_clock::now();
  worker.signal(SIGTERM);
  EXPECT_THAT(reader.read_until("[DONE]"), HasSubstr("CANCELLED"));
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, kStopLimit);
}

TEST(Process, ALostDeviceEndsItWithAStatusOfItsOwn) {
  Worker worker({"--model", "lost", "--port", "0"});
  const uint16_t port = worker.port();
  RawClient reader(port);
  reader.send(request("GET", stream_of(port)));
  const std::string events = reader.read_until("[DONE]");
  EXPECT_THAT(events, HasSubstr("Hello"));
  EXPECT_THAT(events, HasSubstr(R"("code":"WORKER_UNHEALTHY")"));
  EXPECT_THAT(events, HasSubstr("the device fell off"));
  // Who polls it still gets answers for a while.
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 503);
  const RawResponse refused =
      ask(port, request("POST", "/v1/inference", R"({"prompt":"Hi","max_tokens":9})"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("WORKER_UNHEALTHY"));
  EXPECT_EQ(worker.wait(), 3);
  EXPECT_THAT(worker.text(), HasSubstr("the device is lost"));
}

TEST(Process, ALostDeviceThatDoesNotAnswerDoesNotHoldIt) {
  Worker worker({"--model", "lost and stuck", "--port", "0"});
  RawClient reader(worker.port());
  reader.send(request("GET", stream_of(worker.port())));
  EXPECT_THAT(reader.read_until("[DONE]"), HasSubstr("WORKER_UNHEALTHY"));
  EXPECT_EQ(worker.wait(), 3);
  EXPECT_THAT(worker.text(), HasSubstr("ended in the middle of work"));
}

TEST(Process, SignalWhileLoadingEndsItAtOnce) {
  Worker worker({"--model", "slow", "--port", "0"});
  worker.read_until("\"message\":\"starting\"");
  const auto begin = steady_clock::now();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, kStopLimit);
}

TEST(Process, CannotStart) {
  Worker missing({"--model", "missing", "--port", "0"});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_THAT(missing.text(), HasSubstr("llm-worker-rbee-test: open: missing: no such file\n"));

  Worker first({"--model", "m", "--port", "0"});
  Worker second({"--model", "m", "--port", cat(first.port())});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.text(), HasSubstr(cat("port ", first.port())));
}

TEST(Process, UsageAndInformation) {
  Worker usage({"--port", "0"});
  EXPECT_EQ(usage.wait(), 2);
  EXPECT_THAT(usage.text(), HasSubstr("--model is required"));
  Worker version({"--version"});
  EXPECT_EQ(version.wait(), 0);
}

TEST(Process, UnknownFlagsAndUselessHivesOnlyWarn) {
  Worker worker({"--model", "m", "--port", "0", "--new-flag", "7", "--hive-url", "https://hive"});
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 200);
  EXPECT_THAT(worker.text(), HasSubstr("\"flag\":\"--new-flag\""));
  EXPECT_THAT(worker.text(), HasSubstr("no heartbeats"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Process, TokenComesFromTheEnvironment) {
  Worker worker({"--model", "m", "--port", "0"}, {"LLORCH_API_TOKEN=secret"});
  const uint16_t port = worker.port();
  EXPECT_EQ(ask(port, request("GET", "/info")).status, 401);
  const std::string header = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(ask(port, request("GET", "/info", {}, header)).status, 200);
  EXPECT_THAT(worker.text(), HasSubstr("\"host\":\"0.0.0.0\""));
  EXPECT_THAT(worker.text(), Not(HasSubstr("secret")));
  EXPECT_EQ(ask(port, request("POST", "/v1/shutdown", {}, header)).status, 202);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Process, ListensToThisMachineWithoutAToken) {
  Worker worker({"--model", "m", "--port", "0"}, {"LLORCH_API_TOKEN= "});
  worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("\"host\":\"127.0.0.1\""));
  Worker open({"--model", "m", "--port", "0", "--host", "0.0.0.0"}, {"LLORCH_LOG_FORMAT=json"});
  open.port();
  EXPECT_THAT(open.text(), HasSubstr("ANYBODY"));
}

TEST(Process, LogLinesAreJsonAndTellNoPrompt) {
  Worker worker({"--model", "m", "--port", "0"});
  ask(worker.port(), request("POST", "/v1/infer", R"({"prompt":"my secret"})"));
  worker.signal(SIGTERM);
  worker.wait();
  size_t at = 0;
  while (at < worker.text().size()) {
    const size_t end = worker.text().find('\n', at);
    EXPECT_TRUE(nlohmann::json::accept(worker.text().substr(at, end - at)));
    at = end + 1;
  }
  EXPECT_THAT(worker.text(), HasSubstr("\"path\":\"/v1/infer\",\"status\":\"200\""));
  EXPECT_THAT(worker.text(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace rbee::testing

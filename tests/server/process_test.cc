// The worker as a process: its output and its end.

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cat.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using std::chrono::steady_clock;

using ::testing::ContainsRegex;
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
  // Health probes still get answers for a while.
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

// How many times the log says that memory was given back (rests.h).
int times_at_rest(std::string_view log) {
  int times = 0;
  while (log.find(cat("\"times\":\"", times + 1, ".\"")) != log.npos) ++times;
  return times;
}

void expect_rests(Process& worker, int more) {
  const int times = times_at_rest(worker.text()) + more;
  EXPECT_GE(times_at_rest(worker.read_until(cat("\"times\":\"", times, ".\""))), times);
}

TEST(Process, AChatWorkerThatRestsGivesMemoryBack) {
  Worker worker({"--model", "hold", "--port", "0", "--worker-id", "rests"});
  const uint16_t port = worker.port();
  expect_rests(worker, 2);
  RawClient running(port);
  running.send(request("GET", stream_of(port)));
  running.read_until("world");
  ask(port, request("GET", "/first"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the checks are 50 apart
  ask(port, request("GET", "/second"));
  const std::string log = worker.read_until("/second");
  EXPECT_THAT(log.substr(log.find("/first")), Not(HasSubstr("memory is given back")));
  running.close();
  expect_rests(worker, 2);
}

TEST(Process, APictureWorkerThatRestsGivesMemoryBack) {
  Process worker(FAKE_SD_WORKER, {"--model", "x", "--port", "0", "--worker-id", "rests"});
  const uint16_t port = worker.port();
  const RawResponse answer =
      ask(port, request("POST", "/sdapi/v1/txt2img", R"({"prompt":"a bee"})"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  worker.read_until("/sdapi/v1/txt2img");
  expect_rests(worker, 2);
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
  Worker worker({"--model", "m", "--port", "0", "--new-flag", "7", "--hive-url", "ftp://hive"});
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

// The path of a test's own key file; the destructor removes it.
class KeyFile {
 public:
  explicit KeyFile(std::string_view text) { write(text); }
  ~KeyFile() { std::filesystem::remove(path_); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  void write(std::string_view text) const { std::ofstream(path_) << text; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ =
      std::filesystem::temp_directory_path() / cat("rbee-keys-", ::getpid(), ".txt");
};

TEST(Process, KeysComeFromAFileAndAreReadAgain) {
  const KeyFile file("ann first-key\n");
  Worker worker({"--model", "m", "--port", "0", "--api-keys", file.path()});
  const uint16_t port = worker.port();
  const auto status = [&](const char* key) {
    return ask(port, request("GET", "/info", {}, cat("Authorization: Bearer ", key, "\r\n")))
        .status;
  };
  EXPECT_EQ(status("first-key"), 200);
  EXPECT_EQ(status("second-key"), 401);
  worker.read_until("\"key\":\"ann\"");
  EXPECT_EQ(ask(port, request("POST", "/v1/shutdown", {}, "X-Api-Key: first-key\r\n")).status, 404);
  file.write("bob second-key\n");
  worker.signal(SIGHUP);
  worker.read_until("the keys are read again");
  EXPECT_EQ(status("first-key"), 401);
  EXPECT_EQ(status("second-key"), 200);
  file.write("bob\n");
  worker.signal(SIGHUP);
  worker.read_until("line 1");
  EXPECT_EQ(status("second-key"), 200);
  EXPECT_THAT(worker.text(), Not(HasSubstr("first-key")));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Process, AFileOfKeysMustHoldOne) {
  const KeyFile file("# nobody\n");
  Worker worker({"--model", "m", "--port", "0", "--api-keys", file.path()});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("holds no key"));
}

TEST(Process, FilesOfFlagsMustBeFiles) {
  const KeyFile fifo("");
  std::filesystem::remove(fifo.path());
  ASSERT_EQ(::mkfifo(fifo.path().c_str(), 0600), 0);
  for (const std::vector<std::string>& flags :
       {std::vector{std::string("--api-keys"), fifo.path()},
        {"--tls-cert", fifo.path(), "--tls-key", fifo.path()}}) {
    std::vector<std::string> arguments{"--model", "m", "--port", "0"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Worker worker(arguments);
    EXPECT_EQ(worker.wait(), 1);
    EXPECT_THAT(worker.text(), HasSubstr(fifo.path() + ": a FIFO, not a file"));
  }
}

TEST(Process, LimitsComeFromFlags) {
  Worker worker({"--model", "m", "--port", "0", "--max-body-bytes", "40", "--max-header-bytes",
                 "1024", "--header-seconds", "1"});
  const uint16_t port = worker.port();
  const auto post = [&](const char* body) {
    return ask(port, request("POST", "/v1/infer", body)).status;
  };
  EXPECT_EQ(post(R"({"prompt":"Hi"})"), 200);
  EXPECT_EQ(post(R"({"prompt":"Hello, I am longer than that"})"), 413);
  const std::string long_header = cat("X-Long: ", std::string(1024, 'x'), "\r\n");
  EXPECT_EQ(ask(port, request("GET", "/health", {}, long_header)).status, 431);
  RawClient slow(port);
  slow.send("GET /health HTTP/1.1\r\n");
  EXPECT_EQ(slow.read_response().status, 408);
  Worker wrong({"--model", "m", "--max-header-bytes", "3"});
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_THAT(wrong.text(), HasSubstr("--max-header-bytes"));
}

TEST(Process, SoManyBodiesAreHeldAtOnce) {
  Worker worker({"--model", "hold", "--port", "0", "--max-body-bytes", "100000", "--max-held-bytes",
                 "400000"});
  const std::string body = cat(R"({"stream":true,"prompt":")", std::string(90'000, 'x'), "\"}");
  const std::string question = request("POST", "/v1/infer", body);
  RawClient first(worker.port()), second(worker.port()), third(worker.port());
  for (RawClient* client : {&first, &second}) {
    client->send(question);
    EXPECT_EQ(client->read_head().status, 200);
  }
  third.send(question);
  EXPECT_EQ(third.read_head().status, 429);
  first.close();
  int status = 0;
  const auto end = steady_clock::now() + std::chrono::seconds(60);
  while (status != 200 && steady_clock::now() < end) {
    RawClient client(worker.port());
    client.send(question);
    status = client.read_head().status;
  }
  EXPECT_EQ(status, 200);
}

// Runs the worker in a shell; `redirect` says where the log goes.
void expect_serves_without_log(const std::string& prefix, const std::string& redirect) {
  const uint16_t port = [] {
    Worker probe({"--model", "m", "--port", "0"});
    return probe.port();
  }();
  Process worker("/bin/sh", {"-c", cat(prefix, " exec ", FAKE_WORKER, " --model m --port ", port,
                                       " ", redirect)});
  int answered = 0;
  const auto end = steady_clock::now() + std::chrono::seconds(60);
  while (answered < 50 && steady_clock::now() < end) {
    try {
      if (ask(port, request("POST", "/v1/infer", R"({"prompt":"Hi"})")).status == 200) ++answered;
    } catch (const std::runtime_error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // not up yet
    }
  }
  EXPECT_EQ(answered, 50);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Process, AFullDiskForItsLogDoesNotEndIt) {
  expect_serves_without_log("", ">/dev/full 2>&1");
}

TEST(Process, ALogThatMayNotGrowDoesNotEndIt) {
  const KeyFile log("");
  expect_serves_without_log("ulimit -f 4;", cat(">", log.path(), " 2>&1"));
  EXPECT_GT(std::filesystem::file_size(log.path()), 1024);
  EXPECT_LE(std::filesystem::file_size(log.path()), 4 * 1024);
}

TEST(Process, ALogThatNobodyReadsDoesNotHoldIt) {
  Worker worker({"--model", "any", "--port", "0"});
  const uint16_t port = worker.port();
  // A pipe holds 64 KiB.
  const std::string path = "/" + std::string(8000, 'x');
  for (int i = 0; i < 30; ++i) EXPECT_EQ(ask(port, request("GET", path)).status, 404);
  // There is room again: the next record reports how many were lost.
  std::atomic<bool> read = false;
  std::thread reader([&] {
    worker.read_until("records of the log were lost");
    read = true;
  });
  while (!read) EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
  reader.join();
  EXPECT_THAT(worker.text(), HasSubstr("records of the log were lost"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(worker.text(), HasSubstr("\"message\":\"stopped\""));
}

TEST(Process, ADrainLetsAnswersEnd) {
  const std::string pipe = std::filesystem::temp_directory_path() / cat("rbee-pipe-", ::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Worker worker({"--model", "release:" + pipe, "--port", "0", "--drain-seconds", "600"});
  const uint16_t port = worker.port();
  RawClient running(port);
  running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  running.read_until("world");
  worker.signal(SIGTERM);
  worker.read_until("draining");
  EXPECT_EQ(ask(port, request("POST", "/v1/infer", R"({"prompt":"Hi"})")).status, 503);
  const RawResponse ready = ask(port, request("GET", "/health/ready"));
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, R"({"ready":false,"state":"draining","model_loaded":true})");
  EXPECT_EQ(ask(port, request("GET", "/health/live")).status, 200);
  std::ofstream(pipe).close();
  std::filesystem::remove(pipe);
  EXPECT_NE(running.read_until("[DONE]").find("[DONE]"), std::string::npos);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(worker.text(), HasSubstr("\"message\":\"stopped\""));
}

TEST(Process, ADrainWaitsForReadersAndUploads) {
  Worker worker({"--model", "any", "--port", "0", "--drain-seconds", "600"});
  const uint16_t port = worker.port();
  const std::string unread = stream_of(port);
  const std::string late = request("POST", "/v1/infer", R"({"prompt":"late"})");
  RawClient upload(port);
  upload.send(late.substr(0, late.size() - 5));
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);  // it has read the upload's head
  worker.signal(SIGTERM);
  worker.read_until("draining");
  // Longer than a stop without a drain takes.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  upload.send(late.substr(late.size() - 5));
  const RawResponse refused = upload.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("STOPPING"));
  EXPECT_THAT(ask(port, request("GET", unread)).body, HasSubstr("[DONE]"));
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Process, AStopAnswersARequestThatStillComes) {
  Worker worker({"--model", "m", "--port", "0"});
  const std::string whole = request("POST", "/v1/infer", R"({"prompt":"Hi"})");
  RawClient upload(worker.port());
  upload.send(whole.substr(0, whole.size() - 5));
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 200);
  worker.signal(SIGTERM);
  const RawResponse refused = upload.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Process, AHiveThatDoesNotAnswerDoesNotHoldIt) {
  // Its system accepts connections, but the process does not.
  const int hive = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(hive, name, size), 0);
  ASSERT_EQ(::listen(hive, 8), 0);
  ASSERT_EQ(::getsockname(hive, name, &size), 0);
  Worker worker({"--model", "m", "--port", "0", "--hive-url",
                 cat("http://127.0.0.1:", ntohs(address.sin_port))});
  worker.port();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(worker.text(), HasSubstr("\"message\":\"stopped\""));
  EXPECT_THAT(worker.text(), Not(HasSubstr("in the middle of work")));
  ::close(hive);
}

TEST(Process, ASecondSignalEndsADrain) {
  Worker worker({"--model", "hold", "--port", "0", "--drain-seconds", "600"});
  RawClient running(worker.port());
  running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  running.read_until("world");
  worker.signal(SIGTERM);
  worker.read_until("draining");
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(worker.text(), HasSubstr("in the middle of work"));
}

TEST(Process, ListensToThisMachineWithoutAToken) {
  Worker worker({"--model", "m", "--port", "0"}, {"LLORCH_API_TOKEN= "});
  worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("\"host\":\"127.0.0.1\""));
  Worker open({"--model", "m", "--port", "0", "--host", "0.0.0.0"}, {"LLORCH_LOG_FORMAT=json"});
  open.port();
  EXPECT_THAT(open.text(), HasSubstr("ANYBODY"));
}

// Each route reports another error for it.
constexpr const char* kSecret =
    R"({"messages":"my secret","inputs":["my secret"],"model":7,"message":["my secret"]})";

TEST(Process, LogLinesTellWhyARequestWasRefused) {
  Worker worker({"--model", "m", "--port", "0"});
  ask(worker.port(), request("POST", "/v1/infer", R"({"prompt":"Hi","top_p":7})"));
  ask(worker.port(), request("POST", "/v1/completions", R"({"prompt":"Hi","top_p":7})"));
  for (const char* path : {"/v1/messages", "/v1/chat/completions", "/generate", "/v2/chat"}) {
    ask(worker.port(), request("POST", path, kSecret));
  }
  ask(worker.port(), request("GET", "/nowhere"));
  worker.signal(SIGTERM);
  worker.wait();
  const std::string& log = worker.text();
  EXPECT_THAT(
      log, ContainsRegex(R"("/v1/infer","status":400.*"code":"INVALID_REQUEST","field":"top_p")"));
  EXPECT_THAT(log, ContainsRegex(R"re("/v1/completions","status":400.*"field":"top_p",)re"
                                 R"re("constraint":"range\(0..=1\)")re"));
  for (const char* path : {"/v1/messages", "/v1/chat/completions", "/generate", "/v2/chat"}) {
    EXPECT_THAT(log, ContainsRegex(cat("\"", path, R"re(","status":4[0-9]*.*"code":"[^"]+",)re",
                                       R"re("field":"[^"]+","constraint":"[^"]+")re")));
  }
  EXPECT_THAT(log, Not(HasSubstr("secret")));
  EXPECT_THAT(log, ContainsRegex(R"("/nowhere","status":404.*"code":"NOT_FOUND")"));
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
  EXPECT_THAT(worker.text(), HasSubstr("\"path\":\"/v1/infer\",\"status\":200,\"ms\":"));
  EXPECT_THAT(worker.text(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace rbee::testing

// The worker as a process: what it prints, how it ends.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "rbee/core/cat.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Two seconds are promised; a machine that is busy with other things takes longer.
constexpr milliseconds kSoon{5000};
using ::testing::HasSubstr;
using ::testing::Not;

class Process {
 public:
  Process(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), FAKE_WORKER);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      std::vector<char*> argv = pointers(arguments);
      std::vector<char*> envp = pointers(environment);
      execve(argv[0], argv.data(), envp.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~Process() {
    if (!status_) {
      kill(pid_, SIGKILL);
      wait();
    }
    close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) { kill(pid_, number); }
  // Reads on until the output holds `mark`, or ends; gives all output so far.
  const std::string& read_until(std::string_view mark) {
    while (text_.find(mark) == std::string::npos && fill()) {
    }
    return text_;
  }
  uint16_t port() {
    read_until("\"message\":\"ready\"");
    const std::string& all = read_until("\"port\":\"");
    const size_t ready = all.find("\"message\":\"ready\"");
    const size_t at = all.find("\"port\":\"", ready);
    return static_cast<uint16_t>(std::stoi(all.substr(at + 8)));
  }
  // Exit status; 128 + number when a signal ended it.
  int wait() {
    while (fill()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return *status_;
  }
  const std::string& text() const { return text_; }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  }
  bool fill() {
    char buffer[4096];
    pollfd readable{.fd = output_, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, 60'000) <= 0) return false;
    const ssize_t count = read(output_, buffer, sizeof buffer);
    if (count > 0) text_.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;
  std::optional<int> status_;
};

std::string stream_of(uint16_t port, std::string_view headers = {}) {
  const RawResponse response =
      ask(port, request("POST", "/v1/inference", R"({"prompt":"Hi","max_tokens":9})", headers));
  return nlohmann::json::parse(response.body).at("sse_url").get<std::string>();
}

TEST(Process, SignalsEndRunningStreamsWithAnError) {
  for (const int number : {SIGTERM, SIGINT}) {
    Process worker({"--model", "hold", "--port", "0", "--worker-id", "w"});
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
    EXPECT_LT(steady_clock::now() - begin, kSoon);
    EXPECT_THAT(worker.text(), HasSubstr("\"message\":\"stopped\""));
  }
}

TEST(Process, ClientsThatStayDoNotHoldIt) {
  Process worker({"--model", "hold", "--port", "0"});
  RawClient idle(worker.port());
  RawClient reader(worker.port());
  reader.send(request("GET", stream_of(worker.port())));
  reader.read_until("world");
  const auto begin = steady_clock::now();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, kSoon);
}

TEST(Process, StuckEngineDoesNotHoldIt) {
  Process worker({"--model", "stuck", "--port", "0"});
  RawClient reader(worker.port());
  reader.send(request("GET", stream_of(worker.port())));
  reader.read_until("world");
  const auto begin = steady_clock::now();
  worker.signal(SIGTERM);
  EXPECT_THAT(reader.read_until("[DONE]"), HasSubstr("CANCELLED"));
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, kSoon);
}

TEST(Process, SignalWhileLoadingEndsItAtOnce) {
  Process worker({"--model", "slow", "--port", "0"});
  worker.read_until("\"message\":\"starting\"");
  const auto begin = steady_clock::now();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, kSoon);
}

TEST(Process, CannotStart) {
  Process missing({"--model", "missing", "--port", "0"});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_THAT(missing.text(), HasSubstr("llm-worker-rbee-test: open: missing: no such file\n"));

  Process first({"--model", "m", "--port", "0"});
  Process second({"--model", "m", "--port", cat(first.port())});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.text(), HasSubstr(cat("port ", first.port())));
}

TEST(Process, UsageAndInformation) {
  Process usage({"--port", "0"});
  EXPECT_EQ(usage.wait(), 2);
  EXPECT_THAT(usage.text(), HasSubstr("--model is required"));
  Process version({"--version"});
  EXPECT_EQ(version.wait(), 0);
}

TEST(Process, UnknownFlagsAndUselessHivesOnlyWarn) {
  Process worker({"--model", "m", "--port", "0", "--new-flag", "7", "--hive-url", "https://hive"});
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 200);
  EXPECT_THAT(worker.text(), HasSubstr("\"flag\":\"--new-flag\""));
  EXPECT_THAT(worker.text(), HasSubstr("no heartbeats"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Process, TokenComesFromTheEnvironment) {
  Process worker({"--model", "m", "--port", "0"}, {"LLORCH_API_TOKEN=secret"});
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
  Process worker({"--model", "m", "--port", "0"}, {"LLORCH_API_TOKEN= "});
  worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("\"host\":\"127.0.0.1\""));
  Process open({"--model", "m", "--port", "0", "--host", "0.0.0.0"}, {"LLORCH_LOG_FORMAT=json"});
  open.port();
  EXPECT_THAT(open.text(), HasSubstr("ANYBODY"));
}

TEST(Process, LogLinesAreJsonAndTellNoPrompt) {
  Process worker({"--model", "m", "--port", "0"});
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

// Models that clients replace while requests for them wait, in a front within the test's process.

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <deque>
#include <thread>

#include "server/front/front.h"
#include "server/http/server.h"
#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using namespace server;  // NOLINT(google-build-using-namespace)
using nlohmann::json;

constexpr std::chrono::seconds kPatience{60};

class FrontChanges : public ::testing::Test {
 protected:
  ~FrontChanges() override {
    front_.stop(std::chrono::milliseconds(0));
    server_.stop(std::chrono::milliseconds(0));
  }

  // As the record is now: the workers of all but the last never load.
  ServedModel described() const {
    const std::string version = cat(version_.load());
    ServedModel out;
    out.name = "mario";
    out.program = FAKE_WORKER;
    out.model = version_ < kLast ? "slow" : "echo";
    out.keep_alive = std::chrono::minutes(5);
    out.files = cat("files#", version);
    out.record = version;
    return out;
  }
  FrontHooks hooks() {
    FrontHooks out;
    out.find_model = [this](const std::string&) { return described(); };
    out.has_files = [this](const ServedModel& model) {
      return model.record == cat(version_.load());
    };
    return out;
  }
  // The process that loads the model and is not `other`.
  int64_t loading(int64_t other) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      const json all = json::parse(testing::ask(server_.port(), request("GET", "/workers")).body);
      for (const json& model : all.at("models")) {
        const int64_t pid = model.at("workers").at(0).value("pid", int64_t{0});
        if (pid > 0 && pid != other) return pid;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    throw std::runtime_error("no worker is started");
  }
  // Nobody waits for it any more.
  static void wait_for_end(int64_t pid) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (kill(static_cast<pid_t>(pid), 0) == 0) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it stays");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void ask_mario() {
    clients_.emplace_back(server_.port())
        .send(request("POST", "/v1/chat/completions", chat("mario", "parrot").dump()));
  }

  static constexpr int kLast = 4;
  std::atomic<int> version_ = 1;
  server::Front front_{
      {.config = {}, .environment = {}, .hooks = hooks(), .version = "1", .tracer = nullptr}};
  Server server_{{}, front_.routes(), ApiKeys("")};
  std::deque<RawClient> clients_;
};

TEST_F(FrontChanges, ARequestOutlivesAllReplacementsOfItsModel) {
  ask_mario();
  int64_t pid = loading(0);
  while (++version_ < kLast) {
    ask_mario();  // which finds the other record
    const int64_t next = loading(pid);
    wait_for_end(pid);
    pid = next;
  }
  ask_mario();
  for (RawClient& client : clients_) {
    const RawResponse answer = client.read_response();
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
}

}  // namespace
}  // namespace rbee::testing

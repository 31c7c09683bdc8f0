// The wall clock jumps by hours while requests run, as when a machine wakes up or its time is set.
// Waits and measured times must not change; reported times must follow the clock.

#include <gmock/gmock.h>
#include <signal.h>
#include <time.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/server/certificate.h"
#include "tests/server/clock.h"
#include "tests/server/front_harness.h"
#include "tests/server/hive.h"

namespace rbee::testing {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr hours kJumps[] = {hours(5), hours(-7), hours(0)};

system_clock::time_point parse(const std::string& text, const char* form) {
  tm parts{};
  if (strptime(text.c_str(), form, &parts) == nullptr) throw std::runtime_error(text);
  return system_clock::from_time_t(timegm(&parts));
}

// Tests are shorter and jumps are longer than this.
void expect_now(const ShiftedClock& clock, system_clock::time_point told) {
  EXPECT_LT(std::chrono::abs(clock.now() - told), hours(1));
}

// Longer than the period of the worker's and the front's own checks.
void let_it_tick() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
}

TEST(Clock, JumpsHarmNoRequest) {
  ShiftedClock clock;
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Hive hive;
  Process worker(FAKE_WORKER,
                 {"--model", "release:" + gate, "--port", "0", "--hive-url", hive.url()},
                 clock.environment());
  const uint16_t port = worker.port();
  RawClient running(port);
  running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  running.read_until("world");
  const RawResponse job = ask(port, request("POST", "/v1/jobs", R"({"prompt":"Hi"})"));
  const std::string unread = nlohmann::json::parse(job.body).at("sse_url");
  const std::string ask_health = request("GET", "/health/live");
  RawClient half(port);
  half.send(ask_health.substr(0, ask_health.size() - 2));
  RawClient kept(port);
  for (const hours jump : kJumps) {
    clock.set(jump);
    kept.send(ask_health);
    const RawResponse answer = kept.read_response();
    EXPECT_EQ(answer.status, 200);
    expect_now(clock, parse(answer.headers.at("date"), "%a, %d %b %Y %T GMT"));
    let_it_tick();
  }
  half.send(ask_health.substr(ask_health.size() - 2));
  EXPECT_EQ(half.read_response().status, 200);
  std::ofstream(gate) << "open";
  const std::string rest = running.read_until("[DONE]");
  EXPECT_THAT(rest, HasSubstr("[DONE]"));
  EXPECT_THAT(rest, Not(HasSubstr("error")));
  EXPECT_THAT(ask(port, request("GET", unread)).body, HasSubstr("world"));
  // The worker reports when it starts, is ready, and perhaps is busy and ready again.
  EXPECT_LE(hive.messages().size(), 6u);
  clock.set(hours(-7));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  const nlohmann::json last = nlohmann::json::parse(hive.messages().back());
  EXPECT_EQ(last.at("worker").at("status"), "stopped");
  expect_now(clock, parse(last.at("timestamp"), "%FT%T"));
}

TEST(Clock, WhatIsTimedIsTimedAlsoAfterAJump) {
  for (const hours jump : kJumps) {
    ShiftedClock clock;
    Process worker(
        FAKE_WORKER,
        {"--model", "hold", "--port", "0", "--header-seconds", "1", "--drain-seconds", "1"},
        clock.environment());
    RawClient slow(worker.port());
    slow.send("GET /health HTTP/1.1\r\n");
    RawClient running(worker.port());
    running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
    running.read_until("world");
    clock.set(jump);
    EXPECT_EQ(slow.read_response().status, 408);
    worker.signal(SIGTERM);
    worker.read_until("draining");
    clock.set(-jump);
    EXPECT_THAT(running.read_until("[DONE]"), HasSubstr("STOPPING"));
    EXPECT_EQ(worker.wait(), 0);
  }
}

TEST(Clock, ACertificateIsReadAgainAfterAJump) {
  ShiftedClock clock;
  const Certificate certificate;
  Process worker(FAKE_WORKER,
                 {"--model", "m", "--port", "0", "--tls-cert", certificate.file(), "--tls-key",
                  certificate.key()},
                 clock.environment());
  worker.port();
  EXPECT_THAT(worker.text(), Not(HasSubstr("not valid yet")));
  clock.set(hours(-7));
  certificate.renew();
  worker.signal(SIGHUP);
  EXPECT_THAT(worker.read_until("the certificate is read again"), HasSubstr("not valid yet"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST(Clock, TheFrontStartsWorkersAgainAndRepeatsRequests) {
  ShiftedClock clock;
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(nlohmann::json::array({fake("a", "release:" + gate)}), {{"max_tries", 9}}, {},
              clock.environment());
  pid_t pid = front.workers(0, 1)[0].at("pid");
  RawClient whole(front.port());
  whole.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  while (front.metric(R"(rbee_front_worker_running{worker="a-0"})") < 1) {
  }
  for (const hours jump : kJumps) {
    clock.set(jump);
    let_it_tick();
    kill(pid, SIGKILL);
    while (front.workers(0, 1)[0].at("pid") == pid) {
    }
    pid = front.workers(0, 1)[0].at("pid");
  }
  while (front.metric(R"(rbee_front_worker_running{worker="a-0"})") < 1) {
  }
  std::ofstream(gate) << "open";
  const RawResponse answer = whole.read_response();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("world"));
}

}  // namespace
}  // namespace rbee::testing

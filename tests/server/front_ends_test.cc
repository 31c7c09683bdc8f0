// rbee serve and the ends of its workers: killed, stopped, drained, or unable to start; and its
// own. A scripted engine waits where the test says, so that a request runs or waits when a process
// ends.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cat.h"
#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Whether one of its threads still runs: the first may have ended before the others, and a worker
// that waits for a pipe in another would take what the test tells the next worker. A zombie whose
// status was not read does not count.
bool runs(pid_t pid) {
  std::error_code gone;
  for (const fs::directory_entry& task :
       fs::directory_iterator(cat("/proc/", pid, "/task"), gone)) {
    std::ifstream file(task.path() / "stat");
    std::string number, name, state;
    if (file >> number >> name >> state && state != "Z" && state != "X") return true;
  }
  return false;
}

void wait_gone(pid_t pid) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (runs(pid)) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << pid << " still runs";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(Front, AKilledWorkerLosesOnlyWhatHasBegunToStream) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({fake("a", "release:" + gate)}));
  const pid_t pid = front.workers(0, 1)[0].at("pid");
  RawClient stream(front.port());
  stream.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  stream.read_until("world");
  RawClient whole(front.port());
  whole.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  while (front.metric(R"(rbee_front_worker_running{worker="a-0"})") < 2) {
  }
  kill(pid, SIGKILL);
  EXPECT_THAT(stream.read_until("[DONE]"), Not(HasSubstr("[DONE]")));
  std::ofstream(gate) << "open";  // waits for the next worker
  const RawResponse answer = whole.read_response();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("world"));
  const json again = front.workers(0, 1)[0];
  EXPECT_NE(again.at("pid"), pid);
  EXPECT_EQ(again.at("restarts"), 1);
  EXPECT_EQ(again.at("last_end"), "exit status 137");
  EXPECT_EQ(front.metric("rbee_front_requests_total{outcome=\"broken\"}"), 1);
  EXPECT_GE(front.metric("rbee_front_retries_total"), 1);
}

// A stopped process does not act on SIGTERM.
TEST(Front, AFrontThatIsKilledLeavesNoWorker) {
  Front front(json::array({fake("a", "hold", 2)}));
  const json workers = front.workers(0, 2);
  const pid_t stopped = workers[0].at("pid"), running = workers[1].at("pid");
  kill(stopped, SIGSTOP);
  front.process().signal(SIGKILL);
  EXPECT_EQ(front.process().wait(), 128 + SIGKILL);
  wait_gone(stopped);
  wait_gone(running);
}

// The targets of a process's open files.
std::vector<std::string> sockets_of(const std::string& pid) {
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/" + pid + "/fd")) {
    std::error_code gone;
    std::string name = fs::read_symlink(entry.path(), gone).string();
    if (name.starts_with("socket:")) out.push_back(std::move(name));
  }
  std::ranges::sort(out);
  return out;
}

// A worker that held one would keep connections open that the front closes.
TEST(Front, WorkersHoldNoSocketsOfTheFront) {
  Front front(json::array({fake("a", "hold")}));
  const pid_t pid = front.workers(0, 1)[0].at("pid");
  std::ifstream status(cat("/proc/", pid, "/stat"));
  std::string parent;
  for (int i = 0; i < 4; ++i) status >> parent;
  RawClient running(front.port());
  running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  running.read_until("world");
  const RawClient idle(front.port());
  kill(pid, SIGKILL);
  while (front.workers(0, 1)[0].at("pid") == pid) {
  }
  const pid_t next = front.workers(0, 1)[0].at("pid");
  const std::vector<std::string> of_front = sockets_of(parent), of_worker = sockets_of(cat(next));
  std::vector<std::string> both;
  std::ranges::set_intersection(of_front, of_worker, std::back_inserter(both));
  EXPECT_GE(of_front.size(), 2u);
  EXPECT_THAT(both, ::testing::IsEmpty());
}

TEST(Front, AWorkerThatSomebodyElseStopsLosesOnlyWhatHasBegun) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({fake("a", "release:" + gate)}));
  const pid_t pid = front.workers(0, 1)[0].at("pid");
  RawClient begun(front.port());
  begun.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  begun.read_until("world");
  RawClient whole(front.port());
  whole.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  RawClient stream(front.port());
  stream.send(request("POST", "/v1/chat/completions", chat("a", "Hi", true).dump()));
  while (front.metric(R"(rbee_front_worker_running{worker="a-0"})") < 3) {
  }
  kill(pid, SIGTERM);
  EXPECT_THAT(begun.read_until("[DONE]"), HasSubstr("STOPPING"));
  wait_gone(pid);
  std::ofstream(gate) << "open";  // waits for the next worker
  const RawResponse answer = whole.read_response();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("world"));
  const RawResponse events = stream.read_response();
  EXPECT_THAT(events.body, HasSubstr("world"));
  EXPECT_THAT(events.body, Not(HasSubstr("STOPPING")));
  EXPECT_TRUE(events.body.ends_with("data: [DONE]\n\n")) << events.body;
  EXPECT_GE(front.metric("rbee_front_retries_total"), 2);
}

TEST(Front, AWorkerThatDrainsGetsNothingNew) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  json model = fake("a", "release:" + gate);
  model["flags"] = {"--drain-seconds", "600"};
  Front front(json::array({model}));
  const pid_t pid = front.workers(0, 1)[0].at("pid");
  RawClient running(front.port());
  running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  running.read_until("world");
  kill(pid, SIGTERM);
  while (front.workers(0, 0)[0].at("state") != "ending") {
  }
  RawClient later(front.port());
  later.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  while (front.metric("rbee_front_requests_waiting") < 1) {
  }
  std::ofstream(gate) << "open";
  EXPECT_THAT(running.read_until("[DONE]"), HasSubstr("[DONE]"));
  wait_gone(pid);
  std::ofstream(gate) << "open";
  EXPECT_EQ(later.read_response().status, 200);
}

TEST(Front, ADrainLetsJobsBeRead) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({fake("a", "release:" + gate)}), json::object(),
              {"--drain-seconds", "600"});
  front.wait_ready();
  const RawResponse job = front.post("/v1/jobs", {{"prompt", "Hi"}});
  const RawResponse unwanted = front.post("/v1/jobs", {{"prompt", "Hi"}});
  front.process().signal(SIGTERM);
  front.process().read_until("draining");
  EXPECT_EQ(front.post("/v1/jobs", {{"prompt", "Hi"}}).status, 503);
  const std::string id = json::parse(unwanted.body).at("job_id");
  EXPECT_EQ(ask(front.port(), request("DELETE", "/v1/jobs/" + id)).status, 202);
  RawClient reader(front.port());
  reader.send(request("GET", json::parse(job.body).at("sse_url").get<std::string>()));
  EXPECT_THAT(reader.read_until("world"), HasSubstr("Hello"));
  std::ofstream(gate) << "open";
  EXPECT_THAT(reader.read_until("[DONE]"), HasSubstr("\"type\":\"end\""));
  EXPECT_EQ(front.process().wait(), 0);
}

TEST(Front, UnderLoadAKilledWorkerFailsNoRequestThatHadNotBegun) {
  Front front(json::array({fake("a", "echo", 2)}), {{"max_restarts", 100}, {"max_tries", 50}});
  front.workers(0, 2);
  const uint16_t port = front.port();
  std::atomic<int> failed = 0;
  std::atomic<int> broken = 0;
  std::atomic<int> done = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, stream = i % 2 == 1] {
      for (int n = 0; n < 30; ++n) {
        RawClient client(port);
        client.send(
            request("POST", "/v1/chat/completions", chat("a", "some words to say", stream).dump()));
        const RawResponse answer = client.read_response();
        if (answer.status != 200) {
          ++failed;
        } else if (stream && answer.body.find("[DONE]") == std::string::npos) {
          ++broken;
          if (answer.body.find("data: ") == std::string::npos) ++failed;
        } else if (!stream && answer.body.find("some words to say") == std::string::npos) {
          ++failed;
        }
        ++done;
      }
    });
  }
  for (int kills = 1; kills <= 4; ++kills) {
    while (done < kills * 40) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const json workers = front.workers(0, 2);
    kill(workers[static_cast<size_t>(kills % 2)].at("pid").get<pid_t>(), SIGKILL);
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  const json workers = front.workers(0, 2);
  EXPECT_EQ(workers[0].at("restarts").get<int>() + workers[1].at("restarts").get<int>(), 4);
  // A stream may break off after its last event; the client may not notice.
  EXPECT_GE(front.metric("rbee_front_requests_total{outcome=\"broken\"}"), broken.load());
}

TEST(Front, ARequestThatEndsItsWorkersIsGivenUp) {
  Front front(json::array({fake("a", "hold")}), {{"max_tries", 2}});
  front.workers(0, 1);
  RawClient client(front.port());
  client.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  pid_t killed = 0;
  for (int i = 0; i < 2; ++i) {
    pid_t pid = killed;
    while (pid == killed || front.metric(R"(rbee_front_worker_running{worker="a-0"})") < 1) {
      pid = front.workers(0, 1)[0].at("pid");
    }
    kill(pid, SIGKILL);
    killed = pid;
  }
  const RawResponse answer = client.read_response();
  EXPECT_EQ(answer.status, 502);
  EXPECT_THAT(answer.body, HasSubstr("2 times"));
}

TEST(Front, WorkersThatCannotStartAreGivenUp) {
  Front mixed(json::array({fake("good", "any"), fake("bad", "missing")}), {{"max_restarts", 2}});
  const RawResponse answer = mixed.post("/v1/infer", {{"model", "bad"}, {"prompt", "Hi"}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("MODEL_UNAVAILABLE"));
  EXPECT_EQ(mixed.post("/v1/infer", {{"model", "good"}, {"prompt", "Hi"}}).status, 200);
  const json bad = json::parse(mixed.get("/workers").body).at("models")[1].at("workers")[0];
  EXPECT_EQ(bad.at("state"), "given_up");
  EXPECT_EQ(bad.at("restarts"), 2);
  EXPECT_THAT(bad.at("last_end").get<std::string>(), HasSubstr("no such file"));

  Front alone(json::array({fake("bad", "missing")}), {{"max_restarts", 0}});
  EXPECT_EQ(alone.process().wait(), 1);
  json usage = fake("bad", "any");
  usage["flags"] = {"--max-connections", "none"};
  Front wrong(json::array({usage}));
  EXPECT_EQ(wrong.process().wait(), 1);
  EXPECT_THAT(wrong.process().text(), HasSubstr("--max-connections"));
}

TEST(Front, ProgramsThatAreNoWorkersDoNotHarmIt) {
  const Folder folder;
  const std::string program = folder.file("babble",
                                          "#!/bin/sh\n"
                                          "echo '{\"message\":7,\"level\":[]}'\n"
                                          "echo '{\"message\":\"ready\",\"port\":8080}'\n"
                                          "echo '{\"message\":\"ready\"}'; echo '[1]'\n"
                                          "printf 'bytes \\377\\001\\n'; exit 3\n");
  fs::permissions(program, fs::perms::owner_all);
  json model = fake("a", "any");
  model["program"] = program;
  Front front(json::array({model}), {{"max_restarts", 1}});
  EXPECT_EQ(front.process().wait(), 1);
  const std::string& log = front.process().text();
  EXPECT_THAT(log, HasSubstr("names no port"));
  EXPECT_THAT(log, HasSubstr("exit status 3 (it lost its device or a file): bytes ??"));
  EXPECT_THAT(log, HasSubstr("no worker can be started"));
}

TEST(Front, ADrainLetsAnswersEndBeforeWorkersAreStopped) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({fake("a", "release:" + gate)}), json::object(),
              {"--drain-seconds", "600"});
  const pid_t pid = front.workers(0, 1)[0].at("pid");
  RawClient running(front.port());
  running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  running.read_until("world");
  front.process().signal(SIGTERM);
  front.process().read_until("draining");
  EXPECT_EQ(front.post("/v1/infer", {{"prompt", "Hi"}}).status, 503);
  EXPECT_EQ(front.get("/health/ready").status, 503);
  EXPECT_EQ(front.get("/health/live").status, 200);
  EXPECT_EQ(kill(pid, 0), 0);
  std::ofstream(gate) << "open";
  EXPECT_THAT(running.read_until("[DONE]"), HasSubstr("[DONE]"));
  EXPECT_EQ(front.process().wait(), 0);
  EXPECT_NE(kill(pid, 0), 0);
  const std::string& log = front.process().text();
  EXPECT_LT(log.find("\"draining\""), log.find("\"text\":\"stopped\""));
  EXPECT_LT(log.find("\"text\":\"stopped\""), log.find("\"message\":\"stopped\""));
}

TEST(Front, AStopEndsStuckWorkersToo) {
  Front front(json::array({fake("a", "stuck", 2)}));
  const json workers = front.workers(0, 2);
  RawClient running(front.port());
  running.send(request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})"));
  running.read_until("world");
  front.process().signal(SIGTERM);
  EXPECT_EQ(front.process().wait(), 0);
  for (const json& worker : workers) EXPECT_NE(kill(worker.at("pid").get<pid_t>(), 0), 0);
}

TEST(Front, WorkersEndWithAKilledFront) {
  pid_t pid = 0;
  {
    Front front(json::array({fake("a", "any")}));
    pid = front.workers(0, 1)[0].at("pid");
    front.process().signal(SIGKILL);
    EXPECT_EQ(front.process().wait(), 137);
  }
  wait_gone(pid);
}

}  // namespace
}  // namespace rbee::testing

// The CPU worker's program as several ranks over a tiny random model: the answers of one rank, and
// no process left when any of them is killed or stopped.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "rbee/core/cat.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/server/harness.h"
#include "tests/server/process.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The processes that this one has started.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  for (const auto& task : std::filesystem::directory_iterator(cat("/proc/", parent, "/task"))) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) out.push_back(child);
  }
  return out;
}

// Waits for as many, for at most a minute.
std::vector<pid_t> wait_for_children(pid_t parent, size_t count) {
  std::vector<pid_t> out;
  for (int i = 0; i < 6000 && out.size() < count; ++i) {
    out = children_of(parent);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(out.size(), count);
  return out;
}

// Within a minute. Those whose parent has ended are this process's children.
bool gone(pid_t process) {
  for (int i = 0; i < 6000; ++i) {
    waitpid(process, nullptr, WNOHANG);
    if (kill(process, 0) != 0 && errno == ESRCH) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// Within a minute: also what processes that have ended have left to this one.
bool no_child_left() {
  for (int i = 0; i < 6000; ++i) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (children_of(getpid()).empty()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

class GroupWorker : public ::testing::Test {
 protected:
  GroupWorker() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

  std::vector<std::string> arguments(int ranks, std::vector<std::string> more = {}) const {
    std::vector<std::string> out{"--model", model_.path().string(), "--port", "0", "--threads",
                                 "1",       "--cache-type",         "f32"};
    if (ranks > 1) out.insert(out.end(), {"-tp", std::to_string(ranks)});
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

 private:
  test::ModelFolder model_{test::data_folder()};
};

json post(uint16_t port, const char* path, const json& body) {
  const RawResponse response = ask(port, request("POST", path, body.dump()));
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

// Greedy texts of `count` requests, all at once.
std::vector<std::string> texts_of(uint16_t port, int count, int tokens) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < count; ++i) {
    const json body = {{"prompt", cat("some words, and ", i * i, " more of them")},
                       {"max_tokens", tokens},
                       {"temperature", 0}};
    clients.push_back(std::make_unique<RawClient>(port));
    clients.back()->send(request("POST", "/v1/completions", body.dump()));
  }
  std::vector<std::string> out;
  for (const auto& client : clients) {
    const RawResponse response = client->read_response();
    EXPECT_EQ(response.status, 200) << response.body;
    out.push_back(json::parse(response.body).at("choices").at(0).at("text"));
  }
  return out;
}

TEST_F(GroupWorker, AnswersAreThoseOfOneRank) {
  std::vector<std::string> wanted;
  for (const int ranks : {1, 2, 3}) {
    // Few blocks, so that requests lose their places to others.
    Process worker(LLM_WORKER, arguments(ranks, {"--context", "256", "--cache-tokens", "1024",
                                                 "--host-cache-gib", "0.01"}));
    const uint16_t port = worker.port();
    const std::vector<std::string> texts = texts_of(port, 32, 60);
    if (ranks == 1) wanted = texts;
    EXPECT_EQ(texts, wanted) << ranks << " ranks";
    const std::string metrics = ask(port, request("GET", "/metrics")).body;
    EXPECT_THAT(metrics, Not(HasSubstr("num_preemptions_total{model_name=\"tiny\"} 0\n")));
    EXPECT_THAT(metrics, HasSubstr("rbee_host_cache_loaded_total "));
    EXPECT_THAT(metrics, Not(HasSubstr("rbee_host_cache_loaded_total 0\n")));
    const json info = json::parse(ask(port, request("GET", "/info")).body);
    EXPECT_GT(info.at("host_cache_bytes"), 0);
    const json health = json::parse(ask(port, request("GET", "/health")).body);
    if (ranks == 1) {
      EXPECT_THAT(metrics, Not(HasSubstr("rbee_group_")));
      EXPECT_FALSE(info.contains("tensor_parallel_size"));
    } else {
      EXPECT_THAT(metrics, HasSubstr(cat("rbee_group_ranks ", ranks, "\n")));
      EXPECT_THAT(metrics, Not(HasSubstr("rbee_group_commands_total 0\n")));
      EXPECT_EQ(info.at("tensor_parallel_size"), ranks);
      EXPECT_EQ(health.at("tensor_parallel_size"), ranks);
    }
    const std::vector<pid_t> others = children_of(worker.pid());
    EXPECT_EQ(std::ssize(others), ranks - 1);
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0);
    for (const pid_t other : others) EXPECT_TRUE(gone(other));
  }
}

// What needs whole rows of logits, and what only the leader knows of.
TEST_F(GroupWorker, SamplersGrammarsDraftsAndScoresAreThoseOfOneRank) {
  json wanted;
  for (const int ranks : {1, 2}) {
    Process worker(LLM_WORKER, arguments(ranks, {"--context", "256", "--speculative", "ngram"}));
    const uint16_t port = worker.port();
    json found = json::array();
    for (const json& more : std::vector<json>{
             {{"temperature", 0}, {"logprobs", 3}},
             {{"temperature", 0.8}, {"seed", 7}},
             {{"temperature", 0.8}, {"seed", 7}, {"typical_p", 0.7}},
             {{"temperature", 0.7}, {"seed", 3}, {"top_k", 3}},
             {{"temperature", 0}, {"guided_regex", "[0-9]{4}"}},
             {{"temperature", 0}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 0}}}) {
      json body = {{"prompt", "again and again and again and"}, {"max_tokens", 20}};
      body.update(more);
      const json answer = post(port, "/v1/completions", body);
      found.push_back(answer.at("choices").at(0).at("text"));
    }
    if (ranks == 1) wanted = found;
    EXPECT_EQ(found, wanted);
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0);
  }
}

TEST_F(GroupWorker, RefusesWhatRanksCannotShare) {
  const auto told = [&](std::vector<std::string> more, int status) {
    Process worker(LLM_WORKER, arguments(2, std::move(more)));
    EXPECT_EQ(worker.wait(), status) << worker.text();
    EXPECT_TRUE(no_child_left());
    return worker.text();
  };
  EXPECT_THAT(told({"--pooling", "mean"}, 1),
              HasSubstr("a model for embeddings is not implemented for several ranks"));
  EXPECT_THAT(told({"--cpu-moe"}, 1),
              HasSubstr("--cpu-moe or --n-cpu-moe is not implemented for several ranks"));
  EXPECT_THAT(told({"--nnodes", "2", "--node-rank", "0", "--master-addr", "10.0.0.1"}, 2),
              HasSubstr("ranks on 2 machines are not implemented"));
  EXPECT_THAT(told({"--nnodes", "2"}, 2), HasSubstr("--nnodes 2 needs --node-rank"));
  Process outside(LLM_WORKER, arguments(65));
  EXPECT_EQ(outside.wait(), 2);
  EXPECT_THAT(outside.text(), HasSubstr("--tensor-parallel-size"));
  Process launched(LLM_WORKER, arguments(2), {"RANK=1", "WORLD_SIZE=2"});
  EXPECT_EQ(launched.wait(), 2);
  EXPECT_THAT(launched.text(), HasSubstr("ranks that torchrun starts are not implemented"));
}

// A long answer is under way, and perhaps a long prompt.
enum class Moment : uint8_t { start, idle, prompt, step };

std::unique_ptr<RawClient> begin(Moment moment, uint16_t port) {
  if (moment == Moment::idle) return nullptr;
  std::string prompt = "words";
  for (int i = 0; moment == Moment::prompt && i < 3000; ++i) prompt += cat(" and ", i);
  const json body = {{"prompt", prompt}, {"max_tokens", 20'000}, {"stream", true}};
  auto client = std::make_unique<RawClient>(port);
  client->send(request("POST", "/v1/completions", body.dump()));
  if (moment == Moment::step) client->read_until("data: ");
  return client;
}

class LostRank : public GroupWorker,
                 public ::testing::WithParamInterface<std::tuple<Moment, int, int>> {};

TEST_P(LostRank, EndsAllProcesses) {
  const auto [moment, number, rank] = GetParam();
  Process worker(LLM_WORKER, arguments(3, {"--context", "32768"}));
  std::vector<pid_t> all;
  uint16_t port = 0;
  if (moment == Moment::start) {
    all = wait_for_children(worker.pid(), 2);
  } else {
    port = worker.port();
    all = children_of(worker.pid());
    ASSERT_EQ(all.size(), 2);
  }
  all.insert(all.begin(), worker.pid());
  const std::unique_ptr<RawClient> client = moment == Moment::start ? nullptr : begin(moment, port);
  kill(all[static_cast<size_t>(rank)], number);
  const int status = worker.wait();
  // A leader that is stopped is killed by the others.
  EXPECT_EQ(status, rank == 0 ? 128 + SIGKILL : 3) << worker.text();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_TRUE(gone(all[i])) << worker.text();
  if (rank > 0) {
    EXPECT_THAT(worker.text(), HasSubstr(number == SIGKILL ? "it ended by signal 9"
                                                           : "it has not answered for 4000 ms"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Killed, LostRank,
    ::testing::Combine(::testing::Values(Moment::start, Moment::idle, Moment::prompt, Moment::step),
                       ::testing::Values(SIGKILL, SIGSTOP), ::testing::Values(0, 1, 2)));

}  // namespace
}  // namespace rbee::testing

// The CPU worker's program as several ranks over a tiny random model: the answers of one rank, and
// no process left when any of them is killed or stopped.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <sstream>
#include <thread>

#include "rbee/core/cat.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/server/front_harness.h"
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
      EXPECT_FALSE(info.contains("rank_memory_bytes"));
    } else {
      EXPECT_THAT(metrics, HasSubstr(cat("rbee_group_ranks ", ranks, "\n")));
      EXPECT_THAT(metrics, Not(HasSubstr("rbee_group_commands_total 0\n")));
      EXPECT_EQ(info.at("tensor_parallel_size"), ranks);
      const auto each = info.at("rank_memory_bytes").get<std::vector<int64_t>>();
      EXPECT_EQ(std::ssize(each), ranks);
      EXPECT_GT(std::ranges::min(each), 0);
      EXPECT_EQ(std::accumulate(each.begin(), each.end(), int64_t{0}),
                health.at("vram_bytes_used"));
      EXPECT_EQ(health.at("tensor_parallel_size"), ranks);
    }
    const std::vector<pid_t> others = children_of(worker.pid());
    EXPECT_EQ(std::ssize(others), ranks - 1);
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0);
    for (const pid_t other : others) EXPECT_TRUE(gone(other));
  }
}

// Ranges of the experts, of five on three ranks too, also beside latent attention.
TEST_F(GroupWorker, ExpertsByRangeAnswerLikeOneRank) {
  for (const char* family : {"mixtral", "deepseek_v3"}) {
    const test::ModelFolder model(test::data_folder(), family);
    std::vector<std::string> wanted;
    for (const int ranks : {1, 2, 3}) {
      std::vector<std::string> all =
          arguments(ranks, {"--context", "256", "--enable-expert-parallel"});
      all[1] = model.path().string();
      Process worker(LLM_WORKER, std::move(all));
      const std::vector<std::string> texts = texts_of(worker.port(), 6, 20);
      if (ranks == 1) wanted = texts;
      EXPECT_EQ(texts, wanted) << family << " on " << ranks << " ranks";
      worker.signal(SIGTERM);
      EXPECT_EQ(worker.wait(), 0) << worker.text();
    }
  }
  EXPECT_TRUE(no_child_left());
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
  EXPECT_THAT(told({"--enable-expert-parallel"}, 1), HasSubstr("the model has no experts"));
  EXPECT_THAT(told({"--nnodes", "2", "--node-rank", "0", "--master-addr", "0.0.0.0"}, 1),
              HasSubstr("is not loopback, and there is no secret: set RBEE_GROUP_SECRET"));
  EXPECT_THAT(told({"--tensor-split", "3,1,1"}, 2), HasSubstr("there are 3 parts for 2 ranks"));
  EXPECT_THAT(told({"--nnodes", "2"}, 2), HasSubstr("--nnodes 2 needs --node-rank"));
  Process outside(LLM_WORKER, arguments(65));
  EXPECT_EQ(outside.wait(), 2);
  EXPECT_THAT(outside.text(), HasSubstr("--tensor-parallel-size"));
  Process launched(LLM_WORKER, arguments(2), {"RANK=1", "WORLD_SIZE=3"});
  EXPECT_EQ(launched.wait(), 2);
  EXPECT_THAT(launched.text(), HasSubstr("--tensor-parallel-size 2 is not WORLD_SIZE=3"));
}

// A port that nobody listens on now.
std::string free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = 0,
                      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                      .sin_zero = {}};
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(socket);
  return std::to_string(ntohs(address.sin_port));
}

// How a launcher starts process `index`: arguments and variables.
struct Launch {
  std::string name;
  int ranks = 2;
  std::function<std::vector<std::string>(int index, const std::string& port)> arguments;
  std::function<std::vector<std::string>(int index, const std::string& port)> variables;
};

std::vector<Launch> launchers() {
  const auto none = [](int, const std::string&) { return std::vector<std::string>{}; };
  const auto of_port = [](int, const std::string& port) {
    return std::vector<std::string>{"--master-port", port};
  };
  return {
      {"torchrun", 2, none,
       [](int i, const std::string& port) -> std::vector<std::string> {
         return {cat("RANK=", i),      "WORLD_SIZE=2",          cat("LOCAL_RANK=", i),
                 "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", cat("MASTER_PORT=", port)};
       }},
      {"Open MPI", 2, of_port,
       [](int i, const std::string&) -> std::vector<std::string> {
         return {cat("OMPI_COMM_WORLD_RANK=", i), "OMPI_COMM_WORLD_SIZE=2",
                 cat("OMPI_COMM_WORLD_LOCAL_RANK=", i), "OMPI_COMM_WORLD_LOCAL_SIZE=2"};
       }},
      {"LeaderWorkerSet", 2, of_port,
       [](int i, const std::string&) -> std::vector<std::string> {
         return {cat("LWS_WORKER_INDEX=", i), "LWS_GROUP_SIZE=2", "LWS_LEADER_ADDRESS=localhost",
                 "RBEE_GROUP_SECRET=s"};
       }},
      {"the leader", 2,
       [](int i, const std::string& port) -> std::vector<std::string> {
         return {
             "--nnodes", "2", "--node-rank", cat(i), "--dist-init-addr", cat("127.0.0.1:", port)};
       },
       none},
  };
}

std::unique_ptr<Process> launch(const Launch& of, int index, const std::string& port,
                                std::vector<std::string> arguments) {
  const std::vector<std::string> more = of.arguments(index, port);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return std::make_unique<Process>(LLM_WORKER, std::move(arguments), of.variables(index, port));
}

TEST_F(GroupWorker, RanksThatLaunchersStartAnswerLikeOne) {
  std::vector<std::string> wanted;
  {
    Process worker(LLM_WORKER, arguments(1, {"--context", "256"}));
    wanted = texts_of(worker.port(), 4, 30);
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0);
  }
  for (const Launch& each : launchers()) {
    const std::string port = free_port();
    const std::vector<std::string> given = arguments(each.ranks, {"--context", "256"});
    const auto other = launch(each, 1, port, given);
    const auto leader = launch(each, 0, port, given);
    EXPECT_EQ(texts_of(leader->port(), 4, 30), wanted) << each.name;
    EXPECT_THAT(leader->text(), HasSubstr(cat("\"started_by\":\"", each.name, "\"")));
    leader->signal(SIGTERM);
    EXPECT_EQ(leader->wait(), 0) << leader->text();
    EXPECT_EQ(other->wait(), 0) << other->text();
    EXPECT_TRUE(no_child_left());
  }
}

// The leader's parts are three times as large.
TEST_F(GroupWorker, ATensorSplitDecidesWhoHoldsHowMuch) {
  Process worker(LLM_WORKER, arguments(2, {"--context", "256", "--tensor-split", "3,1"}));
  Process even(LLM_WORKER, arguments(2, {"--context", "256"}));
  EXPECT_EQ(texts_of(worker.port(), 4, 30), texts_of(even.port(), 4, 30));
  // What rank 1 says in the log.
  const auto bytes = [](const Process& of) {
    std::smatch found;
    const std::regex wanted(R"rx("weight_bytes":"?([0-9]+))rx");
    EXPECT_TRUE(std::regex_search(of.text(), found, wanted)) << of.text();
    return std::stoll(found[1]);
  };
  EXPECT_GT(bytes(even), bytes(worker));
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

TEST_F(GroupWorker, TheLossOfALaunchedRankEndsAll) {
  for (const auto& [lost, number] : {std::pair{1, SIGKILL}, {1, SIGSTOP}, {0, SIGSTOP}}) {
    const Launch torchrun = launchers().front();
    const std::string port = free_port();
    std::vector<std::unique_ptr<Process>> all;
    for (const int index : {0, 1}) all.push_back(launch(torchrun, index, port, arguments(2)));
    const std::unique_ptr<RawClient> client = begin(Moment::step, all[0]->port());
    all[static_cast<size_t>(lost)]->signal(number);
    EXPECT_EQ(all[0]->wait(), lost == 0 ? 128 + SIGKILL : 3) << all[0]->text();
    EXPECT_EQ(all[1]->wait(), lost == 1 ? 128 + SIGKILL : 3) << all[1]->text();
  }
}

// The front starts the group again, and answers what had not begun.
TEST_F(GroupWorker, AFrontBringsAGroupBack) {
  Front front(json::array(
      {{{"name", "g"},
        {"program", LLM_WORKER},
        {"model", arguments(2)[1]},
        {"flags", {"-tp", "2", "--threads", "1", "--max-running", "1", "--context", "32768"}}}}));
  const pid_t leader = front.workers(0, 1)[0].at("pid");
  const std::vector<pid_t> others = wait_for_children(leader, 1);
  const json body = {{"model", "g"}, {"prompt", "words"}, {"max_tokens", 20'000}, {"stream", true}};
  RawClient begun(front.port());
  begun.send(request("POST", "/v1/completions", body.dump()));
  begun.read_until("data: ");
  RawClient waiting(front.port());
  json next = body;
  next["max_tokens"] = 5;
  waiting.send(request("POST", "/v1/completions", next.dump()));
  for (int i = 0; i < 6000 && front.metric(R"(rbee_front_worker_running{worker="g-0"})") < 2; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  kill(others[0], SIGKILL);
  EXPECT_THAT(begun.read_until("[DONE]"), HasSubstr("rank 1 is lost"));
  const std::string answer = waiting.read_until("[DONE]");
  EXPECT_THAT(answer, HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(answer, Not(HasSubstr("error")));
  const json again = front.workers(0, 1)[0];
  EXPECT_NE(again.at("pid"), leader);
  EXPECT_EQ(again.at("restarts"), 1);
  EXPECT_THAT(again.at("last_end").get<std::string>(), HasSubstr("exit status 3"));
  EXPECT_TRUE(gone(others[0]));
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

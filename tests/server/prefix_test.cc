// Requests go where their prompt's beginning was: the front's guess, and whole fronts.

#include "server/front/prefix.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/front/config.h"
#include "server/front/routing.h"
#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using server::choose_by_prefix;
using server::PrefixIndex;
using server::PromptPrefixes;

std::vector<uint64_t> prefixes_of(const json& body, const char* path = "/v1/chat/completions") {
  server::Request request;
  request.method = "POST";
  request.path = path;
  request.headers = {{"content-type", "application/json"}};
  request.body = body.dump();
  return server::wanted_by(request)->prefixes;
}

json message(const char* role, const std::string& text) {
  return {{"role", role}, {"content", text}};
}

// How many beginnings two requests share; all that one lacks must come last.
size_t shared(const std::vector<uint64_t>& one, const std::vector<uint64_t>& other) {
  size_t count = 0;
  while (count < std::min(one.size(), other.size()) && one[count] == other[count]) ++count;
  for (size_t i = count; i < std::min(one.size(), other.size()); ++i) EXPECT_NE(one[i], other[i]);
  return count;
}

TEST(Prefix, AChatThatGoesOnBeginsAsBefore) {
  const json first = {
      {"model", "m"},
      {"temperature", 0.5},
      {"messages",
       {message("system", std::string(3000, 's')), message("user", std::string(2000, 'u'))}}};
  json next = first;
  next["messages"].push_back(message("assistant", "yes"));
  next["messages"].push_back(message("user", std::string(5000, 'v')));
  next["temperature"] = 1;  // of no account
  next["seed"] = 7;
  const auto before = prefixes_of(first), after = prefixes_of(next);
  EXPECT_EQ(before.size(), 4u);  // of 5,000 bytes and the names of roles
  EXPECT_EQ(shared(before, after), before.size());
  EXPECT_EQ(after.size(), 9u);
  // Another text at its beginning, other tools, an adapter: another prompt from there on.
  json other = first;
  other["messages"][1]["content"] = std::string(2000, 'w');
  EXPECT_EQ(shared(before, prefixes_of(other)), 2u);
  other = first;
  other["tools"] = {{{"type", "function"}, {"function", {{"name", "f"}}}}};
  EXPECT_EQ(shared(before, prefixes_of(other)), 0u);
  other = first;
  other["model"] = "adapter";
  EXPECT_EQ(shared(before, prefixes_of(other)), 0u);
}

// Agents write the date or a count at the end of a long system text; the text before it counts.
TEST(Prefix, ALongSystemTextCountsByPieces) {
  const auto asked = [](const std::string& end, char own) {
    return prefixes_of({{"system", std::string(100'000, 's') + end},
                        {"messages", {message("user", std::string(12'000, own))}}},
                       "/v1/messages");
  };
  const auto one = asked("turn 3", 'a'), other = asked("turn 4", 'b');
  EXPECT_EQ(one.size(), 97u + 11u);
  EXPECT_EQ(shared(one, other), 97u);
  EXPECT_GE(shared(asked("turn 3", 'a'), asked("turn 3", 'b')) * 10, one.size());
  const json adapter = {{"tools", {{{"name", std::string(20'000, 't')}}}}, {"model", "a"}};
  const json model = {{"tools", {{{"name", std::string(20'000, 't')}}}}, {"model", "b"}};
  EXPECT_EQ(shared(prefixes_of(adapter), prefixes_of(model)), 0u);
}

TEST(Prefix, ReadsThePromptsOfEveryApi) {
  const std::string text(1500, 'x');
  for (const auto& [path, body] :
       {std::pair{"/v1/completions", json{{"prompt", text}}},
        std::pair{"/v1/messages", json{{"messages", {message("user", text)}}}},
        std::pair{"/v1/responses", json{{"input", text}}},
        std::pair{"/api/generate", json{{"model", "m"}, {"prompt", text}}},
        std::pair{"/v1/infer", json{{"prompt", text}}},
        std::pair{"/v1/jobs", json{{"operation", "infer"}, {"prompt", text}}},
        std::pair{"/completion", json{{"prompt", std::vector<int>(200, 17)}}}}) {
    EXPECT_EQ(prefixes_of(body, path).size(), 1u) << path;
  }
  // What Anthropic's clients send as the system's text comes first, wherever the body has it.
  const json system = {{"messages", {message("user", "Hi")}}, {"system", text}};
  EXPECT_EQ(prefixes_of(system, "/v1/messages").size(), 1u);
  EXPECT_TRUE(prefixes_of({{"prompt", "short"}}, "/v1/completions").empty());
  EXPECT_TRUE(prefixes_of({{"input", text}}, "/v1/embeddings").empty());
  EXPECT_TRUE(prefixes_of({{"prompt", text}}, "/v1/images/generations").empty());
  // Long texts count up to half a MiB.
  EXPECT_EQ(prefixes_of({{"prompt", std::string(2 << 20, 'x')}}, "/v1/completions").size(), 512u);
}

TEST(Prefix, TextsDoNotRunTogether) {
  PromptPrefixes one, other;
  for (int i = 0; i < 400; ++i) {
    one.add("ab");
    one.add("c");
    other.add("a");
    other.add("bc");
  }
  EXPECT_EQ(shared(one.hashes(), other.hashes()), 0u);
  EXPECT_FALSE(one.hashes().empty());
}

TEST(Prefix, AnIndexForgetsWhatWasUsedLongAgo) {
  PrefixIndex index;
  index.note({1, 2, 3});
  EXPECT_EQ(index.match({1, 2, 3, 4}), 3u);
  EXPECT_EQ(index.match({1, 5}), 1u);
  EXPECT_EQ(index.match({6, 5}), 0u);
  for (uint64_t i = 0; i < PrefixIndex::kMost - 2; ++i) index.note({100 + i});
  EXPECT_EQ(index.match({1, 2, 3}), 2u);  // the longest goes first
  index.note({1, 2});
  for (uint64_t i = 0; i < PrefixIndex::kMost - 2; ++i) index.note({100'000 + i});
  EXPECT_EQ(index.match({1, 2}), 2u);
  index.clear();
  EXPECT_EQ(index.match({1, 2}), 0u);
}

TEST(Prefix, AMatchIsWorthAFewRequests) {
  EXPECT_EQ(choose_by_prefix({{.busy = 2}, {.busy = 1}, {.busy = 1}}, 0), 1u);
  EXPECT_EQ(choose_by_prefix({{.busy = 2, .matched = 5}, {.busy = 0, .matched = 4}}, 9), 0u);
  EXPECT_EQ(choose_by_prefix({{.busy = 3, .matched = 5}, {.busy = 0, .matched = 4}}, 9), 1u);
  EXPECT_EQ(choose_by_prefix({{.busy = 3, .matched = 5}, {.busy = 0}}, 9), 1u);
  EXPECT_EQ(choose_by_prefix({{.busy = 15, .matched = 5}, {.busy = 10}}, 9), 0u);
  EXPECT_EQ(choose_by_prefix({{.busy = 16, .matched = 5}, {.busy = 10}}, 9), 1u);
  // Below a tenth it is not.
  EXPECT_EQ(choose_by_prefix({{.busy = 1, .matched = 1}, {.busy = 0}}, 11), 1u);
  EXPECT_EQ(choose_by_prefix({{.busy = 1, .matched = 1}, {.busy = 0}}, 10), 0u);
  // Of equal ones the less busy.
  EXPECT_EQ(choose_by_prefix({{.busy = 2, .matched = 3}, {.busy = 1, .matched = 3}, {}}, 9), 1u);
}

// What each worker of two answered, once both have answered `all`.
std::array<double, 2> answered(Front& front, double all) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto of = [&](int worker) {
    return front.metric(
        cat(R"(worker_requests_total{worker="a-)", worker, R"(",outcome="completed"})"));
  };
  while (std::chrono::steady_clock::now() < end) {
    const std::array<double, 2> found{of(0), of(1)};
    if (found[0] + found[1] >= all) return found;
  }
  throw std::runtime_error("the workers did not answer all");
}

json long_chat(char letter, int more) {
  json body = chat("a", std::string(3000, letter));
  for (int i = 0; i < more; ++i) body["messages"].push_back(message("user", "and?"));
  return body;
}

TEST(Prefix, ChatsStayWhereTheyBegan) {
  Front front(json::array({fake("a", "echo", 2)}));
  front.workers(0, 2);
  EXPECT_EQ(front.post("/v1/chat/completions", long_chat('x', 0)).status, 200);
  const size_t first = answered(front, 1)[0] == 1 ? 0 : 1;
  for (int turn = 1; turn <= 5; ++turn) {
    EXPECT_EQ(front.post("/v1/chat/completions", long_chat('x', turn)).status, 200);
    EXPECT_EQ(answered(front, turn + 1)[first], turn + 1);
  }
  EXPECT_EQ(front.metric("rbee_front_prefix_matches_total"), 5);
}

TEST(Prefix, OrTakeTurnsIfTheConfigurationSaysSo) {
  EXPECT_THROW((void)server::parse_front_config(
                   R"({"models":[{"name":"a","model":"m"}],"routing":"random"})", "it"),
               Error);
  Front front(json::array({fake("a", "echo", 2)}), {{"routing", "least_requests"}});
  front.workers(0, 2);
  for (int turn = 0; turn < 4; ++turn) {
    EXPECT_EQ(front.post("/v1/chat/completions", long_chat('x', turn)).status, 200);
  }
  EXPECT_EQ(answered(front, 4)[0], 2);
  EXPECT_EQ(front.metric("rbee_front_prefix_matches_total"), 0);
}

// The next process of a worker has nothing cached.
TEST(Prefix, ANewProcessHasSeenNothing) {
  Front front(json::array({fake("a", "echo", 2)}), {{"back_off_ms", 1}});
  EXPECT_TRUE(front.workers(0, 2).is_array());
  EXPECT_EQ(front.post("/v1/chat/completions", long_chat('x', 0)).status, 200);
  const size_t first = answered(front, 1)[0] == 1 ? 0 : 1;
  const auto pid = [&] { return front.workers(0, 2).at(first).at("pid").get<pid_t>(); };
  const pid_t before = pid();
  kill(before, SIGKILL);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (pid() == before) ASSERT_LT(std::chrono::steady_clock::now(), end);
  EXPECT_EQ(front.post("/v1/chat/completions", long_chat('x', 1)).status, 200);
  EXPECT_EQ(front.metric("rbee_front_prefix_matches_total"), 0);
}

}  // namespace
}  // namespace rbee::testing

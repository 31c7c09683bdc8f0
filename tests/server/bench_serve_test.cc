// `rbee bench serve` against a worker whose engine follows a script.

#include <gmock/gmock.h>

#include "cli/commands.h"
#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Ran {
  int status;
  std::string out, errors;
};

Ran bench_serve(const std::string& url, const std::vector<std::string>& options) {
  std::vector<std::string> words{"rbee", "bench", "serve", "--url", url};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int status = tools::run_command_line(static_cast<int>(argv.size()), argv.data());
  return {status, ::testing::internal::GetCapturedStdout(),
          ::testing::internal::GetCapturedStderr()};
}
Ran bench_serve(const Worker& worker, const std::vector<std::string>& options) {
  return bench_serve(cat("http://127.0.0.1:", worker.port()), options);
}

TEST(BenchServe, CountsWhatComesBack) {
  Worker worker;  // each prompt counts as 5 tokens, each answer is 3 pieces
  const Ran ran = bench_serve(worker, {"--requests", "8", "--output-tokens", "77", "--json"});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  const json report = json::parse(ran.out);
  EXPECT_EQ(report.at("completed"), 8);
  EXPECT_EQ(report.at("failed"), 0);
  EXPECT_EQ(report.at("input_tokens"), 40);
  EXPECT_EQ(report.at("output_tokens"), 24);
  const double seconds = report.at("seconds");
  EXPECT_NEAR(report.at("output_tokens_per_second"), 24 / seconds, 1e-6 / seconds);
  EXPECT_GT(report.at("ttft_ms").at("p50"), 0);
  EXPECT_LE(report.at("ttft_ms").at("p50"), report.at("e2e_ms").at("p99"));
  EXPECT_LE(report.at("itl_ms").at("p50"), report.at("itl_ms").at("p99"));
  const engine::TextRequest last = worker.engine.last_request();
  EXPECT_EQ(last.max_tokens, 77);
  EXPECT_TRUE(last.sampling.ignore_eos);
  EXPECT_FALSE(last.prompt.empty());
  EXPECT_TRUE(worker.engine.wait_ended(10)) << "two of them to count words";
}

TEST(BenchServe, ChatsWhenAsked) {
  Worker worker;
  const Ran ran = bench_serve(worker, {"--requests", "1", "--chat", "--may-end"});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_THAT(ran.out, StartsWith("requests: 1 completed, 0 failed"));
  EXPECT_EQ(worker.engine.last_request().messages.size(), 1u);
  EXPECT_FALSE(worker.engine.last_request().sampling.ignore_eos);
}

TEST(BenchServe, PromptsBeginAlikeWhereTheyShould) {
  Worker worker;
  ASSERT_EQ(bench_serve(worker, {"--requests", "1", "--shared-tokens", "3", "--seed", "5"}).status,
            0);
  const std::string one = worker.engine.last_request().prompt;
  ASSERT_EQ(bench_serve(worker, {"--requests", "2", "--shared-tokens", "3", "--seed", "5"}).status,
            0);
  const std::string two = worker.engine.last_request().prompt;
  EXPECT_NE(one, two);
  // A word counts as a tenth of a token here: 30 words are shared.
  const auto differs = std::ranges::mismatch(one, two).in1;
  EXPECT_GE(std::count(one.begin(), differs, ' '), 30);
}

TEST(BenchServe, SaysWhatARefusalSays) {
  Worker worker({.token = "secret"});
  const Ran refused = bench_serve(worker, {});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.errors, HasSubstr("status 401"));
  EXPECT_EQ(bench_serve(worker, {"--requests", "1", "--api-key", "secret"}).status, 0);
}

TEST(BenchServe, AnAnswerThatFailsIsNoThroughput) {
  Worker worker({.script = {.failure = engine::Failed{Code::internal, "the sky fell"}}});
  const Ran ran = bench_serve(worker, {"--requests", "1"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.errors, HasSubstr("the sky fell"));
}

TEST(BenchServe, WrongUsage) {
  Worker worker;
  EXPECT_EQ(bench_serve(worker, {"--requests", "0"}).status, 2);
  EXPECT_THAT(bench_serve(worker, {"--rate", "-1"}).errors, HasSubstr("--rate"));
  EXPECT_THAT(bench_serve("https://127.0.0.1", {}).errors, HasSubstr("https"));
}

}  // namespace
}  // namespace rbee::testing

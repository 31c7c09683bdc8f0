// Agreement at the start, commands, and the loss of ranks, with real processes.
#include "rbee/group/leader.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "rbee/core/error.h"
#include "rbee/group/place.h"

namespace rbee::group {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Leader : public ::testing::Test {
 protected:
  Leader() { std::filesystem::create_directories(folder_); }
  ~Leader() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<GroupLeader> start(const std::string& behaviour, int ranks = 3) {
    return std::make_unique<GroupLeader>(GroupLeaderOptions{
        .ranks = ranks,
        .program = TEST_RANK,
        .arguments = {"test-rank", behaviour},
        .model = (folder_ / "model").string(),
        .identity =
            {.build = "b", .model = (folder_ / "model").string(), .flags = "f", .device = "cpu"},
        .on_lost = [this](const std::string& why) { lost_.set_value(why); }});
  }
  Error error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error;
    }
    return {Code::internal, "test", "no error"};
  }
  // What the leader says when it has lost a rank.
  std::string lost() {
    std::future<std::string> told = lost_.get_future();
    return told.wait_for(60s) == std::future_status::ready ? told.get() : "nothing in a minute";
  }
  std::string log_of(int rank) {
    std::ifstream file(folder_ / cat("model.", rank));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / cat("rbee-leader-test-", getpid());
  std::promise<std::string> lost_;
};

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Ranks are children of this process: none may be left.
void expect_no_children() {
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Leader, GivesAllRanksItsCommandsInOrder) {
  for (const int ranks : {2, 3, 5}) {
    auto leader = start("", ranks);
    const std::vector<LinkLoaded> loaded = leader->wait_until_loaded();
    ASSERT_EQ(std::ssize(loaded), ranks - 1);
    for (int rank = 1; rank < ranks; ++rank) {
      const LinkLoaded& figures = loaded[static_cast<size_t>(rank - 1)];
      EXPECT_EQ(figures.weight_bytes, 100 * rank);
      EXPECT_EQ(figures.cache_token_bytes, rank);
    }
    std::string expected;
    for (int i = 0; i < 50; ++i) {
      leader->command(bytes(cat("command ", i)));
      expected += cat("command ", i, "\n");
    }
    leader->command(bytes(std::string(5'000'000, 'x')));  // in parts
    EXPECT_GE(leader->figures().commands, 51U);
    EXPECT_GT(leader->figures().bytes, 5'000'000U);
    leader.reset();
    for (int rank = 1; rank < ranks; ++rank) EXPECT_EQ(log_of(rank), expected + "5000000\nend\n");
    expect_no_children();
  }
}

TEST_F(Leader, RefusesRanksThatDiffer) {
  const auto told = [&](const char* behaviour) {
    const Error error = error_of([&] { start(behaviour); });
    EXPECT_EQ(error.code(), Code::invalid_argument);
    expect_no_children();
    return std::string(error.what());
  };
  EXPECT_EQ(told("build@1"),
            "group: rank 1 differs from the leader in its build: \"other\", not \"b\"");
  EXPECT_EQ(told("flags@2"),
            "group: rank 2 differs from the leader in its flags: \"g\", not \"f\"");
  EXPECT_EQ(told("protocol@2"),
            "group: rank 2 differs from the leader in its protocol: \"99\", not \"2\"");
}

TEST_F(Leader, TellsWhatARankCannotLoad) {
  const Error early = error_of([&] { start("fail@2"); });
  EXPECT_STREQ(early.what(), "group: rank 2: no such file");
  EXPECT_EQ(early.code(), Code::not_found);
  auto leader = start("fail-load@1");
  const Error late = error_of([&] { leader->wait_until_loaded(); });
  EXPECT_STREQ(late.what(), "group: rank 1: too large");
  EXPECT_EQ(late.code(), Code::out_of_memory);
  leader.reset();
  expect_no_children();
}

TEST_F(Leader, NoticesARankThatEndsAtItsStart) {
  for (const auto& [behaviour, why] :
       {std::pair{"exit@1", "rank 1 is lost: it ended with status 7"},
        {"kill@2", "rank 2 is lost: it ended by signal 9"},
        {"stop@1", "rank 1 is lost: it has not answered for 4000 ms"}}) {
    lost_ = {};
    const Error error = error_of([&] { start(behaviour); });
    EXPECT_EQ(error.code(), Code::device);
    EXPECT_EQ(std::string(error.what()), cat("group: ", why)) << behaviour;
    expect_no_children();
  }
}

TEST_F(Leader, AProgramThatIsNotThereEndsWithStatus127) {
  const Error error = error_of(
      [&] { GroupLeader({.ranks = 2, .program = "/no/such/program", .arguments = {"x"}}); });
  EXPECT_STREQ(error.what(), "group: rank 1 is lost: it ended with status 127");
}

TEST_F(Leader, NoticesALossWhileLoading) {
  auto leader = start("stop-load@2");
  const Error error = error_of([&] { leader->wait_until_loaded(); });
  EXPECT_EQ(error.code(), Code::device);
  EXPECT_STREQ(error.what(), "group: rank 2 is lost: it has not answered for 4000 ms");
  leader.reset();
  expect_no_children();
}

TEST_F(Leader, TheLossOfARankEndsTheGroup) {
  for (const auto& [behaviour, command, why] :
       {std::tuple{"die@2", "die", "rank 2 is lost: it ended by signal 9"},
        {"throw@1", "throw", "rank 1 is lost: it broke"},
        {"stop-step@1", "stop", "rank 1 is lost: it has not answered for 4000 ms"}}) {
    lost_ = {};
    auto leader = start(behaviour);
    leader->wait_until_loaded();
    leader->command(bytes(command));
    EXPECT_EQ(lost(), why);
    EXPECT_TRUE(leader->lost());
    const Error error = error_of([&] { leader->command(bytes("more")); });
    EXPECT_EQ(error.code(), Code::device);
    EXPECT_EQ(std::string(error.what()), cat("group: ", why));
    leader.reset();
    expect_no_children();
  }
}

// A process that only leads, and then ends or stops.
pid_t start_leading(const GroupLeaderOptions& options, bool stops) {
  const pid_t process = fork();
  if (process != 0) return process;
  GroupLeader leader(options);
  leader.wait_until_loaded();
  raise(stops ? SIGSTOP : SIGKILL);
  _exit(0);
}

TEST_F(Leader, ItsLossEndsTheOthersAndASilentOneItself) {
  for (const bool stops : {false, true}) {
    const pid_t leader = start_leading({.ranks = 3,
                                        .program = TEST_RANK,
                                        .arguments = {"test-rank", ""},
                                        .model = (folder_ / "model").string(),
                                        .identity = {.build = "b",
                                                     .model = (folder_ / "model").string(),
                                                     .flags = "f",
                                                     .device = "cpu"}},
                                       stops);
    int status = 0;
    ASSERT_EQ(waitpid(leader, &status, 0), leader);  // does not return for one that is stopped
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
  }
}

}  // namespace
}  // namespace rbee::group

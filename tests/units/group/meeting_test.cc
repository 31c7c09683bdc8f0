// Ranks that are started apart from the leader, and strangers that come beside them.
#include "rbee/group/meeting.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <list>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/group/handshake.h"
#include "rbee/group/leader.h"
#include "rbee/group/network.h"
#include "rbee/group/rank_process.h"

namespace rbee::group {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A port that nobody listens on now.
int free_port() {
  const Descriptor socket = listen_on(resolve("127.0.0.1", 0).front());
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// What the process logs, from all threads.
class Log {
 public:
  Log() {
    set_log_sink(
        [this](LogLevel, std::string_view message, std::span<const LogField> fields) {
          const std::scoped_lock lock(mutex_);
          text_ += message;
          for (const LogField& field : fields) text_ += cat(" ", field.key, "=", field.value);
          text_ += "\n";
          changed_.notify_all();
        },
        LogLevel::info);
  }
  ~Log() { set_log_sink({}, LogLevel::info); }

  // Waits for it, for at most a minute.
  bool has(std::string_view part) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return text_.find(part) != std::string::npos; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
};

class Meeting : public ::testing::Test {
 protected:
  Meeting() { std::filesystem::create_directories(folder_); }
  ~Meeting() override { std::filesystem::remove_all(folder_); }

  void start_rank(int rank, int ranks, const std::string& behaviour = "",
                  const std::string& secret = "s") {
    processes_.emplace_back(
        TEST_RANK,
        std::vector<std::string>{"test-rank", behaviour, cat(rank), cat(ranks), cat(port_), secret},
        1);
  }
  GroupLeaderOptions options(int ranks) {
    const std::string model = (folder_ / "model").string();
    return {.ranks = ranks,
            .arguments = {},
            .model = model,
            .identity = {.build = "b", .model = model, .flags = "f", .device = "cpu"},
            .shared = {memory_.get()},
            .meeting = MeetingPlace{.port = port_, .secret = "s"},
            .on_lost = [this](const std::string& why) { lost_.set_value(why); }};
  }
  std::future<std::unique_ptr<GroupLeader>> lead(int ranks) {
    return std::async(std::launch::async, [options = options(ranks)] {
      return std::make_unique<GroupLeader>(options);
    });
  }
  std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string log_of(int rank) {
    std::ifstream file(folder_ / cat("model.", rank));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // All have ended, none was killed.
  std::vector<int> statuses() {
    std::vector<int> out;
    for (RankProcess& each : processes_) out.push_back(each.wait(60s).value_or(-1));
    return out;
  }

  const int port_ = free_port();
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / cat("rbee-meeting-test-", getpid());
  const Descriptor memory_ = Descriptor(memfd_create("test", MFD_CLOEXEC));
  std::promise<std::string> lost_;
  std::list<RankProcess> processes_;
};

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Handshake, ProofsAreHmacSha256) {
  // Python: hmac.new(b"secret", bytes([who]) + bytes(range(64)), hashlib.sha256)
  Nonce leader, rank;
  for (size_t i = 0; i < kNonceBytes; ++i) {
    leader[i] = std::byte(i);
    rank[i] = std::byte(32 + i);
  }
  const auto first = [&](Prover who) {
    const Proof proof = prove("secret", who, leader, rank);
    return cat(static_cast<int>(proof[0]), " ", static_cast<int>(proof[31]));
  };
  EXPECT_EQ(first(Prover::leader), cat(0x24, " ", 0x9c));
  EXPECT_EQ(first(Prover::rank), cat(0x77, " ", 0xb9));
  EXPECT_FALSE(same_proof(prove("other", Prover::rank, leader, rank),
                          prove("secret", Prover::rank, leader, rank)));
}

TEST(Handshake, MessagesSurviveTheWayAndOthersAreRefused) {
  const Answer answer{.rank = new_nonce(), .proof = Proof{std::byte{7}}};
  const auto whole = encode_answer(answer);
  EXPECT_EQ(decode_answer(whole).rank, answer.rank);
  EXPECT_EQ(decode_answer(whole).proof, answer.proof);
  const Challenge challenge{.leader = new_nonce()};
  EXPECT_EQ(decode_challenge(encode_challenge(challenge)).leader, challenge.leader);
  EXPECT_THROW(decode_answer(std::span(whole).first(10)), Error);
  auto wrong = whole;
  wrong[0] = std::byte{0};
  EXPECT_THROW(decode_answer(wrong), Error);
}

TEST_F(Meeting, GivesRanksThatComeInAnyOrderItsCommands) {
  start_rank(2, 3);
  auto coming = lead(3);
  start_rank(1, 3);
  auto leader = coming.get();
  EXPECT_EQ(leader->wait_until_loaded().size(), 2);
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    leader->command(bytes(cat("command ", i)));
    expected += cat("command ", i, "\n");
  }
  leader->command(bytes(std::string(5'000'000, 'x')));  // in parts
  EXPECT_EQ(leader->figures().commands, 55U);
  leader.reset();
  EXPECT_EQ(statuses(), (std::vector{0, 0}));
  for (const int rank : {1, 2}) EXPECT_EQ(log_of(rank), expected + "5000000\nend\n");
}

TEST_F(Meeting, StrangersDoNotHoldUpTheOthers) {
  Log log;
  auto coming = lead(3);
  const NetAddress address = resolve("127.0.0.1", port_).front();
  std::list<Descriptor> strangers;
  // More than it keeps, and all silent.
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(connect_to(address, 60s));
    while (strangers.back().get() < 0) strangers.back() = connect_to(address, 60s);
  }
  Descriptor loud = connect_to(address, 60s);
  write_all(loud.get(), bytes(std::string(1000, 'G')));
  EXPECT_TRUE(log.has("does not begin with RBEEGRP1"));
  start_rank(1, 3, "", "other");
  EXPECT_TRUE(log.has("it does not know the group's secret"));
  EXPECT_EQ(statuses(), std::vector{3});
  start_rank(1, 3);
  start_rank(1, 3);
  EXPECT_TRUE(log.has("rank 1 is there already"));
  start_rank(2, 3);
  auto leader = coming.get();
  leader->wait_until_loaded();
  leader.reset();
  int joined = 0;
  for (const int status : statuses()) joined += status == 0 ? 1 : 0;
  EXPECT_EQ(joined, 2);
  EXPECT_EQ(log_of(1), "end\n");
}

TEST_F(Meeting, ADifferenceEndsTheGroup) {
  Log log;
  auto coming = lead(3);
  start_rank(1, 3);
  start_rank(1, 3);
  // One of the two is there then. A rank that came after the end would wait for another leader.
  EXPECT_TRUE(log.has("rank 1 is there already"));
  start_rank(2, 3, "flags@2");
  EXPECT_EQ(error_of([&] { coming.get(); }),
            "group: rank 2 differs from the leader in its flags: \"g\", not \"f\"");
  EXPECT_EQ(statuses(), (std::vector{3, 3, 3}));
}

// Another network's names are not this one's, so rank 1 counts as another machine's. It has its
// connection already.
TEST_F(Meeting, ARankOfAnotherMachineSharesNothing) {
  for (const bool one_machine : {true, false}) {
    lost_ = {};
    processes_.clear();
    start_rank(1, 3, "elsewhere@1");
    start_rank(2, 3, "elsewhere@1");
    GroupLeaderOptions wanted = options(3);
    wanted.one_machine = one_machine;
    wanted.times.start = 60s;
    const std::string error = error_of([&] {
      GroupLeader leader(wanted);
      leader.wait_until_loaded();
      leader.command(bytes("a command"));
    });
    const std::vector<int> all = statuses();
    if (all.front() == 77) GTEST_SKIP() << "no namespaces here";
    if (one_machine) {
      EXPECT_THAT(error, HasSubstr("rank 1 is on another machine ("));
      continue;
    }
    EXPECT_EQ(error, "no error");
    EXPECT_EQ(all, (std::vector{0, 0}));
    for (const int rank : {1, 2}) EXPECT_EQ(log_of(rank), "a command\nend\n");
  }
}

TEST_F(Meeting, NamesWhoIsMissing) {
  start_rank(2, 4);
  GroupLeaderOptions wanted = options(4);
  wanted.times.start = 3s;
  EXPECT_EQ(error_of([&] { GroupLeader leader(wanted); }),
            cat("group: ranks have not come to 127.0.0.1, port ", port_, " within 3000 ms: 1, 3"));
}

TEST_F(Meeting, WantsASecretOffLoopback) {
  GroupLeaderOptions wanted = options(2);
  wanted.meeting->address = "0.0.0.0";
  wanted.meeting->secret.clear();
  EXPECT_THAT(error_of([&] { GroupLeader leader(wanted); }),
              HasSubstr("is not loopback, and there is no secret: set RBEE_GROUP_SECRET"));
  EXPECT_THAT(error_of([&] { meet_leader(*wanted.meeting, {}); }),
              HasSubstr("is not loopback, and there is no secret: set RBEE_GROUP_SECRET"));
}

TEST_F(Meeting, TheLossOfARankEndsTheGroup) {
  for (const auto& [behaviour, command, why] :
       {std::tuple{"die@2", "die", "rank 2 is lost: it closed its link"},
        {"throw@1", "throw", "rank 1 is lost: it broke"},
        {"stop-step@1", "stop", "rank 1 is lost: it has not answered for 4000 ms"}}) {
    lost_ = {};
    processes_.clear();
    start_rank(1, 3, behaviour);
    start_rank(2, 3, behaviour);
    auto leader = lead(3).get();
    leader->wait_until_loaded();
    leader->command(bytes(command));
    std::future<std::string> told = lost_.get_future();
    ASSERT_EQ(told.wait_for(60s), std::future_status::ready);
    EXPECT_EQ(told.get(), why);
    // The stopped one too: a rank of this machine came for its memory.
    for (const int status : statuses()) EXPECT_GT(status, 0) << behaviour;
    EXPECT_THAT(error_of([&] { leader->command(bytes("more")); }), HasSubstr(why));
  }
}

TEST_F(Meeting, AStoppedLeaderIsEndedByTheOthers) {
  const pid_t process = fork();
  if (process == 0) {
    GroupLeader leader(options(2));
    leader.wait_until_loaded();
    raise(SIGSTOP);
    _exit(0);
  }
  start_rank(1, 2);
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);  // does not return for one that is stopped
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(statuses(), std::vector{3});
}

}  // namespace
}  // namespace rbee::group

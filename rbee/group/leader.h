#pragma once
// Rank 0 of a group: starts the others, agrees with them on what they are, gives them commands, and
// notices when one is lost. A group lives and dies as one.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rbee/group/channel.h"
#include "rbee/group/rank_link.h"
#include "rbee/group/rank_process.h"

namespace rbee::group {

struct GroupTimes {
  std::chrono::milliseconds beat{500};        // between two signs of life
  std::chrono::milliseconds silence{4'000};   // without one, or stopped: the other side is lost
  std::chrono::milliseconds start{600'000};   // until a rank says what it is
  std::chrono::milliseconds command{30'000};  // until a rank has done a command
};

struct GroupLeaderOptions {
  int ranks = 2;
  std::string program = "/proc/self/exe";  // of the other ranks
  std::vector<std::string> arguments;      // its own, the first is its name
  std::string model;                       // path that the ranks load
  Identity identity;                       // of the leader
  std::vector<int> shared = {};            // descriptors of what the ranks share
  // Called once when a rank is lost, on the thread that notices. Not for a rank that says why it
  // cannot load.
  std::function<void(const std::string& why)> on_lost = {};
  GroupTimes times = {};
};

// Figures since the start.
struct GroupFigures {
  uint64_t commands = 0;
  uint64_t bytes = 0;         // of all commands
  double waited_seconds = 0;  // for ranks that were behind
};

class GroupLeader {
 public:
  // Starts ranks 1 to ranks - 1, and returns when all have said that they are the same. Throws
  // invalid_argument for values out of range and if a rank differs, naming both values, device if
  // one ends or does not answer in time, and io.
  explicit GroupLeader(GroupLeaderOptions options);
  // Lets the ranks end after their last command, and waits for them.
  ~GroupLeader();
  GroupLeader(const GroupLeader&) = delete;
  GroupLeader& operator=(const GroupLeader&) = delete;

  int ranks() const { return options_.ranks; }
  // What the other ranks said after loading, in their order; waits for them. Throws device if one
  // was lost, and what one has failed with.
  std::vector<LinkLoaded> wait_until_loaded();
  // Throws as wait_until_loaded(), without waiting. Thread-safe.
  void check_alive() const;
  // Gives all ranks a command. Throws device if one is lost or too slow, which ends the group.
  void command(std::span<const std::byte> message);
  // The group cannot go on: its ranks end, and so do all waits. Thread-safe.
  void end(const std::string& why);
  bool lost() const { return lost_; }  // thread-safe
  GroupFigures figures() const;        // thread-safe

 private:
  struct Rank {
    RankProcess process;
    RankLink link;
    // When it last showed a sign of life, or was not stopped before its first one.
    std::chrono::steady_clock::time_point heard;
    std::optional<LinkHello> hello = {};
    std::optional<LinkLoaded> loaded = {};
  };

  void start_ranks();
  void agree(int rank);
  void watch(const std::stop_token& stop);
  void hear(int rank);
  void take(int rank, const LinkMessage& message);
  void note_silence(std::chrono::steady_clock::duration pause);
  void lose(int rank, const std::string& why);
  void fail_if_lost() const;  // mutex_ is held

  GroupLeaderOptions options_;
  ChannelWriter channel_;
  std::vector<Rank> others_;  // rank r at r - 1
  std::atomic<bool> lost_ = false;

  mutable std::mutex mutex_;  // guards the next ones, and what ranks have said
  std::condition_variable changed_;
  std::string why_;               // lost_
  std::optional<Error> failure_;  // of a rank that has not loaded
  GroupFigures figures_;

  std::jthread watch_;  // last: its end comes first
};

}  // namespace rbee::group

#pragma once
// Rank 0 of a group: starts the others or meets them, agrees with them on what they are, gives them
// commands, and notices when one is lost. A group lives and dies as one.

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
#include "rbee/group/meeting.h"
#include "rbee/group/memory_door.h"
#include "rbee/group/rank_link.h"
#include "rbee/group/rank_process.h"

namespace rbee::group {

struct GroupLeaderOptions {
  int ranks = 2;
  std::string program = program_path();  // of the other ranks
  std::vector<std::string> arguments;    // its own, the first is its name
  std::string model;                     // path that the ranks load
  Identity identity;                     // of the leader
  // Descriptors of what the ranks of the leader's machine share.
  std::vector<int> shared = {};
  bool one_machine = true;   // all ranks must be of it; false: those of others share nothing
  std::string comm_id = {};  // for the ranks' devices, see LinkWelcome
  std::optional<MeetingPlace> meeting = {};  // of ranks that others start; program is not run then
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
  // Starts ranks 1 to ranks - 1, or meets them, and returns when all have said that they are the
  // same. Throws invalid_argument for values out of range and if a rank differs, naming both
  // values, unsupported for a rank of another machine where that may not be, device if one ends or
  // does not answer in time, io, and as meet_ranks().
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
    std::optional<RankProcess> process;  // that this one has started
    RankLink link;
    // When it last showed a sign of life, or was not stopped before its first one.
    std::chrono::steady_clock::time_point heard;
    std::optional<LinkHello> hello = {};
    std::optional<LinkLoaded> loaded = {};
    uint64_t done = 0;  // frames that came over the link; guarded by mutex_
  };

  void start_ranks();
  void meet();
  void welcome();
  void check_hello(const LinkHello& hello) const;
  void agree(int rank);
  void give(std::span<const std::byte> frame);
  void give_over_links(std::span<const std::byte> frame);
  void wait_for_done();
  void kill_met();
  std::string end_of(Rank& rank) const;
  void wait_for_ends();
  void watch(const std::stop_token& stop);
  void hear(int rank);
  void take(int rank, const LinkMessage& message);
  void note_silence(std::chrono::steady_clock::duration pause);
  void lose(int rank, const std::string& why);
  void fail_if_lost() const;  // mutex_ is held

  GroupLeaderOptions options_;
  std::optional<ChannelWriter> channel_;  // to ranks that this process has started
  std::optional<MemoryDoor> door_;        // for ranks that it met
  std::vector<Rank> others_;              // rank r at r - 1
  std::atomic<bool> lost_ = false;

  mutable std::mutex mutex_;  // guards the next ones, and what ranks have said
  std::condition_variable changed_;
  std::string why_;               // lost_
  std::optional<Error> failure_;  // of a rank that has not loaded
  GroupFigures figures_;
  std::vector<WatchedProcess> met_;  // processes of this machine that came to the door

  std::jthread watch_;  // last: its end comes first
};

}  // namespace rbee::group

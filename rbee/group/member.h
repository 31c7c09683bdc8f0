#pragma once
// Any rank of a group but the leader: agrees with it, and gets its commands.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rbee/group/channel.h"
#include "rbee/group/leader.h"
#include "rbee/group/place.h"
#include "rbee/group/rank_link.h"

namespace rbee::group {

struct GroupMemberOptions {
  RankPlace place;
  // To the leader, of a rank that has met it; else the place has one.
  std::optional<RankLink> met = {};
  // Called when the leader is lost or the group ends in the middle of work, on the thread that
  // notices. It ends the process: a group lives and dies as one.
  std::function<void(const std::string& why)> on_lost;
  GroupTimes times = {};
};

class GroupMember {
 public:
  // From now on the leader hears that this rank lives. Throws invalid_argument if there is no link.
  explicit GroupMember(GroupMemberOptions options);
  ~GroupMember();
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;

  int rank() const { return options_.place.rank; }
  // The path of what this rank is to load; waits for the leader. Throws device.
  std::string model();
  // Says what this rank is, and waits until the leader agrees. Throws device, and what the leader
  // says against it.
  void join(const Identity& identity);
  // Whether this rank is of the leader's machine, after join().
  bool shares() const { return !shared_.empty(); }
  // A descriptor of GroupLeaderOptions::shared, after join() where it shares them.
  int shared(size_t index) const { return shared_.at(index).get(); }
  // GroupLeaderOptions::comm_id, after join().
  const std::string& comm_id() const { return comm_id_; }
  void loaded(const LinkLoaded& figures) { link_.send(figures); }
  // Tells the leader why this rank cannot go on; the process ends then.
  void failed(Code code, const std::string& why) { link_.send(LinkFailed{code, why}); }

  // The next command; the one before counts as done. Nothing: the group ends. Throws device if it
  // ended in the middle of work.
  std::optional<std::vector<std::byte>> command();

 private:
  LinkMessage next_message();
  std::vector<std::byte> next_frame();
  bool take(LinkMessage message);
  void stop_waiting();
  std::string end_leader() const;
  void watch(const std::stop_token& stop);

  GroupMemberOptions options_;
  RankLink link_;
  WatchedProcess leader_;  // the leader's; none: unknown
  std::vector<Descriptor> shared_;
  std::string comm_id_;
  std::unique_ptr<ChannelReader> channel_;  // null: commands come over the link
  std::mutex mutex_;                        // of beats_
  std::condition_variable_any beats_;

  std::mutex frames_mutex_;  // guards the next two
  std::condition_variable frame_came_;
  std::deque<std::vector<std::byte>> frames_;
  bool ended_ = false;
  uint64_t taken_ = 0;  // frames that came over the link

  std::jthread beat_, watch_;
};

}  // namespace rbee::group

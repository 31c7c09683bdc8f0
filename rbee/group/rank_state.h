#pragma once
// What a rank is doing, as a file: ranks but the leader have no port that could be asked.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace rbee::group {

enum class RankPhase : uint8_t {
  waits,    // for the leader
  loading,  // its part of the model
  follows,  // the leader's commands
};
std::string_view name(RankPhase phase);  // "waits", "loading", "follows"

// $XDG_RUNTIME_DIR/rbee, or /tmp/rbee-UID: a folder that only this user may enter.
std::filesystem::path rank_folder();

// The file of this process, which is gone with this object. Where it cannot be written, a warning
// says so, and the rank works without.
class RankState {
 public:
  RankState(int rank, int ranks, std::filesystem::path folder = rank_folder());
  ~RankState();
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  void set(RankPhase phase);

 private:
  const int rank_, ranks_;
  const std::filesystem::path file_;
};

struct RankReport {
  pid_t process = 0;
  int rank = 0, ranks = 0;
  RankPhase phase = RankPhase::waits;
  bool stopped = false;  // by a signal, as SIGSTOP
};

// Of all ranks of this user that run and that this process sees, by rank. Removes the files of
// those that have ended.
std::vector<RankReport> ranks_here(const std::filesystem::path& folder = rank_folder());

}  // namespace rbee::group

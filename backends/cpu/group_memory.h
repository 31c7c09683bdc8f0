#pragma once
// Memory that the ranks of a group on one machine share: how CPUs' ranks add and exchange tensors.
// A rank is a process, or a thread in tests.
//
// Every rank has two areas that it alone writes, used in turn: it copies a piece of its tensor
// there, counts its turn up, waits until all have counted as far, and reads the others' areas. A
// rank that writes an area again knows that all have read it, since they have counted on.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "backends/api/group_view.h"

namespace rbee::cpu {

class GroupMemory {
 public:
  // Makes memory for 2 to 256 ranks; the result is a file descriptor of the caller's, closed on
  // exec. Throws invalid_argument, and out_of_memory if the system gives none.
  static int create(int ranks);

  // Maps the memory of `fd`, which the caller may close afterwards. Each rank is attached once.
  // Throws invalid_argument for a rank outside of the group and for a file that create() did not
  // make, and device if the rank is taken.
  static std::unique_ptr<GroupMemory> attach(int fd, int rank);

  ~GroupMemory();
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  // For collective operations of this rank, while the memory lives.
  GroupView view() {
    return {.rank = rank_, .ranks = ranks_, .link = GroupLink::shared_memory, .handle = this};
  }

  // How long a wait for another rank may last. Then the group ends.
  void set_time_limit(std::chrono::milliseconds limit) { limit_ = limit; }
  std::chrono::milliseconds time_limit() const { return limit_; }

  // Ends all waits of all ranks, now and later, with an error that carries the reason of the first
  // call. Safe from any thread.
  void end(std::string_view reason) noexcept;
  bool ended() const noexcept;

  // What an operation of one rank does at a time. Operations of different kinds or sizes meet only
  // by mistake, which ends the group.
  struct Turn {
    uint32_t kind;
    uint64_t bytes;  // of the whole operation
  };

  // Bytes of an area, and so of a piece.
  static constexpr size_t kAreaBytes = size_t{256} << 10;
  // This rank's area for the next turn.
  std::byte* area();
  // Counts this rank's turn and waits for the others. Throws device if the group has ended, a rank
  // does not come in time, or one is in another operation.
  void meet(const Turn& turn);
  // What `rank` wrote for the turn that all have met for. Valid until this rank's next meet().
  const std::byte* area_of(int rank) const;

 private:
  struct Head;
  struct RankState;
  GroupMemory(std::byte* memory, size_t bytes, int rank, int ranks)
      : memory_(memory), bytes_(bytes), rank_(rank), ranks_(ranks) {}

  Head& head() const;
  RankState& state(int rank) const;
  std::byte* area_at(int rank, uint32_t turn) const;
  void wait_for(int rank, uint32_t turn);
  [[noreturn]] void fail_ended() const;

  std::byte* memory_;
  size_t bytes_;
  int rank_, ranks_;
  uint32_t turn_ = 0;  // that this rank has met for
  std::chrono::milliseconds limit_{30'000};
};

}  // namespace rbee::cpu

#pragma once
// Threads of a test as the ranks of a group, over the memory that processes would share.

#include <functional>
#include <memory>
#include <vector>

#include "backends/cpu/group_memory.h"

namespace rbee::harness {

class RankThreads {
 public:
  // 1 rank has no memory and runs in the caller's thread.
  explicit RankThreads(int ranks);

  int ranks() const { return ranks_; }
  GroupView view(int rank) const;
  cpu::GroupMemory& memory(int rank) const { return *memories_[static_cast<size_t>(rank)]; }

  // Calls body(rank) on a thread for each rank and waits for all. An exception ends the group;
  // the first one is thrown again.
  void run(const std::function<void(int rank)>& body) const;

 private:
  int ranks_;
  std::vector<std::unique_ptr<cpu::GroupMemory>> memories_;
};

}  // namespace rbee::harness

#pragma once
// GroupView: a rank's way to the other ranks of its group, the processes that hold one model
// together. Collective operations take one.

#include <cstdint>

namespace rbee {

// What ranks talk over. All ranks of a group have the same: implementations may refuse by it.
enum class GroupLink : uint8_t {
  none,           // a rank alone
  shared_memory,  // handle: cpu::GroupMemory, of ranks on one machine
  collectives,    // handle: gpu::CclGroup, of GPUs
};

struct GroupView {
  int rank = 0;
  int ranks = 1;
  GroupLink link = GroupLink::none;
  void* handle = nullptr;  // belongs to whoever made the group; outlives all views

  // A rank alone: nothing is split and no collective runs.
  bool alone() const { return ranks == 1; }
};

}  // namespace rbee

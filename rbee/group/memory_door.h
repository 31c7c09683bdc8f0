#pragma once
// How ranks that the leader has not started get the memory that the ranks of a machine share: a
// socket with a name that only the group knows, through which descriptors go to processes of the
// same user.

#include <string>
#include <vector>

#include "rbee/core/system/process.h"
#include "rbee/group/rank_link.h"
#include "rbee/group/shared_mapping.h"

namespace rbee::group {

class MemoryDoor {
 public:
  // Opens a door with a new name. The descriptors are the caller's. Throws io.
  explicit MemoryDoor(const std::vector<int>& descriptors);

  const std::string& name() const { return name_; }
  int descriptor() const { return listener_.get(); }  // readable: somebody is at the door
  // Gives the descriptors to who is there, and returns its process; none: nobody, or another user.
  WatchedProcess answer() const;

 private:
  std::string name_;
  Descriptor listener_;
  std::vector<Descriptor> descriptors_;
};

struct FromDoor {
  std::vector<Descriptor> descriptors;
  WatchedProcess leader;  // its process
};
// Throws device if nothing comes within `patience`.
FromDoor fetch_memory(const std::string& name, std::chrono::milliseconds patience);

}  // namespace rbee::group

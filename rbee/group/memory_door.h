#pragma once
// How ranks that the leader has not started get the memory that the ranks of a machine share: a
// socket with a name that only the group knows, through which descriptors go to processes of the
// same user.

#include <string>
#include <vector>

#include "rbee/group/rank_link.h"
#include "rbee/group/shared_mapping.h"

namespace rbee::group {

// The same for two processes that can share memory this way: the machine's start and the network
// that the process sees, since such names belong to it.
std::string this_machine();

// A pidfd of the process; none: it is unknown.
Descriptor process_of(int id);
// Kills it, if it is known. Also one that is stopped.
void end_process(const Descriptor& process);

class MemoryDoor {
 public:
  // Opens a door with a new name. The descriptors are the caller's. Throws io.
  explicit MemoryDoor(const std::vector<int>& descriptors);

  const std::string& name() const { return name_; }
  int descriptor() const { return listener_.get(); }  // readable: somebody is at the door
  // Gives the descriptors to who is there, and returns its process; none: nobody, or another user.
  Descriptor answer() const;

 private:
  std::string name_;
  Descriptor listener_;
  std::vector<Descriptor> descriptors_;
};

struct FromDoor {
  std::vector<Descriptor> descriptors;
  Descriptor leader;  // its process
};
// Throws device if nothing comes within `patience`.
FromDoor fetch_memory(const std::string& name, std::chrono::milliseconds patience);

}  // namespace rbee::group

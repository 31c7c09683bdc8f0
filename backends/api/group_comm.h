#pragma once
// A device's way to the devices of the other ranks of its group, for collective operations.

#include <memory>
#include <string>
#include <string_view>

#include "backends/api/device.h"
#include "backends/api/group_view.h"

namespace rbee {

class GroupComm {
 public:
  virtual ~GroupComm() = default;
  // For collective operations on the device of this rank, while this lives.
  virtual GroupView view() = 0;
  // The group has ended: what the device does with other ranks ends, its results are nothing, and
  // later operations throw device with the first call's reason. Does not wait. Any thread.
  virtual void end(std::string_view why) noexcept = 0;
  // What has gone wrong by itself, in one line; empty: nothing. Any thread.
  virtual std::string fault() = 0;
};

// What a rank needs to join a group.
struct GroupEntry {
  int rank = 0;
  int ranks = 1;
  std::string id;  // from the backend of one rank, see BackendInfo::make_group_id
};

}  // namespace rbee

#pragma once
// The limits of this process's control groups (cgroup v2). A group's limit also holds for the
// groups below it, so the tightest counts: a container's own, or that of a systemd slice.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace rbee::cpu {

class ControlGroups {
 public:
  // root: the folder with proc/self/cgroup and sys/fs/cgroup.
  explicit ControlGroups(const std::filesystem::path& root = "/");

  // Processors, rounded up; 0: no limit.
  int processors() const;

  struct Memory {
    int64_t limit, free;  // bytes
  };
  // Of the group with the least memory left; absent: no limit.
  std::optional<Memory> memory() const;

 private:
  std::vector<std::filesystem::path> folders_;  // the process's own first, then those above
};

}  // namespace rbee::cpu

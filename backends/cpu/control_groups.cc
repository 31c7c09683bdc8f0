#include "backends/cpu/control_groups.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace rbee::cpu {
namespace {

namespace fs = std::filesystem;

// Of version 2 the line "0::/system.slice/a.service". A container that sees no groups but its own
// has "0::/", and one that sees the host's names does not have their folders: "/" is its own then.
fs::path own_group(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // absent, or "max"
}

}  // namespace

ControlGroups::ControlGroups(const fs::path& root) {
  fs::path group = own_group(root);
  while (!group.empty()) {
    folders_.push_back(root / "sys/fs/cgroup" / group);
    group = group.parent_path();
  }
  folders_.push_back(root / "sys/fs/cgroup");
}

int ControlGroups::processors() const {
  int least = 0;
  for (const fs::path& folder : folders_) {
    std::ifstream file(folder / "cpu.max");  // "200000 100000", or "max 100000"
    double quota = 0, period = 0;
    if (!(file >> quota >> period) || period <= 0 || quota <= 0) continue;
    const auto count = static_cast<int>(std::min(std::ceil(quota / period), 1024.0));
    least = least == 0 ? count : std::min(least, count);
  }
  return least;
}

std::optional<ControlGroups::Memory> ControlGroups::memory() const {
  std::optional<Memory> least;
  for (const fs::path& folder : folders_) {
    const std::optional<int64_t> limit = number_in(folder / "memory.max");
    const std::optional<int64_t> used = number_in(folder / "memory.current");
    if (!limit || !used) continue;
    const int64_t free = std::max<int64_t>(*limit - *used, 0);
    if (!least || free < least->free) least = Memory{.limit = *limit, .free = free};
  }
  return least;
}

}  // namespace rbee::cpu

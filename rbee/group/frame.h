#pragma once
// What goes through a group's channel: commands, whose form is their users' matter, and the end.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rbee::group {

enum class FrameKind : uint8_t {
  end,
  part,     // of a command; more follow
  command,  // all of one, or its last part
};
inline constexpr size_t kPartBytes = size_t{1} << 20;

inline std::vector<std::byte> as_frame(FrameKind kind, std::span<const std::byte> message = {}) {
  std::vector<std::byte> out;
  out.reserve(message.size() + 1);
  out.push_back(static_cast<std::byte>(kind));
  out.insert(out.end(), message.begin(), message.end());
  return out;
}

}  // namespace rbee::group

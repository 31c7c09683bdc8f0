#pragma once
// The socket between the leader and another rank: agreement at the start, signs of life, and the
// end. Commands take another way, see channel.h.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/group/shared_mapping.h"

namespace rbee::group {

// Changes with every change of a message.
inline constexpr int32_t kProtocol = 1;

// What must be the same on all ranks.
struct Identity {
  int32_t protocol = kProtocol;
  std::string build;  // the program and its version
  std::string model;  // a digest of what its files say
  std::string flags;  // those that change what a rank computes
  std::string device;

  bool operator==(const Identity&) const = default;
};

// The leader's first message: what the rank is to load.
struct LinkModel {
  std::string path;
};
// The rank's answer.
struct LinkHello {
  int32_t rank = 0;
  Identity identity;
};
// The leader agrees. It comes with the descriptors of the channel and of what the group shares.
struct LinkWelcome {};
// Something to show that the sender lives.
struct LinkBeat {};
// The rank has loaded its part.
struct LinkLoaded {
  int64_t weight_bytes = 0;
  int64_t cache_token_bytes = 0;  // of the cache, for each token
};
// The rank cannot go on.
struct LinkFailed {
  Code code = Code::internal;
  std::string why;
};
using LinkMessage =
    std::variant<LinkModel, LinkHello, LinkWelcome, LinkBeat, LinkLoaded, LinkFailed>;

std::vector<std::byte> encode_link(const LinkMessage& message);
// Throws invalid_argument.
LinkMessage decode_link(std::span<const std::byte> message);

// One end. send() may run beside the others.
class RankLink {
 public:
  RankLink() = default;
  explicit RankLink(Descriptor socket) : socket_(std::move(socket)) {}
  // The two ends of a new one. Throws io.
  static std::pair<RankLink, RankLink> pair();

  int descriptor() const { return socket_.get(); }
  // Does not wait: a message for which the other side has no room is dropped, as is one after its
  // end. False then.
  bool send(const LinkMessage& message, std::span<const int> descriptors = {}) const;
  // A message that is there; nothing: none is. Puts its descriptors at the end of `to`, if given.
  // Throws device if the other side has ended.
  std::optional<LinkMessage> receive(std::vector<Descriptor>* to = nullptr) const;
  // Waits for a message or the end of the other side, at most `patience`. False: neither came.
  bool wait(std::chrono::milliseconds patience) const;
  // The process that made the other end; 0: unknown.
  int peer() const;

 private:
  Descriptor socket_;
};

}  // namespace rbee::group

#pragma once
// The socket between the leader and another rank: agreement at the start, signs of life, and the
// end. Ranks that the leader has started get their commands another way, see channel.h; others get
// them here.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/group/shared_mapping.h"

namespace rbee::group {

// Changes with every change of a message.
inline constexpr int32_t kProtocol = 2;

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
  std::string machine = {};  // see this_machine()
};
// The leader agrees. To a rank that it has started it comes with the descriptors of the channel and
// of what the group shares.
struct LinkWelcome {
  // Where others get what the group shares, see MemoryDoor; empty: nothing.
  std::string memory = {};
  std::string comm_id = {};  // bytes that the ranks' devices need to meet; empty: they need none
};
// Something to show that the sender lives.
struct LinkBeat {};
// The rank has loaded its part.
struct LinkLoaded {
  int64_t weight_bytes = 0;
  int64_t cache_token_bytes = 0;  // of the cache, for each token
  int64_t free_bytes = 0;         // of its device, for the cache and steps
};
// The rank cannot go on.
struct LinkFailed {
  Code code = Code::internal;
  std::string why;
};
// A frame of a command, see frame.h.
struct LinkCommand {
  std::vector<std::byte> frame;
};
// So many frames are done, since the start.
struct LinkDone {
  uint64_t frames = 0;
};
using LinkMessage = std::variant<LinkModel, LinkHello, LinkWelcome, LinkBeat, LinkLoaded,
                                 LinkFailed, LinkCommand, LinkDone>;

std::vector<std::byte> encode_link(const LinkMessage& message);
// Throws invalid_argument.
LinkMessage decode_link(std::span<const std::byte> message);

// One end. send() may run beside the others, and beside itself.
class RankLink {
 public:
  RankLink() = default;
  // A socket that keeps messages apart.
  explicit RankLink(Descriptor socket) : socket_(std::move(socket)) {}
  // The two ends of a new one. Throws io.
  static std::pair<RankLink, RankLink> pair();
  // A connection that carries bytes, as TCP's: each message comes behind its length.
  static RankLink of_stream(Descriptor socket);

  int descriptor() const { return socket_.get(); }
  // A message for which the other side has no room is dropped, as is one after its end: false then.
  // On a stream only a beat is dropped; others wait for room, some seconds at most, after which the
  // connection ends.
  bool send(const LinkMessage& message, std::span<const int> descriptors = {}) const;
  // A message that is there; nothing: none is. Puts its descriptors at the end of `to`, if given.
  // Throws device if the other side has ended, and invalid_argument for what is no message.
  std::optional<LinkMessage> receive(std::vector<Descriptor>* to = nullptr) const;
  // Waits for a message or the end of the other side, at most `patience`. False: neither came.
  bool wait(std::chrono::milliseconds patience) const;
  // The process that made the other end; 0: unknown.
  int peer() const;
  // Both sides find that the other has ended. Thread-safe.
  void close() const;

 private:
  struct Stream;
  struct StreamEnd {
    void operator()(Stream* stream) const;
  };

  bool send_on_stream(std::span<const std::byte> message, bool may_drop) const;
  std::optional<LinkMessage> receive_from_stream() const;

  Descriptor socket_;
  std::unique_ptr<Stream, StreamEnd> stream_;  // null: messages are kept apart
};

}  // namespace rbee::group

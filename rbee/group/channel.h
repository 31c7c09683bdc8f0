#pragma once
// Messages from one writer to all readers, of one machine: a ring in shared memory. Waiting spins
// for a few microseconds and then sleeps. Every reader gets every message, in the order of writing.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rbee/group/shared_mapping.h"

namespace rbee::group {

inline constexpr size_t kRingBytes = size_t{4} << 20;
inline constexpr size_t kMostMessageBytes = kRingBytes / 2;
// The writer waits while a reader has this many messages before it that it has not done yet.
inline constexpr uint64_t kMostAhead = 4;

struct ChannelHeader;

// One side of a channel. Not thread-safe but for end() and ended().
class ChannelSide {
 public:
  ChannelSide(const ChannelSide&) = delete;
  ChannelSide& operator=(const ChannelSide&) = delete;

  // All waits of both sides end with an error, in all processes, from now on.
  void end();
  bool ended() const;

 protected:
  ChannelSide() = default;
  ~ChannelSide() = default;

  ChannelHeader* header_ = nullptr;
  std::byte* ring_ = nullptr;
};

class ChannelWriter : public ChannelSide {
 public:
  // readers: 1 to kMostRanks - 1. limit: of one wait for the readers. Throws io.
  ChannelWriter(int readers, std::chrono::milliseconds limit);

  void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }
  // For the readers' processes.
  int descriptor() const { return memory_.descriptor(); }
  // Waits until no reader is too far behind. Throws invalid_argument for an empty message and for
  // one above kMostMessageBytes, and device if a reader has done nothing for the limit (naming its
  // rank) or the channel was ended.
  void write(std::span<const std::byte> message);
  // Waits until all readers have done all messages. Throws device as write().
  void finish();

  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }          // of all messages
  double waited_seconds() const { return waited_; }  // for readers

 private:
  // Until no reader has more than `messages` undone and the ring has this much room.
  void wait(uint64_t messages, size_t bytes);
  // The first reader that is behind; -1: none.
  int behind(uint64_t messages, size_t bytes) const;

  SharedMapping memory_;
  const int readers_;
  std::chrono::milliseconds limit_;
  uint64_t messages_ = 0, bytes_ = 0;
  double waited_ = 0;
};

class ChannelReader : public ChannelSide {
 public:
  // reader: 0 to readers - 1; the descriptor is the caller's and may be closed then. Throws io, and
  // invalid_argument if the memory is no such channel.
  ChannelReader(int descriptor, int reader);

  // Waits for the next message, which counts as done when the next one is asked for. Throws device
  // if the channel was ended, and internal if the ring holds no message.
  std::vector<std::byte> read();
  // The last message is done.
  void done();

 private:
  SharedMapping memory_;
  const int reader_;
  uint64_t read_ = 0;
  bool undone_ = false;
};

}  // namespace rbee::group

#pragma once
// What the KV cache of an engine holds, as vLLM's KV events (vllm/distributed/kv_events.py). A
// router reads them to send a prompt to the worker that has its beginning.

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::engine {

// A block's text: the SHA-256 of the hash before it, its tokens and what else its keys depend on.
using BlockHash = std::array<uint8_t, 32>;

enum class KvMedium : uint8_t { device, host };

struct KvEvent {
  enum class Kind : uint8_t { stored, removed };

  Kind kind = Kind::stored;
  KvMedium medium = KvMedium::device;
  // Of one text, each the parent of the next, if they were stored.
  std::vector<BlockHash> hashes = {};
  // Only of stored blocks.
  std::optional<BlockHash> parent = {};  // of the first block; nothing: it begins the text
  std::vector<int32_t> tokens = {};      // of all blocks
  int64_t block_size = 0;
  std::string lora = {};  // the adapters' names; empty: none
};

// Events of one step of the engine.
struct KvEventBatch {
  uint64_t sequence = 0;  // 0, 1, 2, ...
  double time = 0;        // seconds since 1970
  std::vector<KvEvent> events;
};
using KvEventBatchPtr = std::shared_ptr<const KvEventBatch>;

// The last batches. Each reader goes on at its own pace, and add() never waits for one.
// Thread-safe.
class KvEventLog {
 public:
  // batches: most that are kept, at least 1.
  explicit KvEventLog(size_t batches);

  // Does nothing without events.
  void add(std::vector<KvEvent> events);
  // At most `most` batches from this number on, the oldest first; dropped ones are left out.
  std::vector<KvEventBatchPtr> from(uint64_t sequence, size_t most) const;
  // The next batch's number.
  uint64_t end() const;
  // Waits until that batch is there, or the time is over, or close().
  void wait(uint64_t sequence, std::chrono::milliseconds time) const;
  // Ends all waits, now and later.
  void close();
  bool closed() const;

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<KvEventBatchPtr> batches_;
  uint64_t next_ = 0;
  bool closed_ = false;
};

}  // namespace rbee::engine

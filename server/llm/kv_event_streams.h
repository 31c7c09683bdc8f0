#pragma once
// Streams of what the KV cache holds, for routers (GET /kv-events). One thread feeds all of them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rbee/engine/api/kv_events.h"
#include "server/http/mailbox.h"

namespace rbee::server {

// {"seq", "ts", "events": [..]}, see named_fields().
std::string kv_batch_json(const engine::KvEventBatch& batch);

class KvEventStreams {
 public:
  // leaving: whether the worker takes no more work; all streams then end. Called on a thread of its
  // own.
  KvEventStreams(std::shared_ptr<const engine::KvEventLog> log, std::function<bool()> leaving);
  ~KvEventStreams();
  KvEventStreams(const KvEventStreams&) = delete;
  KvEventStreams& operator=(const KvEventStreams&) = delete;

  // A stream of the batches from this number on, of those that are still there. If some are not,
  // {"lost": {"from", "to"}} comes in their place, with `to` not among them. A client that reads
  // slowly is later told of more, or loses some.
  std::shared_ptr<EventQueue> open(uint64_t from, StreamForm form);

 private:
  struct Stream {
    std::shared_ptr<EventQueue> events;
    std::shared_ptr<std::atomic<bool>> left;  // the client has
    uint64_t next;                            // batch
  };

  void run();
  // Gives the stream what is there, until too much waits for its client.
  void feed(Stream& stream) const;

  const std::shared_ptr<const engine::KvEventLog> log_;
  const std::function<bool()> leaving_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards what follows
  std::vector<Stream> streams_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace rbee::server

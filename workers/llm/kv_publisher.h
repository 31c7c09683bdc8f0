#pragma once
// Publishes an engine's KV events as vLLM does: a PUB socket of ZeroMQ with messages of three
// parts, the topic, the batch's number (8 bytes, big-endian) and the batch in msgpack; and a ROUTER
// socket that sends past batches again. libzmq is opened when a worker publishes; no other needs
// it.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "rbee/engine/api/kv_events.h"

namespace rbee::workers {

// vLLM's --kv-events-config.
struct KvEventsConfig {
  bool enabled = false;   // enable_kv_cache_events
  std::string publisher;  // zmq, or null: only GET /kv-events has the events
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint;    // empty: none
  int32_t buffer_steps = 10'000;  // batches that are kept for readers
  int32_t hwm = 100'000;          // batches that wait for one subscriber, until it loses some
  std::string topic;

  bool publishes() const { return enabled && publisher == "zmq"; }
};

// From JSON. Throws invalid_argument naming the field and its range; vLLM's max_queue_size is
// accepted and means nothing, since nothing waits for the publisher.
KvEventsConfig parse_kv_events_config(std::string_view json);

// Throws unsupported, naming the library, without libzmq.
void require_zmq();

class KvPublisher {
 public:
  // Throws as require_zmq(), and io naming the endpoint that cannot be used.
  KvPublisher(const KvEventsConfig& config, std::shared_ptr<const engine::KvEventLog> log);
  ~KvPublisher();
  KvPublisher(const KvPublisher&) = delete;
  KvPublisher& operator=(const KvPublisher&) = delete;

 private:
  class Sockets;

  void run();

  const std::string topic_;
  const std::shared_ptr<const engine::KvEventLog> log_;
  const std::unique_ptr<Sockets> sockets_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace rbee::workers

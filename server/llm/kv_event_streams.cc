#include "server/llm/kv_event_streams.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/wire/kv_event_fields.h"

namespace rbee::server {
namespace {

// Bytes that may wait for a client before its stream gets no more of them.
constexpr size_t kMostWaiting = size_t{1} << 20;
constexpr size_t kBatchesAtOnce = 64;
// How long until the thread looks whether slow clients have read, or the worker ends.
constexpr std::chrono::milliseconds kPause{200};

}  // namespace

std::string kv_batch_json(const engine::KvEventBatch& batch) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const engine::KvEvent& event : batch.events) events.push_back(named_fields(event));
  return nlohmann::ordered_json{
      {"seq", batch.sequence}, {"ts", batch.time}, {"events", std::move(events)}}
      .dump();
}

KvEventStreams::KvEventStreams(std::shared_ptr<const engine::KvEventLog> log,
                               std::function<bool()> leaving)
    : log_(std::move(log)), leaving_(std::move(leaving)), thread_([this] { run(); }) {}

KvEventStreams::~KvEventStreams() {
  stopping_ = true;
  thread_.join();
}

std::shared_ptr<EventQueue> KvEventStreams::open(uint64_t from, StreamForm form) {
  const auto left = std::make_shared<std::atomic<bool>>(false);
  auto events = std::make_shared<EventQueue>([left] { *left = true; });
  events->set_form(form);
  const std::scoped_lock lock(mutex_);
  if (ended_) {
    events->close();
    return events;
  }
  Stream& stream = streams_.emplace_back(Stream{.events = events, .left = left, .next = from});
  feed(stream);
  return events;
}

void KvEventStreams::feed(Stream& stream) const {
  while (stream.events->waiting_bytes() < kMostWaiting) {
    const auto batches = log_->from(stream.next, kBatchesAtOnce);
    if (batches.empty()) return;
    const uint64_t first = batches.front()->sequence;
    if (first > stream.next) {
      stream.events->push_data(
          nlohmann::ordered_json{{"lost", {{"from", stream.next}, {"to", first}}}}.dump());
    }
    for (const auto& batch : batches) stream.events->push_data(kv_batch_json(*batch));
    stream.next = batches.back()->sequence + 1;
  }
}

void KvEventStreams::run() {
  uint64_t seen = 0;
  while (!stopping_ && !log_->closed() && !leaving_()) {
    log_->wait(seen, kPause);
    seen = log_->end();
    const std::scoped_lock lock(mutex_);
    std::erase_if(streams_, [](const Stream& stream) { return stream.left->load(); });
    for (Stream& stream : streams_) feed(stream);
  }
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  for (const Stream& stream : streams_) stream.events->close();
  streams_.clear();
}

}  // namespace rbee::server

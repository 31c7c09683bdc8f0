#pragma once
// A response that is made in the background, whoever waits for it. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/mailbox.h"

namespace rbee::server {

class LiveResponse : public std::enable_shared_from_this<LiveResponse> {
 public:
  // job: the engine's name of it. most_bytes: of events that are kept for readers; 0: none are.
  LiveResponse(std::string id, std::string job, size_t most_bytes)
      : id_(std::move(id)), job_(std::move(job)), most_bytes_(most_bytes) {}

  const std::string& id() const { return id_; }
  const std::string& job() const { return job_; }
  // JSON of the response as it is now.
  std::string object() const;
  void set_object(std::string json);
  // True for the first caller alone, who says how it ends: its answer, an error, or a client that
  // cancels it.
  bool settle();
  // Adds the event whose number is the count of those before it. Ignored after end().
  void push(std::string_view name, std::string_view payload);
  void end();

  // Its events, or those that came first, are kept. Events beyond the bytes end that.
  bool readable() const;
  // The events after this number (-1: all), also those to come. Null: too many read it, or it is
  // not readable.
  std::shared_ptr<EventQueue> read(int64_t after);
  size_t bytes() const;  // of the events

 private:
  void forget(const EventQueue* reader);

  const std::string id_, job_;
  const size_t most_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::string object_;
  std::vector<std::string> events_;  // in wire form
  size_t bytes_ = 0;                 // of them
  bool settled_ = false, ended_ = false;
  bool overflowed_ = false;
  std::vector<std::shared_ptr<EventQueue>> readers_;
};

}  // namespace rbee::server

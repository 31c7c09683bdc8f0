#pragma once
// What a producer's thread and a connection share. Producers never wait for the client: what it
// has not read yet stays here.

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

class Mailbox {
 public:
  // on_abandon: called once, on the connection's thread, when the client leaves too early.
  explicit Mailbox(std::function<void()> on_abandon) : on_abandon_(std::move(on_abandon)) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // The connection's side. `wake` is called on the producer's thread, under the mailbox's lock,
  // when there is something new after an empty take(); after detach() it is not called again.
  void attach(std::function<void()> wake);
  void detach();
  void abandon();

 protected:
  ~Mailbox() = default;
  void wake_locked();

  std::mutex mutex_;
  bool starved_ = false;    // the last take() found nothing
  bool abandoned_ = false;  // the client has left

 private:
  std::function<void()> wake_;
  std::function<void()> on_abandon_;
};

// Text of an event stream, first in, first out.
class EventQueue : public Mailbox {
 public:
  using Mailbox::Mailbox;

  // Adds one event with this payload, which holds no line break. Dropped after close().
  void push_data(std::string_view payload);
  // The same under a name, which holds no line break either.
  void push_event(std::string_view name, std::string_view payload);
  // Adds whole events as they are sent, each with the empty line behind it. Dropped after close().
  void push_text(std::string_view events);
  void close();
  // As close(), but the client sees its connection break off: the stream has no proper end.
  void fail();

  struct Piece {
    std::string text;     // whole events; empty when there is nothing now
    bool last = false;    // nothing follows
    bool broken = false;  // of the last: because of fail()
  };
  // At most about `max_bytes`, but at least one event when there is any.
  Piece take(size_t max_bytes);

 private:
  std::string pending_;
  size_t taken_ = 0;  // leading bytes of pending_ that are gone
  bool closed_ = false;
  bool failed_ = false;
};

// A response that is not known yet. One that has come, or comes later, is abandoned with it.
class DelayedResponse : public Mailbox {
 public:
  using Mailbox::Mailbox;

  void abandon();
  void set(Response response);
  std::optional<Response> take();

 private:
  std::optional<Response> response_;
};

}  // namespace rbee::server

#pragma once
// Shared by a producer's thread and a connection. Producers never wait for the client: data that
// the client has not read yet stays here.

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

class Mailbox {
 public:
  // on_abandon: called once, on the connection's thread, if the client leaves too early.
  explicit Mailbox(std::function<void()> on_abandon) : on_abandon_(std::move(on_abandon)) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // For the connection. The producer's thread calls `wake`, with the mailbox locked, when data
  // arrives after an empty take(); never after detach().
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

// How a stream writes its events.
enum class StreamForm : uint8_t {
  events,  // server-sent events: text/event-stream
  lines,   // JSON on a line each: application/x-ndjson
};
inline constexpr std::string_view kEventStreamType = "text/event-stream";
inline constexpr std::string_view kLineStreamType = "application/x-ndjson";
// Nothing for types that no stream has.
std::optional<StreamForm> stream_form(std::string_view content_type);
// What ends an event: an empty line, or the line's own end.
std::string_view end_of_event(StreamForm form);

// Text of a stream, first in, first out.
class EventQueue : public Mailbox {
 public:
  using Mailbox::Mailbox;

  // Before anything is added; without it the form is `events`.
  void set_form(StreamForm form) { form_ = form; }
  StreamForm form() const { return form_; }
  // Adds one event with this payload, which must hold no line break. Ignored after close().
  void push_data(std::string_view payload);
  // The same with an event name, which must hold no line break either. For the form `events`.
  void push_event(std::string_view name, std::string payload);
  // Adds whole events in wire form, each with its end. Ignored after close().
  void push_text(std::string_view events);
  void close();
  // Bytes that the connection has not taken.
  size_t waiting_bytes();
  // As close(), but the connection breaks off, so that the client sees an improper end.
  void fail();

  struct Piece {
    std::string text;     // empty if there is nothing now
    bool last = false;    // nothing follows
    bool broken = false;  // of the last piece: after fail()
  };
  // Whole events of at most `max_bytes` together, or one; an event above 64 KiB comes in parts of
  // at most `max_bytes`, so that a large one is held once.
  Piece take(size_t max_bytes);

 private:
  StreamForm form_ = StreamForm::events;
  std::deque<std::string> pending_;  // a push each, or a large event's head, payload and end
  size_t taken_ = 0;                 // leading bytes of the first already taken
  bool closed_ = false;
  bool failed_ = false;
};

// A response that comes later. abandon() also abandons the events of the response, now or later.
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

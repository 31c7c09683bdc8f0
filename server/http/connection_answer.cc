// The part of a connection that answers.

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/http/admission.h"
#include "server/http/cors.h"
#include "server/http/http_connection.h"
#include "server/http/request_span.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Most bytes of one write: a slow client must read them within write_timeout.
constexpr size_t kPieceBytes = 16 * 1024;
// How long a client may still send after a response that ends the connection. If the server closed
// at once, the client's system would drop the response (RFC 9112 section 9.6).
constexpr milliseconds kLinger{1000};

}  // namespace

// Answers and ends the connection, even if the client has more to send.
void HttpConnection::reject(const Response& response) {
  keep_alive_ = false;
  drop_file();
  if (request_.request_id.empty()) name_request(request_);  // its head could not be read
  write_response(response);
}

void HttpConnection::respond(Response response) {
  if (response.later) {
    state_ = State::waiting;
    later_ = std::move(response.later);
    later_->attach(make_wake());
    read_more();
    return on_wake();
  }
  if (response.events) return start_events(response);
  write_response(std::move(response));
}

std::string HttpConnection::head_of(const Response& response) const {
  return serialize_head(response, request_,
                        {.http_1_0 = http_1_0_,
                         .keep_alive = keep_alive_,
                         .server = options().name,
                         .origin = allowed_origin(request_, options().cors_origins)});
}

void HttpConnection::write_response(Response response) {
  state_ = State::answering;
  status_ = response.status;
  reason_ = refusal_reason(response);
  keep_alive_ = keep_alive_ && !finishing_ && !context_.stopping;
  output_ = head_of(response);
  if (request_.method != "HEAD") body_ = std::move(response.body);
  if (body_.size() <= kPieceBytes) output_ += std::exchange(body_, {});
  write(&HttpConnection::end_of_response);
}

void HttpConnection::start_events(const Response& response) {
  state_ = State::waiting;
  status_ = response.status;
  reason_ = {};
  keep_alive_ = keep_alive_ && !http_1_0_ && !finishing_ && !context_.stopping;
  events_ = response.events;
  const bool head_only = request_.method == "HEAD";
  if (head_only) release_mailbox();
  output_ = head_of(response);
  if (events_) events_->attach(make_wake());
  write(head_only ? &HttpConnection::end_of_response : &HttpConnection::pump);
  if (events_) read_more();
}

// Producers call it on their threads.
std::function<void()> HttpConnection::make_wake() {
  return [weak = weak_from_this(), executor = transport_->socket().get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->on_wake();
    });
  };
}

void HttpConnection::on_wake() {
  if (state_ != State::waiting || writing_) return;
  later_ ? on_later() : pump();
}

void HttpConnection::on_later() {
  std::optional<Response> response = later_->take();
  if (!response) return;
  later_->detach();
  later_.reset();
  respond(std::move(*response));
}

void HttpConnection::pump() {
  const EventQueue::Piece piece = events_->take(kPieceBytes);
  if (piece.text.empty() && !piece.last) {
    if (probe_due_) return write_comment();
    return arm(options().comment_interval, &HttpConnection::write_comment);
  }
  probe_due_ = false;
  output_ = http_1_0_ || piece.text.empty() ? piece.text : chunk(piece.text);
  if (piece.last) {
    events_->detach();
    events_.reset();
    if (piece.broken) return write(&HttpConnection::close);
    if (!http_1_0_) output_ += chunk({});
  }
  write(piece.last ? &HttpConnection::end_of_response : &HttpConnection::pump);
}

// Keeps proxies from closing a silent stream. A line of JSON may begin with a space.
void HttpConnection::write_comment() {
  const std::string comment = events_->form() == StreamForm::lines ? " " : ": keep-alive\n\n";
  probe_due_ = false;
  output_ = http_1_0_ ? comment : chunk(comment);
  write(&HttpConnection::pump);
}

// Writes output_ from `at` on, then calls `then`.
void HttpConnection::write(Step then, size_t at) {
  writing_ = true;
  const size_t size = std::min(output_.size() - at, kPieceBytes);
  arm(options().write_timeout, &HttpConnection::close);
  transport_->write(
      asio::buffer(output_.data() + at, size),
      [self = shared_from_this(), end = at + size, then](const error_code& error, size_t) {
        if (self->state_ == State::closed) return;
        if (error) return self->close();
        if (end < self->output_.size()) return self->write(then, end);
        self->writing_ = false;
        ((*self).*then)();
      });
}

void HttpConnection::end_of_response() {
  output_ = std::exchange(body_, {});
  if (!output_.empty()) return write(&HttpConnection::end_of_response);
  output_.shrink_to_fit();  // of a large picture, while the client stays
  note_request(status_);
  if (!keep_alive_ || finishing_ || context_.stopping) return linger();
  if (!has_begun()) return next_request();
  context_.turns->add(transport_->socket().get_executor(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->state_ != State::closed) self->next_request();
  });
}

void HttpConnection::linger() {
  state_ = State::lingering;
  arm(kLinger, &HttpConnection::close);
  transport_->finish([self = shared_from_this()](const error_code& error) {
    if (self->state_ == State::closed) return;
    if (error || !self->transport_->half_closes()) return self->close();
    self->read_more();
  });
}

void HttpConnection::note_request(int status) {
  log_request(request_, status, reason_, steady_clock::now() - started_);
  record_request_span(
      request_,
      {.route = route_, .status = status, .begin = started_, .tls = context_.tls != nullptr});
}

}  // namespace rbee::server

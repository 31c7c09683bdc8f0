#include "server/http/connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cctype>
#include <utility>

#include "rbee/core/cat.h"
#include "server/http/admission.h"
#include "server/http/error_form.h"
#include "server/http/http_connection.h"
#include "server/http/request_span.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Most empty lines before a request. Some clients send one after a body.
constexpr int kMostEmptyLines = 8;

}  // namespace

HttpConnection::HttpConnection(std::unique_ptr<Transport> transport,
                               const ConnectionContext& context)
    : context_(context),
      transport_(std::move(transport)),
      timer_(transport_->socket().get_executor()) {
  error_code ignored;
  transport_->socket().set_option(tcp::no_delay(true), ignored);
  const auto peer = transport_->socket().remote_endpoint(ignored);
  if (!ignored) remote_ = peer.address().to_string();
}

void HttpConnection::start(std::function<void()> closed) {
  closed_ = std::move(closed);
  open(&HttpConnection::first_request);
}

// header_timeout starts here, because a new client has no reason to wait before its first byte.
void HttpConnection::open(Step then) {
  arm(options().header_timeout, &HttpConnection::close);
  transport_->open([self = shared_from_this(), then](const error_code& error) {
    if (self->state_ == State::closed) return;
    if (error) return self->close();
    ((*self).*then)();
  });
}

void HttpConnection::first_request() {
  next_request();
  if (state_ == State::head) arm(options().header_timeout, &HttpConnection::on_request_timeout);
}

void HttpConnection::start_refused(std::function<void()> closed) {
  closed_ = std::move(closed);
  open(&HttpConnection::refuse);
}

void HttpConnection::refuse() {
  reject(error_response(request_, 503, {"TOO_MANY_CONNECTIONS", "Too many connections"}));
}

bool HttpConnection::busy() const {
  return state_ == State::body || state_ == State::answering || state_ == State::waiting;
}

void HttpConnection::finish() {
  finishing_ = true;
  if (state_ == State::head) return close();
  if (state_ == State::body && !writing_) {
    reject(error_response(request_, 503, {"STOPPING", "The server is stopping"}));
  }
}

void HttpConnection::close() {
  if (state_ == State::closed) return;
  const bool unanswered = state_ == State::answering || state_ == State::waiting;
  state_ = State::closed;
  if (unanswered) note_request(499);
  disarm();
  transport_->close();
  release_mailbox();
  drop_file();
  if (closed_) closed_();
}

// Tells the producer of an unfinished response that the client is gone.
void HttpConnection::release_mailbox() {
  if (events_) events_->abandon();
  if (later_) later_->abandon();
  events_.reset();
  later_.reset();
}

void HttpConnection::arm(milliseconds delay, Step step) {
  const uint64_t epoch = ++timer_epoch_;
  timer_.expires_after(delay);
  timer_.async_wait([self = shared_from_this(), epoch, step](const error_code&) {
    if (epoch == self->timer_epoch_) ((*self).*step)();
  });
}

void HttpConnection::disarm() {
  ++timer_epoch_;
  timer_.cancel();
}

void HttpConnection::next_request() {
  if (finishing_ || context_.stopping) return close();
  state_ = State::head;
  drop_file();
  request_ = {};
  request_.remote = remote_;
  route_ = nullptr;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(options().max_header_bytes));
  parser_->body_limit(boost::none);  // limit_body() sets it, when the route is known
  started_ = steady_clock::now();
  empty_lines_ = 0;
  if (has_begun()) {
    arm(options().header_timeout, &HttpConnection::on_request_timeout);
    parse();
  } else {
    arm(options().idle_timeout, &HttpConnection::close);
    read_more();
  }
}

// Skips empty lines before a request (RFC 9112 section 2.2). False if nothing follows them yet.
bool HttpConnection::has_begun() {
  for (; empty_lines_ < kMostEmptyLines && input_.starts_with("\r\n"); ++empty_lines_) {
    input_.erase(0, 2);
  }
  return !input_.empty() && input_ != "\r";
}

void HttpConnection::read_more() {
  if (reading_) return;
  if (read_ended_) return on_no_more();
  reading_ = true;
  transport_->read_some(asio::buffer(chunk_),
                        [self = shared_from_this()](const error_code& error, size_t bytes) {
                          self->reading_ = false;
                          self->on_read(error, bytes);
                        });
}

void HttpConnection::on_read(const error_code& error, size_t bytes) {
  if (state_ == State::closed) return;
  if (error) return on_read_end(error);
  if (state_ == State::lingering) {
    if (transport_->half_closes()) read_more();
    return;
  }
  const bool idle = state_ == State::head && !parser_->got_some();
  received_ += bytes;
  input_.append(chunk_.data(), bytes);
  if (state_ == State::head || state_ == State::body) {
    if (idle) {
      if (!has_begun()) return read_more();
      started_ = steady_clock::now();
      arm(options().header_timeout, &HttpConnection::on_request_timeout);
    }
    parse();
  } else if (state_ == State::waiting && input_.size() < options().max_header_bytes) {
    read_more();  // to notice when the client leaves
  }
}

// The client closed its side, or the connection broke.
void HttpConnection::on_read_end(const error_code& error) {
  const bool half = error == asio::error::eof && transport_->half_closes();
  if (state_ == State::waiting && !half) return close();
  read_ended_ = true;
  finishing_ = finishing_ || !half;
  on_no_more();
}

void HttpConnection::on_no_more() {
  if (state_ == State::answering) return;
  if (state_ == State::waiting) return probe();
  const bool midway = state_ == State::body || (state_ == State::head && parser_->got_some());
  if (!midway) return close();
  reject(error_response(request_, 400, {"INVALID_REQUEST", "The request ended early"}));
}

// A client that closed only its sending side still waits for the answer. One that closed both looks
// the same until the server sends something: then the client's system reports the close.
void HttpConnection::probe() {
  // HTTP/1.0 allows nothing before a response.
  if (later_ && http_1_0_) return close();
  transport_->socket().async_wait(
      tcp::socket::wait_error, [self = shared_from_this()](const error_code&) { self->close(); });
  probe_due_ = events_ != nullptr;
  if (!later_) return on_wake();
  output_ = "HTTP/1.1 100 Continue\r\n\r\n";  // any number of these may precede a response
  write(&HttpConnection::after_probe);
}

void HttpConnection::after_probe() {
  disarm();
  on_wake();
}

void HttpConnection::parse() {
  while (!parser_->is_done()) {
    if (input_.empty()) return read_more();
    error_code error;
    const size_t used = parser_->put(asio::const_buffer(input_.data(), input_.size()), error);
    input_.erase(0, used);
    if (error == http::error::need_more) return await_rest();
    if (error) return on_parse_error(error);
    if (state_ == State::head && parser_->is_header_done()) {
      state_ = State::body;
      if (!on_head()) return;
    }
    if (file_piece(false)) return write_piece();
    const auto refusal = refuse_bytes(context_, request_, parser_->get().body().bytes.size());
    if (refusal) return reject(*refusal);
  }
  if (file_piece(true)) return write_piece();
  dispatch();
}

// Waits for the rest of a head or of the text around chunks; chunk data is parsed as it comes.
void HttpConnection::await_rest() {
  if (input_.size() <= options().max_header_bytes) return read_more();
  on_parse_error(http::error::header_limit);
}

void HttpConnection::on_parse_error(const error_code& error) {
  if (error == http::error::header_limit) {
    return reject(error_response(
        request_, 431,
        {"HEADERS_TOO_LARGE", cat("Headers exceed ", options().max_header_bytes, " bytes")}));
  }
  if (error == http::error::body_limit) {
    return reject(error_response(
        request_, 413, {"PAYLOAD_TOO_LARGE", cat("The body exceeds ", max_body_, " bytes")}));
  }
  if (error == http::error::bad_version) {
    return reject(
        error_response(request_, 505, {"UNSUPPORTED_VERSION", "HTTP/1.0 and 1.1 are spoken here"}));
  }
  reject(
      error_response(request_, 400, {"INVALID_REQUEST", cat("Malformed HTTP: ", error.message())}));
}

// Fills request_ from the parsed head.
void HttpConnection::copy_head() {
  const auto& head = parser_->get();
  http_1_0_ = head.version() < 11;
  keep_alive_ = head.keep_alive();
  request_.method = std::string_view(head.method_string().data(), head.method_string().size());
  set_target(request_, {head.target().data(), head.target().size()});
  request_.errors = context_.router.error_form(request_.path);
  for (const auto& field : head) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request_.headers.emplace_back(std::move(name), field.value());
  }
  name_request(request_);
  begin_request_span(request_, options().tracer);
}

// Whether to go on reading the body.
bool HttpConnection::on_head() {
  copy_head();
  Admission admission = admit(request_, http_1_0_, context_);
  if (admission.refusal) {
    if (parser_->is_done() && !admission.last) {
      respond(std::move(*admission.refusal));
    } else {
      reject(*admission.refusal);
    }
    return false;
  }
  route_ = admission.route;
  file_ = std::move(admission.file);
  parser_->get().body().in_pieces = file_ != nullptr;
  const size_t limit = admission.max_body_bytes.value_or(options().max_body_bytes);
  if (!limit_body(file_ ? limit : std::min(limit, options().max_body_bytes))) return false;
  const size_t held = file_ ? 0 : static_cast<size_t>(parser_->content_length().value_or(0));
  admission.refusal = refuse_bytes(context_, request_, held);
  if (admission.refusal) return reject(*admission.refusal), false;
  if (!parser_->is_done() && expects_continue(request_, http_1_0_)) {
    output_ = "HTTP/1.1 100 Continue\r\n\r\n";
    write(&HttpConnection::read_body);
    return false;
  }
  await_body();
  return true;
}

// The parser does not compare a Content-Length with a limit that is set after the head.
bool HttpConnection::limit_body(size_t bytes) {
  max_body_ = bytes;
  parser_->body_limit(max_body_);
  const bool fits = parser_->content_length().value_or(0) <= max_body_;
  if (!fits) on_parse_error(http::error::body_limit);
  return fits;
}

void HttpConnection::read_body() {
  await_body();
  parse();
}

void HttpConnection::await_body() {
  received_ = 0;
  arm(options().body_timeout, &HttpConnection::on_body_timeout);
}

void HttpConnection::on_body_timeout() {
  received_ < options().least_body_bytes ? on_request_timeout() : await_body();
}

void HttpConnection::on_request_timeout() {
  if (!parser_->got_some()) return close();
  reject(error_response(request_, 408, {"REQUEST_TIMEOUT", "The request took too long to arrive"}));
}

void HttpConnection::dispatch() {
  disarm();
  std::string body = std::move(parser_->get().body().bytes);
  if (body.size() > kSmallBody) {
    return respond(run_beside(context_, *route_, request_, std::move(body)));
  }
  request_.body = std::move(body);
  request_.file = std::move(file_);
  const TraceScope scope(request_.trace);
  Response response = context_.router.run(*route_, request_);
  file_ = std::move(request_.file);
  drop_file();
  respond(std::move(response));
}

std::shared_ptr<Connection> make_connection(std::unique_ptr<Transport> transport,
                                            const ConnectionContext& context) {
  return std::make_shared<HttpConnection>(std::move(transport), context);
}

}  // namespace rbee::server

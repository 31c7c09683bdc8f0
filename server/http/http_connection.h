#pragma once
// One connection's states: connection.cc reads requests, connection_file.cc puts bodies into files,
// connection_answer.cc writes answers. Internal to these: all calls on the server's thread.

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/connection.h"
#include "server/http/mailbox.h"
#include "server/http/received_body.h"
#include "server/http/request_log.h"

namespace rbee::server {

class HttpConnection final : public Connection,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::unique_ptr<Transport> transport, const ConnectionContext& context);
  ~HttpConnection() override { release_mailbox(); }

  void start(std::function<void()> closed) override;
  void start_refused(std::function<void()> closed) override;
  bool busy() const override;
  void finish() override;
  void close() override;

 private:
  enum class State : uint8_t {
    head,       // reading a request's head, or waiting for one
    body,       // reading its body
    answering,  // writing a complete response
    waiting,    // a producer makes the response or its next event
    lingering,  // all is written; further input is dropped
    closed,
  };
  using Step = void (HttpConnection::*)();
  using Parser = boost::beast::http::request_parser<ReceivedBody>;

  const ServerOptions& options() const { return context_.options; }

  void open(Step then);
  void first_request();
  void refuse();
  void next_request();
  bool has_begun();
  void read_more();
  void on_read(const boost::system::error_code& error, size_t bytes);
  void on_read_end(const boost::system::error_code& error);
  void on_no_more();
  void probe();
  void after_probe();
  void parse();
  void await_rest();
  void on_parse_error(const boost::system::error_code& error);
  bool on_head();
  bool limit_body(size_t bytes);
  void read_body();
  void await_body();
  void on_body_timeout();
  bool file_piece(bool last);
  void write_piece();
  void on_piece(const std::optional<Response>& refusal);
  void drop_file();
  void copy_head();
  void dispatch();
  void reject(const Response& response);
  void respond(Response response);
  std::string head_of(const Response& response) const;
  void write_response(Response response);
  void start_events(const Response& response);
  void on_wake();
  void on_later();
  void pump();
  void write_comment();
  void write(Step then, size_t at = 0);
  void end_of_response();
  void linger();
  void on_request_timeout();
  void note_request(int status);
  void release_mailbox();
  std::function<void()> make_wake();
  void arm(std::chrono::milliseconds delay, Step step);
  void disarm();

  const ConnectionContext& context_;
  const std::unique_ptr<Transport> transport_;
  boost::asio::steady_timer timer_;  // the one deadline of the current state
  uint64_t timer_epoch_ = 0;         // tells an expired timer from a replaced one
  std::function<void()> closed_;
  std::string remote_;

  State state_ = State::head;
  bool reading_ = false;
  bool read_ended_ = false;  // the client sends no more
  bool probe_due_ = false;   // in an event stream: write something at once
  bool writing_ = false;
  bool finishing_ = false;  // no request after this one
  bool keep_alive_ = false;
  bool http_1_0_ = false;
  std::array<char, 8192> chunk_;
  std::string input_;    // received, not parsed yet
  int empty_lines_ = 0;  // skipped before the request
  size_t received_ = 0;  // of a body, since its deadline was set
  size_t max_body_ = 0;
  std::string output_, body_;  // the body follows the head in output_
  std::optional<Parser> parser_;
  std::shared_ptr<BodyFile> file_;  // where the body goes; null: into memory
  Request request_;
  const Route* route_ = nullptr;
  int status_ = 0;
  RefusalReason reason_;
  std::chrono::steady_clock::time_point started_;
  std::shared_ptr<EventQueue> events_;
  std::shared_ptr<DelayedResponse> later_;
};

}  // namespace rbee::server

#include "server/http/client.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <charconv>
#include <mutex>

#include "rbee/core/error.h"
#include "server/http/transport.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kMaxStatusLine = 4096;
constexpr uint16_t kTlsPort = 443;

// The number in "HTTP/1.1 200 OK"; 0 if it is not a status line.
int status_of(std::string_view line) {
  int status = 0;
  if (!line.starts_with("HTTP/1.") || line.size() < 12) return 0;
  std::from_chars(line.data() + 9, line.data() + 12, status);
  return status;
}

// One request. Each step starts the next. An error ends the chain, so `io` runs out of work. `io`
// never runs handlers that it still holds at its end.
class Attempt {
 public:
  // tls: null = plain.
  Attempt(asio::io_context& io, const Url& url, const std::shared_ptr<asio::ssl::context>& tls,
          std::string message)
      : message_(std::move(message)),
        resolver_(io),
        transport_(make_client_transport(tcp::socket(io), tls, url.host)) {
    resolver_.async_resolve(
        url.host, cat(url.port),
        [this](const error_code& error, const tcp::resolver::results_type& found) {
          if (!failed(error)) connect(found);
        });
  }
  int status() const { return status_; }  // 0: no answer
  const std::string& problem() const { return problem_; }

 private:
  void connect(const tcp::resolver::results_type& found) {
    asio::async_connect(transport_->socket(), found,
                        [this](const error_code& error, const tcp::endpoint&) {
                          if (!failed(error)) open();
                        });
  }
  void open() {
    transport_->open([this](const error_code& error) {
      if (!failed(error)) send();
    });
  }
  void send() {
    transport_->write(asio::buffer(message_), [this](const error_code& error, size_t) {
      if (!failed(error)) read();
    });
  }
  void read() {
    transport_->read_some(asio::buffer(chunk_), [this](const error_code& error, size_t bytes) {
      if (failed(error)) return;
      answer_.append(chunk_.data(), bytes);
      const bool whole = answer_.find("\r\n") != std::string::npos;
      if (!whole && answer_.size() < kMaxStatusLine) return read();
      if (whole) status_ = status_of(answer_);
      problem_ = "the answer is not HTTP";
    });
  }
  bool failed(const error_code& error) {
    if (error) problem_ = transport_->explain(error);
    return static_cast<bool>(error);
  }

  const std::string message_;
  tcp::resolver resolver_;
  const std::unique_ptr<Transport> transport_;
  std::array<char, 1024> chunk_{};
  std::string answer_;
  std::string problem_ = "no answer in time";
  int status_ = 0;
};

}  // namespace

Url parse_url(std::string_view text) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  Url url;
  url.tls = text.starts_with(kTls);
  check(url.tls || text.starts_with(kPlain), "url", "'", text,
        "' does not begin with http:// or https://");
  if (url.tls) url.port = kTlsPort;
  std::string_view rest = text.substr(url.tls ? kTls.size() : kPlain.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  std::string_view authority = rest.substr(0, slash);
  const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  check(bracket != std::string_view::npos, "url", "'", text, "' has no closing bracket");
  if (const size_t colon = authority.find(':', bracket); colon != std::string_view::npos) {
    const std::string_view port = authority.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    check(error == std::errc() && end == port.data() + port.size() && url.port != 0, "url", "'",
          text, "' has a bad port");
    authority = authority.substr(0, colon);
  }
  url.host = bracket == 0 ? authority : authority.substr(1, bracket - 1);
  const bool plain = url.host.find_first_of(" \r\n@?#") == std::string::npos &&
                     url.path.find_first_of(" \r\n?#") == std::string::npos;
  check(!url.host.empty() && plain, "url", "'", text, "' is not http[s]://host[:port][/path]");
  return url;
}

void check_certificate(const ClientTls& tls) {
  if (tls.certificate.empty()) return;
  const auto context = tls_client_context({.certificate = tls.certificate, .key = tls.key});
  warn_of_dates(*context, tls.certificate);
}

class PostClient::Impl {
 public:
  explicit Impl(PostOptions options) : options_(std::move(options)) {}
  int post(const Url& url, std::string_view path, std::string_view json,
           std::chrono::milliseconds timeout);
  void cancel();

 private:
  // Runs the work of `io` until it ends or is cancelled.
  void run(asio::io_context& io, std::chrono::milliseconds timeout);

  std::string head(const Url& url, std::string_view path, size_t body_bytes) const;

  const PostOptions options_;
  std::mutex mutex_;
  asio::io_context* running_ = nullptr;
  bool cancelled_ = false;
};

void PostClient::Impl::run(asio::io_context& io, std::chrono::milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return;
    running_ = &io;
  }
  io.run_for(timeout);
  const std::lock_guard lock(mutex_);
  running_ = nullptr;
}

void PostClient::Impl::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (running_ != nullptr) running_->stop();
}

std::string PostClient::Impl::head(const Url& url, std::string_view path, size_t body_bytes) const {
  const bool ipv6 = url.host.find(':') != std::string::npos;
  std::string head = cat("POST ", url.path, path, " HTTP/1.1\r\nHost: ", ipv6 ? "[" : "", url.host,
                         ipv6 ? "]" : "", ":", url.port,
                         "\r\nContent-Type: application/json\r\nContent-Length: ", body_bytes,
                         "\r\nConnection: close\r\n");
  for (const auto& [name, value] : options_.headers) head += cat(name, ": ", value, "\r\n");
  return head + "\r\n";
}

int PostClient::Impl::post(const Url& url, std::string_view path, std::string_view json,
                           std::chrono::milliseconds timeout) {
  const auto tls = url.tls ? tls_client_context(options_.tls) : nullptr;
  asio::io_context io(1);
  Attempt attempt(io, url, tls, cat(head(url, path, json.size()), json));
  run(io, timeout);
  if (attempt.status() == 0) {
    fail(Code::io, "post", url.host, " port ", url.port, ": ", attempt.problem());
  }
  return attempt.status();
}

PostClient::PostClient(PostOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
PostClient::~PostClient() = default;

int PostClient::post(const Url& url, std::string_view path, std::string_view json,
                     std::chrono::milliseconds timeout) {
  return impl_->post(url, path, json, timeout);
}

void PostClient::cancel() {
  impl_->cancel();
}

}  // namespace rbee::server

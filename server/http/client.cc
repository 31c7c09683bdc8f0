#include "server/http/client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <mutex>

#include "rbee/core/error.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kMaxStatusLine = 4096;

// The number in "HTTP/1.1 200 OK"; 0 when the line is no status line.
int status_of(std::string_view line) {
  int status = 0;
  if (!line.starts_with("HTTP/1.") || line.size() < 12) return 0;
  std::from_chars(line.data() + 9, line.data() + 12, status);
  return status;
}

}  // namespace

Url parse_url(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  check(text.starts_with(kScheme), "url", "'", text, "' does not begin with http://");
  std::string_view rest = text.substr(kScheme.size());
  Url url;
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
  check(!url.host.empty() && plain, "url", "'", text, "' is not http://host[:port][/path]");
  return url;
}

class PostClient::Impl {
 public:
  explicit Impl(Headers headers) : headers_(std::move(headers)) {}
  int post(const Url& url, std::string_view path, std::string_view json,
           std::chrono::milliseconds timeout);
  void cancel();

 private:
  // Runs what is queued on `io` unless, or until, cancelled.
  void run(asio::io_context& io, std::chrono::milliseconds timeout);

  std::string head(const Url& url, std::string_view path, size_t body_bytes) const;

  const Headers headers_;
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
  for (const auto& [name, value] : headers_) head += cat(name, ": ", value, "\r\n");
  return head + "\r\n";
}

int PostClient::Impl::post(const Url& url, std::string_view path, std::string_view json,
                           std::chrono::milliseconds timeout) {
  const std::string message = cat(head(url, path, json.size()), json);
  asio::io_context io(1);  // handlers that it still holds at the end are never run
  tcp::resolver resolver(io);
  tcp::socket socket(io);
  std::string answer;
  std::string problem = "no answer in time";
  int status = 0;
  // Each step starts the next; an error ends the chain, and io runs out of work.
  const auto failed = [&problem](const error_code& error) {
    if (error) problem = error.message();
    return static_cast<bool>(error);
  };
  const auto on_line = [&](const error_code& error, size_t) {
    if (failed(error)) return;
    status = status_of(answer);
    problem = "the answer is not HTTP";
  };
  const auto on_sent = [&](const error_code& error, size_t) {
    if (failed(error)) return;
    asio::async_read_until(socket, asio::dynamic_buffer(answer, kMaxStatusLine), "\r\n", on_line);
  };
  const auto on_connected = [&](const error_code& error, const tcp::endpoint&) {
    if (failed(error)) return;
    asio::async_write(socket, asio::buffer(message), on_sent);
  };
  resolver.async_resolve(url.host, cat(url.port),
                         [&](const error_code& error, const tcp::resolver::results_type& found) {
                           if (!failed(error)) asio::async_connect(socket, found, on_connected);
                         });
  run(io, timeout);
  if (status == 0) fail(Code::io, "post", url.host, " port ", url.port, ": ", problem);
  return status;
}

PostClient::PostClient(Headers headers) : impl_(std::make_unique<Impl>(std::move(headers))) {}
PostClient::~PostClient() = default;

int PostClient::post(const Url& url, std::string_view path, std::string_view json,
                     std::chrono::milliseconds timeout) {
  return impl_->post(url, path, json, timeout);
}

void PostClient::cancel() {
  impl_->cancel();
}

}  // namespace rbee::server

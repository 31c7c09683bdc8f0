#include "server/front/upstream.h"

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <limits>
#include <utility>

namespace rbee::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Headers of the connection, and those that the front itself makes (RFC 9110 section 7.6.1).
bool stays(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kOwn = {"connection",
                                                            "content-length",
                                                            "date",
                                                            "server",
                                                            "x-content-type-options",
                                                            "keep-alive",
                                                            "content-type",
                                                            "transfer-encoding",
                                                            "x-correlation-id",
                                                            "x-request-id",
                                                            "request-id"};
  return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end();
}

class TcpUpstream final : public Upstream, public std::enable_shared_from_this<TcpUpstream> {
 public:
  TcpUpstream(asio::io_context& io, UpstreamRequest request)
      : request_(std::move(request)), socket_(io) {
    parser_.header_limit(64 * 1024);
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
    parser_.eager(true);
    parser_.skip(request_.head_only);
  }

  void start() {
    socket_.async_connect({asio::ip::address_v4::loopback(), request_.port},
                          [self = shared_from_this()](const error_code& error) {
                            if (error) return self->end(UpstreamEnd::unreachable);
                            self->send();
                          });
  }
  void cancel() override {
    request_.on_end = nullptr;
    close();
  }

 private:
  void send() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    const std::array<asio::const_buffer, 2> parts{
        asio::buffer(request_.head), asio::buffer(request_.body.data(), request_.body.size())};
    asio::async_write(socket_, parts, [self = shared_from_this()](const error_code&, size_t) {
      // Read even now: a worker that refuses a request may close before it has read all of it.
      self->read();
    });
  }
  void read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](const error_code& error, size_t bytes) {
                              self->on_read(error, bytes);
                            });
  }
  void on_read(const error_code& error, size_t bytes) {
    if (!request_.on_end) return;
    input_.append(buffer_.data(), bytes);
    if (!parse()) return end(UpstreamEnd::broken);
    if (!request_.on_end) return;  // a callback cancelled it
    if (parser_.is_done()) return end(UpstreamEnd::whole);
    if (!error) return read();
    error_code problem;
    if (parser_.got_some()) parser_.put_eof(problem);
    end(parser_.is_done() && !problem ? UpstreamEnd::whole : UpstreamEnd::broken);
  }
  // False if the input is not an HTTP response.
  bool parse() {
    error_code problem;
    while (!input_.empty() && !parser_.is_done()) {
      const size_t used = parser_.put(asio::buffer(input_), problem);
      input_.erase(0, used);
      if (problem == http::error::need_more) break;
      if (problem) return false;
    }
    if (parser_.is_header_done()) forward();
    return true;
  }
  void forward() {
    if (!std::exchange(head_sent_, true)) {
      UpstreamHead head{.status = static_cast<int>(parser_.get().result_int())};
      for (const auto& field : parser_.get()) {
        std::string name(field.name_string());
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (name == "content-type") head.content_type = field.value();
        if (!stays(name)) head.headers.emplace_back(std::move(name), field.value());
      }
      request_.on_head(std::move(head));
    }
    std::string data = std::exchange(parser_.get().body(), {});
    if (!data.empty() && request_.on_end) request_.on_data(std::move(data));
  }
  void end(UpstreamEnd how) {
    close();
    const auto on_end = std::exchange(request_.on_end, nullptr);
    if (on_end) on_end(how);
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

  UpstreamRequest request_;
  tcp::socket socket_;
  http::response_parser<http::string_body> parser_;
  std::array<char, 16 * 1024> buffer_;
  std::string input_;
  bool head_sent_ = false;
};

}  // namespace

std::shared_ptr<Upstream> start_upstream(asio::io_context& io, UpstreamRequest request) {
  auto upstream = std::make_shared<TcpUpstream>(io, std::move(request));
  upstream->start();
  return upstream;
}

}  // namespace rbee::server

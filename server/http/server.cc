#include "server/http/server.h"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <thread>
#include <unordered_map>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "server/http/connection.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Connections beyond the limit that still get their 503 before they are closed.
constexpr size_t kRefusalsAtOnce = 64;
constexpr size_t kLastPlaces = 8;  // one part in this many of all connections
constexpr std::chrono::milliseconds kAcceptRetry{100};

std::string address_of(const tcp::socket& socket) {
  error_code gone;
  const tcp::endpoint peer = socket.remote_endpoint(gone);
  return gone ? "" : peer.address().to_string();
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Router router, const ApiKeys& keys, Impl* before = nullptr)
      : context_{.options = std::move(options), .router = std::move(router), .keys = keys},
        acceptor_(io_),
        timer_(io_) {
    context_.tls = read_tls();
    before != nullptr ? take_over(*before) : listen();
    const tcp::endpoint endpoint = acceptor_.local_endpoint();
    port_ = endpoint.port();
    context_.local_names_only = endpoint.address().is_loopback() && !context_.keys.enabled();
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }

  // Without memory to tell the thread to stop, the process can only end.
  ~Impl() { stop(std::chrono::milliseconds(0)); }  // NOLINT(bugprone-exception-escape)

  uint16_t port() const { return port_; }

  void set_keys(ApiKeys keys) {
    change([&] { context_.keys = std::move(keys); });
  }

  void reload_tls() {
    change([&, tls = read_tls()] { context_.tls = tls; });
  }

  bool busy() {
    bool found = false;
    change([&] {
      found =
          std::ranges::any_of(connections_, [](const auto& entry) { return entry.second->busy(); });
    });
    return found;
  }

  void stop(std::chrono::milliseconds grace) {
    if (!thread_.joinable()) return;
    asio::post(io_, [this, grace] { begin_stop(grace); });
    thread_.join();
    context_.bodies.reset();
    context_.writers.reset();
  }

 private:
  // Null if TLS is off.
  std::shared_ptr<asio::ssl::context> read_tls() const {
    const ServerOptions& options = context_.options;
    if (options.tls_certificate.empty()) return nullptr;
    return tls_context(options.tls_certificate, options.tls_key);
  }
  void listen();
  void take_over(Impl& before);
  void accept();
  void on_accept(const error_code& error, tcp::socket socket);
  bool has_place_for(const std::string& address) const;
  void begin_stop(std::chrono::milliseconds grace);
  // Runs `step` on the server's thread and waits for it.
  void change(const std::function<void()>& step);
  void forget(uint64_t id, bool refused, const std::string& address);

  ConnectionContext context_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;  // accept's retry; the grace of a stop
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections_;
  std::unordered_map<std::string, size_t> clients_;  // open connections, without those refused
  size_t refused_ = 0;                               // how many of connections_ only get a 503
  uint64_t next_id_ = 0;
  uint16_t port_ = 0;
  std::thread thread_;
};

void Server::Impl::listen() {
  const ServerOptions& options = context_.options;
  try {
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(options.host, cat(options.port), tcp::resolver::passive);
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen(asio::socket_base::max_listen_connections);
  } catch (const boost::system::system_error& error) {
    fail(Code::io, "listen", options.host, " port ", options.port, ": ", error.code().message());
  }
}

// With a second descriptor of the socket, whose queue of connections outlives the first.
void Server::Impl::take_over(Impl& before) {
  int copy = -1;
  tcp::endpoint endpoint;
  before.change([&] {
    endpoint = before.acceptor_.local_endpoint();
    copy = fcntl(before.acceptor_.native_handle(), F_DUPFD_CLOEXEC, 0);
    error_code ignored;
    if (copy >= 0) before.acceptor_.close(ignored);
  });
  if (copy < 0) fail(Code::io, "listen", "port ", endpoint.port(), ": too many open files");
  acceptor_.assign(endpoint.protocol(), copy);
}

void Server::Impl::accept() {
  if (!acceptor_.is_open()) return;  // another server has taken it over
  acceptor_.async_accept(
      [this](const error_code& error, tcp::socket socket) { on_accept(error, std::move(socket)); });
}

void Server::Impl::on_accept(const error_code& error, tcp::socket socket) {
  if (context_.stopping || (error && !acceptor_.is_open())) return;
  if (error) {
    // Usually there are too many open files; others will be closed.
    log(LogLevel::warn, "accept failed", {{"error", error.message()}});
    timer_.expires_after(kAcceptRetry);
    timer_.async_wait([this](const error_code& cancelled) {
      if (!cancelled && !context_.stopping) accept();
    });
    return;
  }
  const std::string address = address_of(socket);
  const bool refused = !has_place_for(address);
  if (!refused || refused_ < kRefusalsAtOnce) {
    const uint64_t id = next_id_++;
    const auto connection =
        make_connection(make_transport(std::move(socket), context_.tls), context_);
    connections_.emplace(id, connection);
    refused ? ++refused_ : ++clients_[address];
    const auto closed = [this, id, refused, address] { forget(id, refused, address); };
    refused ? connection->start_refused(closed) : connection->start(closed);
  }
  accept();
}

bool Server::Impl::has_place_for(const std::string& address) const {
  const size_t most = context_.options.max_connections;
  const size_t most_of_client = context_.options.max_client_connections;
  const size_t open = connections_.size() - refused_;
  const auto client = clients_.find(address);
  const size_t own = client == clients_.end() ? 0 : client->second;
  if (open >= most || (most_of_client > 0 && own >= most_of_client)) return false;
  // Addresses with few connections get the last places.
  const size_t last = most / kLastPlaces;
  return open + last < most || own < last;
}

void Server::Impl::forget(uint64_t id, bool refused, const std::string& address) {
  connections_.erase(id);
  refused ? --refused_ : --clients_[address];
  if (clients_[address] == 0) clients_.erase(address);
  if (context_.stopping && connections_.empty()) timer_.cancel();
}

void Server::Impl::change(const std::function<void()>& step) {
  std::promise<void> done;
  asio::post(io_, [&] {
    step();
    done.set_value();
  });
  done.get_future().wait();
}

void Server::Impl::begin_stop(std::chrono::milliseconds grace) {
  context_.stopping = true;
  error_code ignored;
  acceptor_.close(ignored);
  timer_.cancel();
  // A copy, because connections leave the map during the walk.
  const auto walk = [this](void (Connection::*step)()) {
    const auto connections = connections_;
    for (const auto& [id, connection] : connections) ((*connection).*step)();
  };
  walk(&Connection::finish);
  if (connections_.empty()) return;
  timer_.expires_after(grace);
  timer_.async_wait([walk](const error_code&) { walk(&Connection::close); });
}

Server::Server(ServerOptions options, Router router, const ApiKeys& keys)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(router), keys)) {}

Server::Server(ServerOptions options, Router router, const ApiKeys& keys, Server& before)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(router), keys,
                                   before.impl_.get())) {}

Server::~Server() = default;

uint16_t Server::port() const {
  return impl_->port();
}

void Server::reload_tls() {
  impl_->reload_tls();
}

void Server::set_keys(ApiKeys keys) {
  impl_->set_keys(std::move(keys));
}

bool Server::busy() const {
  return impl_->busy();
}

void Server::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}

}  // namespace rbee::server

#include "rbee/group/network.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "rbee/core/error.h"
#include "rbee/core/system/sockets.h"

namespace rbee::group {
namespace {

const sockaddr* plain(const NetAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

void set(int socket, int level, int option) {
  const int on = 1;
  setsockopt(socket, level, option, &on, sizeof on);
}

}  // namespace

bool NetAddress::loopback() const {
  if (storage.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(storage).sin_addr;
    return (ntohl(address.s_addr) >> 24) == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
}

std::string NetAddress::text() const {
  std::array<char, NI_MAXHOST> out{};
  const int told =
      getnameinfo(plain(*this), size, out.data(), out.size(), nullptr, 0, NI_NUMERICHOST);
  return told == 0 ? out.data() : "an unknown address";
}

std::vector<NetAddress> resolve(const std::string& name, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (getaddrinfo(name.c_str(), service.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::vector<NetAddress> out;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    NetAddress address{.size = at->ai_addrlen};
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    out.push_back(address);
  }
  return out;
}

bool is_number(const std::string& name) {
  std::array<std::byte, sizeof(in6_addr)> out{};
  return inet_pton(AF_INET, name.c_str(), out.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), out.data()) == 1;
}

Descriptor listen_on(const NetAddress& address) {
  Descriptor out(open_socket(address.storage.ss_family, SOCK_STREAM, 0, SocketWaits::no));
  set(out.get(), SOL_SOCKET, SO_REUSEADDR);
  if (bind(out.get(), plain(address), address.size) != 0 || listen(out.get(), SOMAXCONN) != 0) {
    fail(Code::io, "group", "the leader cannot listen on ", address.text(), ": ",
         std::strerror(errno));
  }
  return out;
}

Descriptor connect_to(const NetAddress& address, std::chrono::milliseconds patience) {
  Descriptor out(open_socket(address.storage.ss_family, SOCK_STREAM, 0, SocketWaits::no));
  if (out.get() < 0) return {};
  if (connect(out.get(), plain(address), address.size) != 0) {
    if (errno != EINPROGRESS) return {};
    pollfd wanted{.fd = out.get(), .events = POLLOUT, .revents = 0};
    if (poll(&wanted, 1, static_cast<int>(patience.count())) <= 0) return {};
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(out.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return {};
  }
  set(out.get(), IPPROTO_TCP, TCP_NODELAY);
  return out;
}

Descriptor accept_from(int listener, std::string& from) {
  NetAddress other;
  other.size = sizeof other.storage;
  Descriptor out(accept_socket(listener, reinterpret_cast<sockaddr*>(&other.storage), &other.size,
                               SocketWaits::no));
  if (out.get() < 0) return {};
  set(out.get(), IPPROTO_TCP, TCP_NODELAY);
  from = other.text();
  return out;
}

bool read_all(int socket, std::span<std::byte> to, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!to.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wanted{.fd = socket, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&wanted, 1, static_cast<int>(left.count())) == 0) return false;
    const ssize_t size = recv(socket, to.data(), to.size(), MSG_DONTWAIT);
    if (size > 0) to = to.subspan(static_cast<size_t>(size));
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) return false;
  }
  return true;
}

bool write_all(int socket, std::span<const std::byte> bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | kNoSignal) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace rbee::group

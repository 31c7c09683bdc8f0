#include "rbee/group/memory_door.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "rbee/core/hex.h"
#include "rbee/core/system/sockets.h"
#include "rbee/group/handshake.h"

namespace rbee::group {
namespace {

constexpr const char* kOp = "group";

[[noreturn]] void give_up(const char* call) {
  fail(Code::io, kOp, call, ": ", std::strerror(errno));
}

// A name that is no file: it ends with its last socket.
std::pair<sockaddr_un, socklen_t> abstract_address(const std::string& name) {
  sockaddr_un out{};
  check(!name.empty() && name.size() < sizeof out.sun_path - 1, kOp, "the name of the memory has ",
        name.size(), " bytes");
  out.sun_family = AF_UNIX;
  std::memcpy(out.sun_path + 1, name.data(), name.size());
  return {out, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

Descriptor unix_socket() {
  Descriptor out(open_socket(AF_UNIX, SOCK_SEQPACKET, 0, SocketWaits::yes));
  if (out.get() < 0) give_up("socket");
  return out;
}

}  // namespace

MemoryDoor::MemoryDoor(const std::vector<int>& descriptors) : listener_(unix_socket()) {
  const Nonce random = new_nonce();
  name_ =
      cat("rbee-group-", hex(std::span(reinterpret_cast<const unsigned char*>(random.data()), 16)));
  const auto [address, size] = abstract_address(name_);
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    give_up("bind");
  }
  if (listen(listener_.get(), SOMAXCONN) != 0) give_up("listen");
  for (const int each : descriptors) {
    descriptors_.emplace_back(fcntl(each, F_DUPFD_CLOEXEC, 0));
    if (descriptors_.back().get() < 0) give_up("F_DUPFD_CLOEXEC");
  }
}

WatchedProcess MemoryDoor::answer() const {
  Descriptor socket(accept_socket(listener_.get(), nullptr, nullptr, SocketWaits::yes));
  if (socket.get() < 0) return {};
  const std::optional<SocketPeer> peer = socket_peer(socket.get());
  if (!peer || peer->user != geteuid()) return {};
  std::vector<int> numbers;
  for (const Descriptor& each : descriptors_) numbers.push_back(each.get());
  RankLink(std::move(socket)).send(LinkWelcome{}, numbers);
  return WatchedProcess(peer->process);
}

FromDoor fetch_memory(const std::string& name, std::chrono::milliseconds patience) {
  const auto [address, size] = abstract_address(name);
  Descriptor socket = unix_socket();
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    give_up("connect to the leader's memory");
  }
  const RankLink link(std::move(socket));
  FromDoor out;
  const bool there = link.wait(patience) && link.receive(&out.descriptors);
  if (!there || out.descriptors.empty()) {
    fail(Code::device, kOp, "the leader has given no shared memory within ", patience.count(),
         " ms: ranks of one machine must be of one user");
  }
  out.leader = WatchedProcess(link.peer());
  return out;
}

}  // namespace rbee::group

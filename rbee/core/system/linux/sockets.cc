#include "rbee/core/system/sockets.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"

namespace rbee {
namespace {

int flags(SocketWaits waits) {
  return SOCK_CLOEXEC | (waits == SocketWaits::no ? SOCK_NONBLOCK : 0);
}

}  // namespace

const int kNoSignal = MSG_NOSIGNAL;
const int kReceiveCloseOnExec = MSG_CMSG_CLOEXEC;

int open_socket(int family, int type, int protocol, SocketWaits waits) {
  return socket(family, type | flags(waits), protocol);
}

bool open_socket_pair(int type, std::array<int, 2>& ends) {
  return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) == 0;
}

int accept_socket(int listener, sockaddr* from, socklen_t* size, SocketWaits waits) {
  return accept4(listener, from, size, flags(waits));
}

std::optional<SocketPeer> socket_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return SocketPeer{.process = peer.pid, .user = peer.uid};
}

std::string this_machine() {
  std::string boot = read_file("/proc/sys/kernel/random/boot_id");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  struct stat network{};
  constexpr const char* kNetwork = "/proc/self/ns/net";
  if (stat(kNetwork, &network) != 0) fail(Code::io, kNetwork, std::strerror(errno));
  return cat(boot, "/net:", network.st_ino);
}

}  // namespace rbee

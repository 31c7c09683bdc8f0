#include "rbee/core/system/sockets.h"

#include <fcntl.h>
#include <sys/sysctl.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "rbee/core/error.h"

namespace rbee {
namespace {

// macOS has no flags of socket() for these. -1 stays -1.
int prepared(int socket, SocketWaits waits) {
  if (socket < 0) return -1;
  const int on = 1;
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
  const int status = fcntl(socket, F_GETFL);
  // A socket that accept() gives has its listener's.
  fcntl(socket, F_SETFL, waits == SocketWaits::no ? status | O_NONBLOCK : status & ~O_NONBLOCK);
  return socket;
}

}  // namespace

const int kNoSignal = 0;            // SO_NOSIGPIPE above
const int kReceiveCloseOnExec = 0;  // children close what they get: close_descriptors_from()

int open_socket(int family, int type, int protocol, SocketWaits waits) {
  return prepared(socket(family, type, protocol), waits);
}

bool open_socket_pair(int type, std::array<int, 2>& ends) {
  if (socketpair(AF_UNIX, type, 0, ends.data()) != 0) return false;
  for (const int each : ends) prepared(each, SocketWaits::yes);
  return true;
}

int accept_socket(int listener, sockaddr* from, socklen_t* size, SocketWaits waits) {
  return prepared(accept(listener, from, size), waits);
}

std::optional<SocketPeer> socket_peer(int socket) {
  SocketPeer out;
  gid_t group = 0;
  if (getpeereid(socket, &out.user, &group) != 0) return std::nullopt;
  socklen_t size = sizeof out.process;
  if (getsockopt(socket, SOL_LOCAL, LOCAL_PEERPID, &out.process, &size) != 0) return std::nullopt;
  return out;
}

std::string this_machine() {
  constexpr const char* kName = "kern.bootsessionuuid";
  std::array<char, 64> out{};
  size_t size = out.size() - 1;
  if (sysctlbyname(kName, out.data(), &size, nullptr, 0) != 0) {
    fail(Code::io, kName, std::strerror(errno));
  }
  return out.data();
}

}  // namespace rbee

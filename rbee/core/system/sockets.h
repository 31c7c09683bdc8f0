#pragma once
// Sockets, where systems differ. All descriptors close at execve(). A send to a side that has ended
// gives EPIPE and no signal if its flags hold kNoSignal. One folder of sources for each system:
// linux/, macos/.

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>

namespace rbee {

enum class SocketWaits { yes, no };  // no: calls that would wait give EAGAIN

// As socket(): -1 with errno. macOS has no SOCK_SEQPACKET of AF_UNIX: EPROTONOSUPPORT.
int open_socket(int family, int type, int protocol, SocketWaits waits);
bool open_socket_pair(int type, std::array<int, 2>& ends);  // of AF_UNIX
int accept_socket(int listener, sockaddr* from, socklen_t* size, SocketWaits waits);

// Flags of send() and sendmsg(), and of recvmsg() for descriptors that arrive.
extern const int kNoSignal;
extern const int kReceiveCloseOnExec;

struct SocketPeer {
  pid_t process = 0;
  uid_t user = 0;
};
// Of a connection of AF_UNIX.
std::optional<SocketPeer> socket_peer(int socket);

// The same for two processes that sockets of AF_UNIX can join: the machine's start and, on Linux,
// the network that the process sees, since their names belong to it. Throws io.
std::string this_machine();

}  // namespace rbee

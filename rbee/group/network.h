#pragma once
// TCP sockets between ranks.

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "rbee/group/shared_mapping.h"

namespace rbee::group {

struct NetAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  bool loopback() const;
  std::string text() const;  // without a port
};

// Of a name or a number. Empty: the name is not known, perhaps not yet.
std::vector<NetAddress> resolve(const std::string& name, int port);
bool is_number(const std::string& name);  // of IPv4 or IPv6

// Throws io with the system's words.
Descriptor listen_on(const NetAddress& address);
// None: nobody listens there, or nothing came back within `patience`.
Descriptor connect_to(const NetAddress& address, std::chrono::milliseconds patience);
// A connection that waits; none: there is none. `from` gets its address. Sends without delay.
Descriptor accept_from(int listener, std::string& from);

// All bytes, within `patience`. False: the other side has ended or did not come on.
bool read_all(int socket, std::span<std::byte> to, std::chrono::milliseconds patience);
bool write_all(int socket, std::span<const std::byte> bytes);

}  // namespace rbee::group

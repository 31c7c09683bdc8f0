#pragma once
// Host names that always mean this machine, whatever a foreign name server says.

#include <string_view>

namespace rbee::server {

// True for "localhost" and for numeric loopback addresses: 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/8,
// IPv6 without brackets.
bool is_loopback_host(std::string_view host);

// The host in a Host header, without port and brackets; empty if the header is invalid.
std::string_view host_of(std::string_view header);

// True if a Host header names loopback, or `own`, the name that the server listens on. After DNS
// rebinding, a browser sends the page's own name instead.
bool names_this_machine(std::string_view header, std::string_view own);

}  // namespace rbee::server

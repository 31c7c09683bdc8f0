#pragma once
// Which host names mean this machine and cannot be made to mean it by somebody else's name server.

#include <string_view>

namespace rbee::server {

// True for "localhost" and for numeric loopback addresses: 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/8,
// IPv6 without brackets.
bool is_loopback_host(std::string_view host);

// The host in the value of a Host header, without port and brackets; empty when the value is none.
std::string_view host_of(std::string_view header);

// True when a Host header names loopback, or `own`: the name that the server listens on.
// A browser that a web page sends here under the page's own name (DNS rebinding) names another.
bool names_this_machine(std::string_view header, std::string_view own);

}  // namespace rbee::server

#pragma once
// Addresses of the web, as far as redirects and tokens need them.

#include <string>
#include <string_view>

namespace rbee::hub {

struct Origin {
  std::string scheme;  // http or https
  std::string host;    // lower case, without brackets
  int port = 0;

  bool operator==(const Origin&) const = default;
};

// Throws invalid_argument if `url` is no http or https address, or has a user's name or password.
Origin origin_of(std::string_view url);

// What a "Location" header means that an answer from `base` has.
std::string resolve_reference(std::string_view base, std::string_view location);

enum class AddressKind { open, loopback, inner };
// Of an IPv4 or IPv6 address in text: loopback, inner (private, link-local, shared, multicast,
// unspecified), or open. Other texts are names, which are open; "localhost" is loopback.
AddressKind address_kind(std::string_view host);

}  // namespace rbee::hub

#include "rbee/hub/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "rbee/core/error.h"

namespace rbee::hub {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

struct V4Block {
  uint32_t address;
  int bits;
  AddressKind kind;
};

// RFC 6890's blocks that no host of the open internet has.
constexpr V4Block kV4Blocks[] = {
    {0x7f000000, 8, AddressKind::loopback}, {0x00000000, 8, AddressKind::inner},
    {0x0a000000, 8, AddressKind::inner},    {0x64400000, 10, AddressKind::inner},
    {0xa9fe0000, 16, AddressKind::inner},   {0xac100000, 12, AddressKind::inner},
    {0xc0000000, 24, AddressKind::inner},   {0xc0a80000, 16, AddressKind::inner},
    {0xc6120000, 15, AddressKind::inner},   {0xe0000000, 3, AddressKind::inner}};

AddressKind kind_of_v4(uint32_t address) {
  for (const V4Block& block : kV4Blocks) {
    if ((address ^ block.address) >> (32 - block.bits) == 0) return block.kind;
  }
  return AddressKind::open;
}

using V6 = std::array<uint8_t, 16>;

uint32_t last_four(const V6& address) {
  return static_cast<uint32_t>(address[12]) << 24 | static_cast<uint32_t>(address[13]) << 16 |
         static_cast<uint32_t>(address[14]) << 8 | address[15];
}

AddressKind kind_of_v6(const V6& address) {
  const bool first_ten_zero =
      std::all_of(address.begin(), address.begin() + 10, [](uint8_t b) { return b == 0; });
  if (first_ten_zero && address[10] == address[11] && (address[10] == 0xff || address[10] == 0)) {
    if (address[10] == 0 && last_four(address) == 1) return AddressKind::loopback;
    return kind_of_v4(last_four(address));  // an IPv4 address within
  }
  if (address[0] == 0x00 && address[1] == 0x64 && address[2] == 0xff && address[3] == 0x9b) {
    return kind_of_v4(last_four(address));  // NAT64
  }
  const bool unique_local = (address[0] & 0xfe) == 0xfc;
  const bool link_or_site_local = address[0] == 0xfe && (address[1] & 0x80) != 0;
  const bool multicast = address[0] == 0xff;
  return unique_local || link_or_site_local || multicast ? AddressKind::inner : AddressKind::open;
}

}  // namespace

Origin origin_of(std::string_view url) {
  Origin out;
  const size_t colon = url.find("://");
  out.scheme = lower(url.substr(0, std::min(colon, url.size())));
  check(colon != std::string_view::npos && (out.scheme == "http" || out.scheme == "https"), "hub",
        "'", url, "' is no address that begins with http:// or https://");
  std::string_view rest = url.substr(colon + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  // A backslash or a user's name hides which host is meant.
  const bool plain = std::ranges::all_of(
      rest, [](char c) { return c > ' ' && c < 0x7f && c != '@' && c != '\\' && c != '%'; });
  check(plain, "hub", "'", url, "' has a user's name or odd characters before its path");
  const bool brackets = rest.starts_with('[');
  const size_t host_end = brackets ? rest.find(']') : rest.find(':');
  out.host =
      lower(rest.substr(brackets ? 1 : 0, std::min(host_end, rest.size()) - (brackets ? 1 : 0)));
  check(!out.host.empty() && !(brackets && host_end == std::string_view::npos), "hub", "'", url,
        "' names no host");
  out.port = out.scheme == "https" ? 443 : 80;
  if (host_end == std::string_view::npos) return out;
  std::string_view port = rest.substr(host_end + (brackets ? 1 : 0));
  if (port.empty()) return out;
  port.remove_prefix(1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  check(
      error == std::errc() && end == port.data() + port.size() && out.port > 0 && out.port < 65536,
      "hub", "'", url, "' has no valid port");
  return out;
}

std::string resolve_reference(std::string_view base, std::string_view location) {
  const size_t scheme = base.find("://");
  if (location.find("://") < location.find_first_of("/?#")) return std::string(location);
  if (location.starts_with("//")) return std::string(base.substr(0, scheme + 1)).append(location);
  const size_t path = base.find_first_of("/?#", scheme + 3);
  if (location.starts_with('/')) return std::string(base.substr(0, path)).append(location);
  const std::string_view before = base.substr(0, base.find_first_of("?#"));
  const size_t slash = before.rfind('/');
  if (slash < scheme + 3) return cat(before, "/", location);
  return std::string(before.substr(0, slash + 1)).append(location);
}

AddressKind address_kind(std::string_view host) {
  const std::string text = lower(host.substr(0, host.find('%')));
  if (text == "localhost" || text.ends_with(".localhost")) return AddressKind::loopback;
  in_addr v4{};
  if (inet_aton(text.c_str(), &v4) == 1) return kind_of_v4(ntohl(v4.s_addr));
  V6 v6{};
  if (inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return kind_of_v6(v6);
  return AddressKind::open;
}

}  // namespace rbee::hub

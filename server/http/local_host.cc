#include "server/http/local_host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include "server/http/message.h"

namespace rbee::server {
namespace {

bool is_port(std::string_view text) {
  return text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  if (same_text(host, "localhost")) return true;
  const std::string text(host);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

std::string_view host_of(std::string_view header) {
  const bool bracketed = header.starts_with('[');
  const size_t end = bracketed ? header.find(']') : std::min(header.find(':'), header.size());
  if (end == std::string_view::npos) return {};
  const std::string_view rest = header.substr(bracketed ? end + 1 : end);
  const bool ends_well = rest.empty() || (rest.starts_with(':') && is_port(rest.substr(1)));
  if (!ends_well) return {};
  return bracketed ? header.substr(1, end - 1) : header.substr(0, end);
}

bool names_this_machine(std::string_view header, std::string_view own) {
  const std::string_view host = host_of(header);
  return !host.empty() && (same_text(host, own) || is_loopback_host(host));
}

}  // namespace rbee::server

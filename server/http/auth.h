#pragma once
// The bearer token that a worker may ask for (RFC 6750 section 2.1).

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

class BearerAuth {
 public:
  // token: what clients must send; empty (after trimming) = everybody is let in.
  explicit BearerAuth(std::string_view token);

  bool enabled() const { return digest_.has_value(); }
  // The 401 to send, or nothing when the request may pass. Takes the same time for every wrong
  // token of a length.
  std::optional<Response> refuse(const Request& request) const;
  // First six hex digits of the token's SHA-256: the only form in which it may be logged.
  std::string fingerprint() const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view text);

  std::optional<Digest> digest_;
};

}  // namespace rbee::server

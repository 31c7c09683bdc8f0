#pragma once
// The keys of a worker: as a bearer token (RFC 6750 section 2.1), or in the header x-api-key, which
// Anthropic's clients use.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace rbee::server {

// The name of the key given at the worker's start.
inline constexpr std::string_view kOwnKey = "token";

class ApiKeys {
 public:
  // token: the key kOwnKey; empty (after trimming) = none. Without any key, every request passes.
  explicit ApiKeys(std::string_view token = {});

  // Adds the keys of a file's text, one a line: a name (1 to 64 letters, digits, '.', '_', '-'),
  // blanks, and the key itself or "sha256:" and its SHA-256 in hex. Skips empty lines and those
  // that begin with '#'. Throws invalid_argument, naming `source` and the line, also if there is no
  // key.
  void add_file(std::string_view text, std::string_view source);

  bool enabled() const { return !keys_.empty(); }
  struct Verdict {
    std::optional<Response> refusal;  // the 401 to send
    std::string name;                 // of the key; empty if no key is needed
  };
  // Takes the same time for all wrong keys of one length.
  Verdict judge(const Request& request) const;
  // "name (abc123), ...": logs may show only the first six hex digits of a key's SHA-256.
  std::string describe() const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Key {
    std::string name;
    Digest digest;
  };
  static Digest digest_of(std::string_view text);
  static Digest parse_digest(std::string_view text);
  void add(std::string_view name, const Digest& digest);

  std::vector<Key> keys_;
};

}  // namespace rbee::server

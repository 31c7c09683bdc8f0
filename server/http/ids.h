#pragma once
// Identifiers of jobs and requests.

#include <cstddef>
#include <string>
#include <string_view>

namespace rbee::server {

// A random UUID, version 4 (RFC 9562), from the operating system's cryptographic source: whoever
// knows a job's id can read its answer. Throws internal if that source fails.
std::string uuid4();

// This many random bytes from the same source, as lower-case hex. Throws internal.
std::string random_hex(size_t bytes);

// The first 10 hex digits of the text's SHA-256: distinguishes texts, but is no secret.
std::string short_digest(std::string_view text);

// 1 to 128 letters, digits, '.', '_', ':' and '-'.
bool valid_correlation_id(std::string_view id);

}  // namespace rbee::server

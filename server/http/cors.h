#pragma once
// Which web pages may read answers (Fetch standard, section 3.2).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace rbee::server {

// Whether `text` can be a browser's Origin: "https://example.com", perhaps with a port, in lower
// case and without a path, or "null" (pages from files).
bool is_origin(std::string_view text);

// The value of Access-Control-Allow-Origin for a request; empty: its page may not read the answer,
// or it has no Origin. allowed: origins such as "https://example.com"; "*" = all.
std::string allowed_origin(const Request& request, const std::vector<std::string>& allowed);

// Whether a browser's request comes from a page whose origin is neither the server's own (the one
// in Host) nor in `allowed`. For pages without an Origin header, the site header decides.
bool is_of_another_site(const Request& request, const std::vector<std::string>& allowed);

// The answer to a preflight, a browser's question whether its page may send a request. Nothing if
// the request is no preflight, or the page may not. It needs no key: browsers send none with it.
std::optional<Response> preflight(const Request& request, const std::vector<std::string>& allowed);

}  // namespace rbee::server

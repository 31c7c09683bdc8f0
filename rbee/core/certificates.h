#pragma once
// Where this system keeps the certificates of the authorities that it trusts.

#include <string>

namespace rbee {

// The value of SSL_CERT_FILE if it is set, else the first file that exists of those that Debian,
// Red Hat, SUSE, Alpine and others make; empty if there is none. `root` goes before their paths.
std::string certificate_file(const std::string& root = "");

}  // namespace rbee

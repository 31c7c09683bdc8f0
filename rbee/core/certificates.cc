#include "rbee/core/certificates.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace rbee {
namespace {

constexpr std::array kPlaces{
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, Red Hat up to 9
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Red Hat 10
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/etc/ssl/cert.pem",                                  // Alpine without ca-certificates, macOS
};

}  // namespace

std::string certificate_file(const std::string& root) {
  const char* named = std::getenv("SSL_CERT_FILE");
  if (named != nullptr && *named != '\0') return named;
  for (const char* place : kPlaces) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(root + place, ignored)) return root + place;
  }
  return "";
}

}  // namespace rbee

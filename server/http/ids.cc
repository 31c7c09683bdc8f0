#include "server/http/ids.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "rbee/core/error.h"

namespace rbee::server {

std::string uuid4() {
  std::array<unsigned char, 16> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    fail(Code::internal, "uuid4", "no random bytes");
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);  // version
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);  // variant
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += kHex[bytes[i] >> 4];
    out += kHex[bytes[i] & 15];
  }
  return out;
}

bool valid_correlation_id(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:-").find(c) != std::string_view::npos;
  };
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), allowed);
}

}  // namespace rbee::server

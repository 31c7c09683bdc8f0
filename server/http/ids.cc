#include "server/http/ids.h"

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/hex.h"

namespace rbee::server {

namespace {

void fill_randomly(unsigned char* bytes, size_t count) {
  if (RAND_bytes(bytes, static_cast<int>(count)) != 1)
    fail(Code::internal, "id", "no random bytes");
}

}  // namespace

std::string uuid4() {
  std::array<unsigned char, 16> bytes;
  fill_randomly(bytes.data(), bytes.size());
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);  // version
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);  // variant
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += hex({&bytes[i], 1});
  }
  return out;
}

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> values(bytes);
  fill_randomly(values.data(), bytes);
  return hex(values);
}

std::string short_digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return hex(std::span(digest).first(5));
}

bool valid_correlation_id(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:-").find(c) != std::string_view::npos;
  };
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), allowed);
}

}  // namespace rbee::server

#include "server/http/auth.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

namespace rbee::server {
namespace {

constexpr size_t kMaxHeaderBytes = 8192;
constexpr std::string_view kScheme = "Bearer ";

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

Response unauthorized(std::string_view code, std::string_view message) {
  Response response = error_response(401, code, message);
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

BearerAuth::BearerAuth(std::string_view token) {
  if (const std::string_view trimmed = trim(token); !trimmed.empty()) digest_ = digest(trimmed);
}

BearerAuth::Digest BearerAuth::digest(std::string_view text) {
  Digest out;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

std::optional<Response> BearerAuth::refuse(const Request& request) const {
  if (!digest_) return std::nullopt;
  const auto is_authorization = [](const auto& header) { return header.first == "authorization"; };
  const auto count =
      std::count_if(request.headers.begin(), request.headers.end(), is_authorization);
  if (count == 0) return unauthorized("MISSING_API_KEY", "Missing API key");

  const std::string_view value = request.header("authorization");
  const bool formed = count == 1 && value.size() <= kMaxHeaderBytes && value.starts_with(kScheme);
  const std::string_view token = formed ? trim(value.substr(kScheme.size())) : std::string_view{};
  const bool usable = !token.empty() && !has_control(token);
  // Digests have one length, so the comparison tells nothing of the token's.
  const Digest sent = digest(token);
  if (!usable || CRYPTO_memcmp(sent.data(), digest_->data(), sent.size()) != 0) {
    return unauthorized("INVALID_API_KEY", "Invalid or missing API key");
  }
  return std::nullopt;
}

std::string BearerAuth::fingerprint() const {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; digest_ && i < 3; ++i) {
    out += kHex[(*digest_)[i] >> 4];
    out += kHex[(*digest_)[i] & 15];
  }
  return out;
}

}  // namespace rbee::server

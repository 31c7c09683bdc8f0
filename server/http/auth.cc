#include "server/http/auth.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "rbee/core/error.h"
#include "rbee/core/hex.h"
#include "server/http/error_form.h"

namespace rbee::server {
namespace {

constexpr size_t kMaxHeaderBytes = 8192;
constexpr std::string_view kScheme = "Bearer ";
constexpr std::string_view kHashed = "sha256:";
constexpr size_t kMaxNameBytes = 64;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors begin files with it

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

Response unauthorized(const Request& request, const ErrorText& text) {
  Response response = error_response(request, 401, text);
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

// Case does not matter in a scheme (RFC 9110 section 11.1).
bool has_scheme(std::string_view value) {
  return same_text(value.substr(0, kScheme.size()), kScheme);
}

// The client's key: nothing if no header has one, empty if one is malformed.
std::optional<std::string_view> key_of(const Request& request) {
  std::optional<std::string_view> found;
  for (const auto& [name, value] : request.headers) {
    const bool bearer = name == "authorization";
    if (!bearer && name != "x-api-key") continue;
    if (found) return "";  // two keys: refuse, do not guess
    const bool formed = value.size() <= kMaxHeaderBytes && (!bearer || has_scheme(value));
    found = formed ? trim(std::string_view(value).substr(bearer ? kScheme.size() : 0)) : "";
  }
  return found;
}

bool valid_name(std::string_view name) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), plain);
}

}  // namespace

ApiKeys::ApiKeys(std::string_view token) {
  const std::string_view trimmed = trim(token);
  if (!trimmed.empty()) add(kOwnKey, digest_of(trimmed));
}

void ApiKeys::add(std::string_view name, const Digest& digest) {
  check(valid_name(name), "name", "must be 1 to ", kMaxNameBytes,
        " letters, digits, '.', '_' and '-'");
  for (const Key& key : keys_) check(key.name != name, "name", name, " is there already");
  keys_.push_back({std::string(name), digest});
}

void ApiKeys::add_file(std::string_view text, std::string_view source) {
  const size_t before = keys_.size();
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const size_t gap = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view key = trim(line.substr(gap));
    try {
      check(!key.empty() && !has_control(key), "key", "is missing, or holds control characters");
      add(line.substr(0, gap), key.starts_with(kHashed) ? parse_digest(key) : digest_of(key));
    } catch (const Error& error) {
      fail(Code::invalid_argument, "api keys", source, " line ", number, ": ", error.what());
    }
  }
  check(keys_.size() > before, "api keys", source, " holds no key");
}

ApiKeys::Digest ApiKeys::parse_digest(std::string_view text) {
  text.remove_prefix(kHashed.size());
  Digest out;
  check(text.size() == 2 * out.size(), "key", "must have 64 hex digits after ", kHashed);
  for (size_t i = 0; i < out.size(); ++i) {
    const char* pair = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(pair, pair + 2, out[i], 16);
    check(error == std::errc() && end == pair + 2, "key", "must have 64 hex digits after ",
          kHashed);
  }
  return out;
}

ApiKeys::Digest ApiKeys::digest_of(std::string_view text) {
  Digest out;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

ApiKeys::Verdict ApiKeys::judge(const Request& request) const {
  if (!enabled()) return {};
  const std::optional<std::string_view> key = key_of(request);
  if (!key)
    return {.refusal = unauthorized(request, {"MISSING_API_KEY", "Missing API key"}), .name = {}};
  // Digests have equal lengths, so timing reveals nothing about a key's length; all are compared.
  const Digest sent = digest_of(*key);
  const Key* found = nullptr;
  for (const Key& own : keys_) {
    if (CRYPTO_memcmp(sent.data(), own.digest.data(), sent.size()) == 0) found = &own;
  }
  if (key->empty() || has_control(*key) || found == nullptr) {
    return {.refusal = unauthorized(request, {"INVALID_API_KEY", "Invalid or missing API key"}),
            .name = {}};
  }
  return {.refusal = std::nullopt, .name = found->name};
}

std::string ApiKeys::describe() const {
  std::string out;
  for (const Key& key : keys_) {
    out += cat(out.empty() ? "" : ", ", key.name, " (", hex(std::span(key.digest).first(3)), ")");
  }
  return out;
}

}  // namespace rbee::server

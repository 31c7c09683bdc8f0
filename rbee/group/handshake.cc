#include "rbee/group/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::group {
namespace {

constexpr const char* kOp = "group message";
// Changes with the form of these messages.
constexpr std::string_view kMagic = "RBEEGRP1";

void check_magic(std::span<const std::byte> bytes, size_t wanted, const char* what) {
  check(bytes.size() == wanted, kOp, what, " has ", bytes.size(), " bytes, not ", wanted);
  check(std::ranges::equal(bytes.first(kMagic.size()), std::as_bytes(std::span(kMagic))), kOp, what,
        " does not begin with ", kMagic);
}

}  // namespace

Nonce new_nonce() {
  Nonce out;
  if (getentropy(out.data(), out.size()) != 0) {
    fail(Code::io, "group", "getentropy: ", std::strerror(errno));
  }
  return out;
}

std::array<std::byte, Challenge::kBytes> encode_challenge(const Challenge& challenge) {
  std::array<std::byte, Challenge::kBytes> out;
  const auto nonce = std::ranges::copy(std::as_bytes(std::span(kMagic)), out.begin()).out;
  std::ranges::copy(challenge.leader, nonce);
  return out;
}

std::array<std::byte, Answer::kBytes> encode_answer(const Answer& answer) {
  std::array<std::byte, Answer::kBytes> out;
  const auto nonce = std::ranges::copy(std::as_bytes(std::span(kMagic)), out.begin()).out;
  const auto proof = std::ranges::copy(answer.rank, nonce).out;
  std::ranges::copy(answer.proof, proof);
  return out;
}

Challenge decode_challenge(std::span<const std::byte> bytes) {
  check_magic(bytes, Challenge::kBytes, "the challenge");
  Challenge out;
  std::ranges::copy(bytes.subspan(kMagic.size()), out.leader.begin());
  return out;
}

Answer decode_answer(std::span<const std::byte> bytes) {
  check_magic(bytes, Answer::kBytes, "the answer");
  Answer out;
  std::ranges::copy(bytes.subspan(kMagic.size(), kNonceBytes), out.rank.begin());
  std::ranges::copy(bytes.subspan(kMagic.size() + kNonceBytes), out.proof.begin());
  return out;
}

Proof prove(std::string_view secret, Prover who, const Nonce& leader, const Nonce& rank) {
  std::vector<std::byte> text{static_cast<std::byte>(who)};
  text.insert(text.end(), leader.begin(), leader.end());
  text.insert(text.end(), rank.begin(), rank.end());
  Proof out;
  unsigned size = 0;
  const auto* const done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                reinterpret_cast<unsigned char*>(out.data()), &size);
  check(done != nullptr && size == out.size(), "group", "HMAC-SHA256 failed");
  return out;
}

bool same_proof(const Proof& one, const Proof& other) {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace rbee::group

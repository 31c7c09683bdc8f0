#pragma once
// How ranks that meet over a network show each other that they know the group's secret, without
// saying it: the leader's nonce goes to the rank, its nonce and proof come back, and the leader's
// proof goes to the rank. A proof is HMAC-SHA256 (RFC 2104) of who proves and both nonces.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace rbee::group {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
using Nonce = std::array<std::byte, kNonceBytes>;
using Proof = std::array<std::byte, kProofBytes>;

// Of the system's generator. Throws io.
Nonce new_nonce();

// The leader's first bytes.
struct Challenge {
  static constexpr size_t kBytes = 8 + kNonceBytes;
  Nonce leader = {};
};
// The rank's.
struct Answer {
  static constexpr size_t kBytes = 8 + kNonceBytes + kProofBytes;
  Nonce rank = {};
  Proof proof = {};
};
// The leader's last ones: all zeros where it refuses the rank.
struct Confirmation {
  static constexpr size_t kBytes = kProofBytes;
  Proof proof = {};

  bool refuses() const { return proof == Proof{}; }
};

std::array<std::byte, Challenge::kBytes> encode_challenge(const Challenge& challenge);
std::array<std::byte, Answer::kBytes> encode_answer(const Answer& answer);
// Throw invalid_argument for another size and for what is not of this program.
Challenge decode_challenge(std::span<const std::byte> bytes);
Answer decode_answer(std::span<const std::byte> bytes);

enum class Prover : bool { leader, rank };
Proof prove(std::string_view secret, Prover who, const Nonce& leader, const Nonce& rank);
// In a time that does not tell where they differ.
bool same_proof(const Proof& one, const Proof& other);

}  // namespace rbee::group

#include "rbee/diffusion/random.h"

#include <cmath>
#include <numbers>

namespace rbee::diffusion {
namespace {

constexpr size_t kBlock = 16;
constexpr size_t kHalf = kBlock / 2;

constexpr int kMiddle = 397;  // MT19937's parameters
constexpr uint32_t kTwist = 0x9908b0df;

uint32_t tempered(uint32_t word) {
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680;
  word ^= (word << 15) & 0xefc60000;
  return word ^ (word >> 18);
}

uint32_t twisted(uint32_t high, uint32_t low, uint32_t far) {
  const uint32_t mixed = (high & 0x80000000) | (low & 0x7fffffff);
  return far ^ (mixed >> 1) ^ ((mixed & 1) != 0 ? kTwist : 0);
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * counter[0];
    const uint64_t b = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

}  // namespace

TorchNormals::TorchNormals(uint64_t seed) {
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kState; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
}

void TorchNormals::refill() {
  for (int i = 0; i < kState; ++i) {
    const auto at = [&](int index) -> uint32_t& {
      return state_[static_cast<size_t>(index % kState)];
    };
    at(i) = twisted(at(i), at(i + 1), at(i + kMiddle));
  }
  at_ = 0;
}

uint32_t TorchNormals::next_word() {
  if (at_ == kState) refill();
  return tempered(state_[static_cast<size_t>(at_++)]);
}

// The first word is the high one.
double TorchNormals::next_uniform53() {
  const uint64_t high = next_word();
  const uint64_t bits = ((high << 32) | next_word()) & ((uint64_t{1} << 53) - 1);
  return static_cast<double>(bits) * 0x1p-53;
}

float TorchNormals::next_uniform24() {
  return static_cast<float>(next_word() & 0xffffff) * 0x1p-24f;
}

double TorchNormals::next_normal() {
  if (spare_) {
    const double kept = *spare_;
    spare_.reset();
    return kept;
  }
  const double angle = 2 * std::numbers::pi * next_uniform53();
  const double radius = std::sqrt(-2 * std::log1p(-next_uniform53()));
  spare_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

void TorchNormals::transform_block(std::span<float> block) {
  for (size_t i = 0; i < kHalf; ++i) {
    const float u = 1 - block[i];
    const float radius = std::sqrt(-2 * std::log(u));
    const float angle = 2 * std::numbers::pi_v<float> * block[i + kHalf];
    block[i] = radius * std::cos(angle);
    block[i + kHalf] = radius * std::sin(angle);
  }
}

void TorchNormals::fill_blocks(std::span<float> out) {
  for (float& value : out) value = next_uniform24();
  const size_t whole = out.size() / kBlock * kBlock;
  for (size_t i = 0; i < whole; i += kBlock) transform_block(out.subspan(i, kBlock));
  if (whole == out.size()) return;
  const std::span<float> last = out.last(kBlock);
  for (float& value : last) value = next_uniform24();
  transform_block(last);
}

void TorchNormals::fill(std::span<float> out) {
  if (out.size() >= kBlock) return fill_blocks(out);
  for (float& value : out) value = static_cast<float>(next_normal());
}

void PhiloxNormals::fill(std::span<float> out) {
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed_),
                                       static_cast<uint32_t>(seed_ >> 32)};
  for (size_t i = 0; i < out.size(); ++i) {
    const auto words = philox({calls_, 0, static_cast<uint32_t>(i), 0}, key);
    const double u = (words[0] + 0.5) * 0x1p-32;
    const double v = (words[1] + 0.5) * 0x1p-32;
    out[i] = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::sin(2 * std::numbers::pi * v));
  }
  ++calls_;
}

}  // namespace rbee::diffusion

#pragma once
// Moves the quants of a group from a file's block to the planes of a panel.

#include <cstdint>
#include <cstring>

#include "backends/cpu/linear/panel.h"

namespace rbee::cpu {

// The quants of one group of one row, not negative: word s is step s.
union Quants {
  uint8_t bytes[kGroup];
  uint32_t words[kSteps];
};

inline void set_word(uint8_t* step, int row, uint32_t word) {
  std::memcpy(step + 4 * row, &word, sizeof(word));
}

inline void put(NibblePlane& plane, int row, const Quants& q) {
  for (int c = 0; c < 4; ++c) {
    set_word(plane.bytes[c], row, q.words[2 * c] | q.words[2 * c + 1] << 4);
  }
}

inline void put(CrumbPlane& plane, int row, const Quants& q) {
  for (int c = 0; c < 2; ++c) {
    const uint32_t* w = q.words + 4 * c;
    set_word(plane.bytes[c], row, w[0] | w[1] << 2 | w[2] << 4 | w[3] << 6);
  }
}

inline void put(BitPlane& plane, int row, const Quants& q) {
  uint32_t word = 0;
  for (int s = 0; s < kSteps; ++s) word |= q.words[s] << s;
  set_word(plane.bytes, row, word);
}

inline void put(BytePlane& plane, int row, const Quants& q) {
  for (int s = 0; s < kSteps; ++s) {
    std::memcpy(plane.bytes[s] + 4 * row, &q.words[s], sizeof(uint32_t));
  }
}

// These move whole words, while quant_of() of quant_blocks.h gives single elements: loading a model
// packs every weight, so speed matters. Tests compare both.

// `count` bits from bit `first` of each of 32 bytes.
inline Quants bits_of(const uint8_t* bytes, int first, int count) {
  const uint32_t mask = ((1u << count) - 1) * 0x01010101u;
  Quants q;
  std::memcpy(q.bytes, bytes, sizeof(q.bytes));
  for (uint32_t& word : q.words) word = word >> first & mask;
  return q;
}

// The nibbles of the 32-element formats: elements 0-15 low, 16-31 high.
inline Quants nibbles_of(const uint8_t* qs) {
  Quants q;
  std::memcpy(q.bytes, qs, 16);
  for (int s = 0; s < 4; ++s) {
    q.words[4 + s] = q.words[s] >> 4 & 0x0f0f0f0fu;
    q.words[s] &= 0x0f0f0f0fu;
  }
  return q;
}

// Bit i of four bytes as element i.
inline Quants single_bits_of(const uint8_t* qh) {
  Quants q;
  for (int s = 0; s < kSteps; ++s) {
    const uint32_t four = qh[s / 2] >> 4 * (s % 2) & 15u;
    q.words[s] = four * 0x00204081u & 0x01010101u;  // bit i to bit 8 i
  }
  return q;
}

}  // namespace rbee::cpu

#include "rbee/grammar/token_bytes.h"

#include <algorithm>

namespace rbee::grammar {
namespace {

constexpr uint32_t kIdBits = 24;

uint8_t byte_of(uint32_t id, uint32_t shift) {
  return static_cast<uint8_t>(id >> shift);
}

}  // namespace

std::string token_bytes(int32_t id) {
  std::string out{kTokenByte};
  for (uint32_t shift = kIdBits; shift > 0; shift -= 8) {
    out += static_cast<char>(byte_of(static_cast<uint32_t>(id), shift - 8));
  }
  return out;
}

// Each piece has one range in some byte, single values before it and all values after it.
std::vector<ByteRanges> token_ranges(CharRange ids) {
  constexpr auto kFirst = static_cast<uint8_t>(kTokenByte);
  std::vector<ByteRanges> out;
  const uint64_t end = uint64_t{ids.high} + 1;
  for (uint64_t low = ids.low; low < end;) {
    uint32_t shift = 0;  // of the byte that has the range
    while (shift + 8 < kIdBits && low % (uint64_t{1} << (shift + 8)) == 0 &&
           low + (uint64_t{1} << (shift + 8)) <= end) {
      shift += 8;
    }
    const uint64_t turn = uint64_t{1} << (shift + 8);  // where the byte before changes
    const uint64_t last = std::min(end, low / turn * turn + turn) >> shift << shift;
    ByteRanges& bytes = out.emplace_back();
    bytes.parts[static_cast<size_t>(bytes.count++)] = {kFirst, kFirst};
    for (uint32_t at = kIdBits; at > 0; at -= 8) {
      const bool after = at - 8 < shift;
      const uint8_t from = after ? 0x00 : byte_of(static_cast<uint32_t>(low), at - 8);
      const uint8_t to = after ? 0xFF : byte_of(static_cast<uint32_t>(last - 1), at - 8);
      bytes.parts[static_cast<size_t>(bytes.count++)] = {from, to};
    }
    low = last;
  }
  return out;
}

}  // namespace rbee::grammar

#pragma once
// Random elements of every type, for operands of test cases.

#include <cstddef>
#include <span>

#include "rbee/core/dtype.h"
#include "tests/support/scene.h"

namespace rbee::harness {

// splitmix64 (Steele, Lea and Flood 2014): the next of a sequence of 64-bit numbers.
uint64_t next_random(uint64_t& state);

// Fills `bytes` with elements of `dtype` as `values` says. Block types: random codes, scales in
// [0.01, 0.1) and consistent sums; of `values` one_scale and undefined count.
void fill_random(std::span<std::byte> bytes, DType dtype, const Values& values, uint64_t& state);

// Elements `at` of plain or block-quantised data; out: as many.
void elements(const std::byte* data, DType dtype, std::span<const int64_t> at,
              std::span<double> out);

}  // namespace rbee::harness

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
// [0.01, 0.1) and consistent sums; `values` is not used.
void fill_random(std::span<std::byte> bytes, DType dtype, const Values& values, uint64_t& state);

// Element i of plain or block-quantised data.
double element(const std::byte* data, DType dtype, int64_t i);

}  // namespace rbee::harness

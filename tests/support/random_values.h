#pragma once
// Random elements of every type for the operands of test cases.

#include <cstddef>
#include <span>

#include "rbee/core/dtype.h"
#include "tests/support/scene.h"

namespace rbee::harness {

// splitmix64 (Steele, Lea and Flood 2014): returns the next 64-bit number.
uint64_t next_random(uint64_t& state);

// Fills `bytes` with elements of `dtype` as described by `values`. Block types: random codes,
// scales in [0.01, 0.1), correct sums; only `one_scale` and `undefined` of `values` apply.
void fill_random(std::span<std::byte> bytes, DType dtype, const Values& values, uint64_t& state);

// Reads elements `at` of plain or block-quantised data into `out`.
void elements(const std::byte* data, DType dtype, std::span<const int64_t> at,
              std::span<double> out);

}  // namespace rbee::harness

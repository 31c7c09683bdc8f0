#pragma once
// One block of each type from its elements. `x` holds kElements values, finite and within
// kLargest<Block>; `weights` (same count, positive, at most one) is null for equal importance;
// `block` is all zero bytes.

#include "backends/shared/code_book_blocks.h"
#include "backends/shared/quant_blocks.h"

namespace rbee::quant {

inline constexpr float kLargestHalf = 65504.0f;

// The largest magnitude that a block can hold.
template <class Block>
inline constexpr float kLargest = kLargestHalf;
template <>
inline constexpr float kLargest<shared::BlockQ4_0> = 8 * kLargestHalf;
template <>
inline constexpr float kLargest<shared::BlockQ5_0> = 16 * kLargestHalf;
template <>
inline constexpr float kLargest<shared::BlockQ8_0> = 127 * kLargestHalf;
template <>
inline constexpr float kLargest<shared::BlockQ8_K> = 0x1p127f;
template <>
inline constexpr float kLargest<shared::BlockMXFP4> = 0x1p127f;
template <>
inline constexpr float kLargest<shared::BlockNVFP4> = 448 * 6;
template <>
inline constexpr float kLargest<shared::BlockF8_G128> = 0x1p127f;

// Types with a reference rounding (reference.cc).
void encode_reference(const float* x, shared::BlockQ4_0& block);
void encode_reference(const float* x, shared::BlockQ4_1& block);
void encode_reference(const float* x, shared::BlockQ5_0& block);
void encode_reference(const float* x, shared::BlockQ5_1& block);
void encode_reference(const float* x, shared::BlockQ8_0& block);
void encode_reference(const float* x, shared::BlockQ8_K& block);
void encode_reference(const float* x, shared::BlockMXFP4& block);
void encode_reference(const float* x, shared::BlockF8_G128& block);

// Types fitted by weighted least squares (search_scale.cc, search_offset.cc, search_points.cc).
void encode_search(const float* x, const float* weights, shared::BlockQ4_0& block);
void encode_search(const float* x, const float* weights, shared::BlockQ4_1& block);
void encode_search(const float* x, const float* weights, shared::BlockQ5_0& block);
void encode_search(const float* x, const float* weights, shared::BlockQ5_1& block);
void encode_search(const float* x, const float* weights, shared::BlockQ2_K& block);
void encode_search(const float* x, const float* weights, shared::BlockQ3_K& block);
void encode_search(const float* x, const float* weights, shared::BlockQ4_K& block);
void encode_search(const float* x, const float* weights, shared::BlockQ5_K& block);
void encode_search(const float* x, const float* weights, shared::BlockQ6_K& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ4_NL& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ4_XS& block);
void encode_search(const float* x, const float* weights, shared::BlockMXFP4& block);
void encode_search(const float* x, const float* weights, shared::BlockNVFP4& block);
void encode_search(const float* x, const float* weights, shared::BlockTQ1_0& block);
void encode_search(const float* x, const float* weights, shared::BlockTQ2_0& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ1_S& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ1_M& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ2_XXS& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ2_XS& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ2_S& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ3_XXS& block);
void encode_search(const float* x, const float* weights, shared::BlockIQ3_S& block);

}  // namespace rbee::quant

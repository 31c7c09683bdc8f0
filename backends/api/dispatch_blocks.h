#pragma once
// dispatch_blocks("op", dtype, [&]<typename Block>() { ... }): from a DType to the struct of its
// block in backends/shared.

#include "backends/shared/code_book_blocks.h"
#include "rbee/core/dtype.h"
#include "rbee/core/error.h"

namespace rbee {

namespace detail {

template <typename Block>
struct BlockOf {
  DType dtype;
  using type = Block;
};

template <typename Body, typename... Block>
bool dispatch_blocks_to(DType dtype, Body& body, BlockOf<Block>... known) {
  return ((dtype == known.dtype ? (body.template operator()<Block>(), true) : false) || ...);
}

}  // namespace detail

// Throws unsupported when dtype is not a block type.
template <typename Body>
void dispatch_blocks(const char* op, DType dtype, Body&& body) {
  using namespace shared;
  using detail::BlockOf;
  const bool found = detail::dispatch_blocks_to(
      dtype, body, BlockOf<BlockQ4_0>{DType::q4_0}, BlockOf<BlockQ4_1>{DType::q4_1},
      BlockOf<BlockQ5_0>{DType::q5_0}, BlockOf<BlockQ5_1>{DType::q5_1},
      BlockOf<BlockQ8_0>{DType::q8_0}, BlockOf<BlockQ2_K>{DType::q2_k},
      BlockOf<BlockQ3_K>{DType::q3_k}, BlockOf<BlockQ4_K>{DType::q4_k},
      BlockOf<BlockQ5_K>{DType::q5_k}, BlockOf<BlockQ6_K>{DType::q6_k},
      BlockOf<BlockQ8_K>{DType::q8_k}, BlockOf<BlockIQ4_NL>{DType::iq4_nl},
      BlockOf<BlockIQ4_XS>{DType::iq4_xs}, BlockOf<BlockMXFP4>{DType::mxfp4},
      BlockOf<BlockF8_G128>{DType::f8_g128}, BlockOf<BlockIQ1_S>{DType::iq1_s},
      BlockOf<BlockIQ1_M>{DType::iq1_m}, BlockOf<BlockIQ2_XXS>{DType::iq2_xxs},
      BlockOf<BlockIQ2_XS>{DType::iq2_xs}, BlockOf<BlockIQ2_S>{DType::iq2_s},
      BlockOf<BlockIQ3_XXS>{DType::iq3_xxs}, BlockOf<BlockIQ3_S>{DType::iq3_s},
      BlockOf<BlockTQ1_0>{DType::tq1_0}, BlockOf<BlockTQ2_0>{DType::tq2_0},
      BlockOf<BlockNVFP4>{DType::nvfp4});
  if (!found) fail(Code::unsupported, op, "dtype ", dtype, " is not a block type");
}

}  // namespace rbee

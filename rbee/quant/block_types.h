#pragma once
// From a DType to the struct of its block.

#include <string_view>

#include "backends/shared/code_book_blocks.h"
#include "rbee/core/dtype.h"
#include "rbee/core/error.h"

namespace rbee::quant {

// Calls visitor(Block{}) with the block type of dtype; Error(invalid_argument) from `op` when it is
// not a block type.
template <class Visitor>
void visit_block_type(DType dtype, std::string_view op, Visitor&& visitor) {
  switch (dtype) {
    case DType::q4_0:
      return visitor(shared::BlockQ4_0{});
    case DType::q4_1:
      return visitor(shared::BlockQ4_1{});
    case DType::q5_0:
      return visitor(shared::BlockQ5_0{});
    case DType::q5_1:
      return visitor(shared::BlockQ5_1{});
    case DType::q8_0:
      return visitor(shared::BlockQ8_0{});
    case DType::q2_k:
      return visitor(shared::BlockQ2_K{});
    case DType::q3_k:
      return visitor(shared::BlockQ3_K{});
    case DType::q4_k:
      return visitor(shared::BlockQ4_K{});
    case DType::q5_k:
      return visitor(shared::BlockQ5_K{});
    case DType::q6_k:
      return visitor(shared::BlockQ6_K{});
    case DType::q8_k:
      return visitor(shared::BlockQ8_K{});
    case DType::iq4_nl:
      return visitor(shared::BlockIQ4_NL{});
    case DType::iq4_xs:
      return visitor(shared::BlockIQ4_XS{});
    case DType::mxfp4:
      return visitor(shared::BlockMXFP4{});
    case DType::f8_g128:
      return visitor(shared::BlockF8_G128{});
    case DType::iq1_s:
      return visitor(shared::BlockIQ1_S{});
    case DType::iq1_m:
      return visitor(shared::BlockIQ1_M{});
    case DType::iq2_xxs:
      return visitor(shared::BlockIQ2_XXS{});
    case DType::iq2_xs:
      return visitor(shared::BlockIQ2_XS{});
    case DType::iq2_s:
      return visitor(shared::BlockIQ2_S{});
    case DType::iq3_xxs:
      return visitor(shared::BlockIQ3_XXS{});
    case DType::iq3_s:
      return visitor(shared::BlockIQ3_S{});
    case DType::tq1_0:
      return visitor(shared::BlockTQ1_0{});
    case DType::tq2_0:
      return visitor(shared::BlockTQ2_0{});
    case DType::nvfp4:
      return visitor(shared::BlockNVFP4{});
    default:
      fail(Code::invalid_argument, op, name(dtype), " is not a block type");
  }
}

}  // namespace rbee::quant

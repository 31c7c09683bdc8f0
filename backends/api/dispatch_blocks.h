#pragma once
// dispatch_blocks("op", dtype, [&]<typename Block>() { ... }): from a DType to the struct of its
// block in backends/shared.

#include <string_view>

#include "backends/shared/code_book_blocks.h"
#include "rbee/core/dtype.h"
#include "rbee/core/error.h"

namespace rbee {

#define RB_CHECK(name, Name, elements, bytes, ...)                                            \
  static_assert(                                                                              \
      sizeof(shared::Block##Name) == (bytes) && shared::Block##Name::kElements == (elements), \
      #name " has another layout than its row in rbee/core/block_types.h");
RB_BLOCK_TYPES(RB_CHECK)
#undef RB_CHECK

// Throws invalid_argument if dtype is not a block type.
template <typename Body>
void dispatch_blocks(std::string_view op, DType dtype, Body&& body) {
  switch (dtype) {
#define RB_CASE(name, Name, ...) \
  case DType::name:              \
    return (void)body.template operator()<shared::Block##Name>();
    RB_BLOCK_TYPES(RB_CASE)
#undef RB_CASE
    default:
      fail(Code::invalid_argument, op, name(dtype), " is not a block type");
  }
}

}  // namespace rbee

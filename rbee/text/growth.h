#pragma once
// Limits how long a text may become while a tokenizer's steps rewrite it. A hostile file may list
// steps that multiply the text again and again; real tokenizers stay far below the limit.

#include <cstddef>

#include "rbee/core/error.h"

namespace rbee::text {

inline constexpr size_t kMaxGrowth = 32;          // times
inline constexpr size_t kFreeGrowth = 64 * 1024;  // bytes, so that short texts may have a prefix

// before, after: bytes.
inline void check_growth(size_t before, size_t after) {
  if (after <= kFreeGrowth || after - kFreeGrowth <= before * kMaxGrowth) return;
  fail(Code::invalid_argument, "tokenizer", "its steps make ", after, " bytes of a text of ",
       before, ", more than ", kMaxGrowth, " times as many and ", kFreeGrowth);
}

}  // namespace rbee::text

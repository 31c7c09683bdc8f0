#pragma once
// tokenizer.ggml.token_type, as SentencePiece numbers it.

#include <cstdint>

namespace rbee::text {

enum GgufTokenType : int32_t {
  kNormalToken = 1,
  kUnknownToken = 2,
  kControlToken = 3,
  kUserDefinedToken = 4,
  kUnusedToken = 5,
  kByteToken = 6,
};

}  // namespace rbee::text

#pragma once
// The components that tokenizer.json can name. Each function throws unsupported for an unknown
// type, and invalid_argument, naming the field's path, for a wrong field.

#include <vector>

#include "rbee/text/json_file.h"
#include "rbee/text/normalizer.h"
#include "rbee/text/piece_decoder.h"
#include "rbee/text/pre_tokenizer.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text {

NormalizerPtr normalizer_from(const JsonField& field);
// The bytes of a normalizer of the type Precompiled.
std::string charsmap_bytes(const JsonField& field);

// raw_bytes: a ByteLevel at the end does not change bytes, for a model that takes raw bytes.
PreTokenizerPtr pre_tokenizer_from(const JsonField& field, bool raw_bytes);
// Whether the last stage is ByteLevel.
bool ends_with_byte_level(const JsonField& field);

// Adds the steps of a decoder.
void add_decoder(const JsonField& field, PieceDecoder& decoder);

// Ids around a text: prefix + text + suffix.
struct SpecialFrame {
  std::vector<TokenId> prefix, suffix;
};
SpecialFrame post_processor_from(const JsonField& field);

}  // namespace rbee::text

#pragma once
// SentencePiece's own model files ("spiece.model", "tokenizer.model"): protocol buffers of the
// message ModelProto in sentencepiece_model.proto.

#include "rbee/text/tokenizer.h"

namespace rbee::text {

// The file's vocabulary in the fields that GGUF files have, for tokenizer_from_gguf(): unigram and
// BPE models. Throws invalid_argument saying where the file is broken, and unsupported for models
// of words or characters.
GgufVocab vocab_from_sentencepiece(std::string_view file);

}  // namespace rbee::text

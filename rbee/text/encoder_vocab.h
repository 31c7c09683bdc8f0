#pragma once
// Parts of gguf_vocab_from_json(): the vocabularies of encoders, as llama.cpp's converter writes
// them.

#include <string_view>

#include "rbee/text/json_file.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text {

// Throws unsupported: GGUF files cannot express this field.
[[noreturn]] void no_gguf_form(const JsonField& field, std::string_view what);

// The calls below complete a vocabulary that has its tokens, named tokens and frame.

// BERT's: tokens that begin a word get the mark, and no token keeps "##".
void add_word_piece(const JsonField& root, GgufVocab& vocab);

// SentencePiece's unigram model: scores, and the handling of white space and characters.
void add_unigram(const TokenizerFile& file, const JsonField& root, GgufVocab& vocab);

}  // namespace rbee::text

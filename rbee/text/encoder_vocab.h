#pragma once
// Parts of gguf_vocab_from_json(): the vocabularies of encoders, as llama.cpp's converter writes
// them.

#include <string_view>

#include "rbee/text/json_file.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text {

// Throws unsupported: GGUF files cannot say what this field says.
[[noreturn]] void no_gguf_form(const JsonField& field, std::string_view what);

// The calls below take a vocabulary with its tokens, named tokens and frame.

// BERT's: the mark stands before tokens that begin a word, and "##" before none.
void add_word_piece(const JsonField& root, GgufVocab& vocab);

// SentencePiece's unigram model: scores, and what is done to white space and characters.
void add_unigram(const TokenizerFile& file, const JsonField& root, GgufVocab& vocab);

}  // namespace rbee::text

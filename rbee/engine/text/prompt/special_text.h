#pragma once
// Words of a chat that look like special tokens, such as "<|im_end|>" in what a user says, and stay
// words: a mark inside of them goes through the chat template, and divides the prompt there.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

// The messages with the mark in every special token that the text of one holds. The assistant's own
// are left: models and clients write marks of reasoning there.
std::vector<ChatMessage> mark_special_texts(std::vector<ChatMessage> messages,
                                            const text::Tokenizer& tokenizer);

// Tokens of a prompt with such marks, which are left out. Nothing is added at its ends.
std::vector<text::TokenId> encode_marked(std::string_view prompt, const text::Tokenizer& tokenizer);

}  // namespace rbee::engine

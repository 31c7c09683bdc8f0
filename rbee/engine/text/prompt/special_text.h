#pragma once
// Keeps text that looks like a special token, such as "<|im_end|>" in a user's message, as plain
// text: a mark inside it passes through the chat template and splits the prompt there.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

// Puts the mark into every special token that a message's text contains. The assistant's messages
// stay as they are: models and clients write reasoning marks there.
std::vector<ChatMessage> mark_special_texts(std::vector<ChatMessage> messages,
                                            const text::Tokenizer& tokenizer);

std::string mark_special_texts(std::string_view text, const text::Tokenizer& tokenizer);

// Puts the mark into what looks like the tag of a picture, "[img-0]", in the message's text.
void mark_picture_tags(ChatMessage& message);

// Tokenises a prompt with such marks and removes them. Adds no special tokens at its ends.
std::vector<text::TokenId> encode_marked(std::string_view prompt, const text::Tokenizer& tokenizer);

}  // namespace rbee::engine

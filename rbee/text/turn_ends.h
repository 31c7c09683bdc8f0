#pragma once
// Finds tokens that end a turn by their text: files often omit them from eos_token_id, and some
// give them the type of plain text.

#include <functional>
#include <string_view>
#include <vector>

#include "rbee/text/vocab.h"

namespace rbee::text {

// The turn ends of known instruct models, in no order, without those that mean something else in
// this vocabulary: GPT-OSS writes several messages in a turn, each followed by <|end|>, and if <s>
// is not a special token, </s> is an HTML tag. is_special: whether the file calls a token special.
std::vector<TokenId> find_turn_ends(const Vocab& vocab,
                                    const std::function<bool(TokenId)>& is_special);

// Logs that the file does not give such a token the type of special tokens.
void warn_of_plain_turn_end(std::string_view text, TokenId id);

}  // namespace rbee::text

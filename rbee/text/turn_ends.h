#pragma once
// Tokens that end a turn, told by their text: files often leave them out of eos_token_id, and some
// give them the type of plain text.

#include <functional>
#include <string_view>
#include <vector>

#include "rbee/text/vocab.h"

namespace rbee::text {

// Of the instruct models in use, in no order. A text of another meaning in this vocabulary is left
// out: GPT-OSS writes several messages in a turn, <|end|> behind each, and where <s> is no special
// token, </s> is a tag of HTML. is_special: what the file says of a token.
std::vector<TokenId> find_turn_ends(const Vocab& vocab,
                                    const std::function<bool(TokenId)>& is_special);

// Says in the log that the file gives such a token another type than that of special tokens.
void warn_of_plain_turn_end(std::string_view text, TokenId id);

}  // namespace rbee::text

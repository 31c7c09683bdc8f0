#pragma once
// Derives CLIP's vocabulary from its merges.

#include <string>
#include <string_view>

namespace rbee::text {

// vocab.json for the text of a merges.txt: 256 bytes, the same at the end of a word, one token for
// each merge, and the two special tokens (49,408 tokens for the published models).
std::string clip_vocab_of(std::string_view merges);

}  // namespace rbee::text

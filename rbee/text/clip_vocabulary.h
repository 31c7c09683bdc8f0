#pragma once
// The vocabulary of CLIP as OpenAI published it, for checkpoints that do not bring theirs along.

#include <string>
#include <string_view>

namespace rbee::text {

// merges.txt, part of the program.
std::string_view standard_clip_merges();
// vocab.json: 256 bytes, the same at the end of a word, one token for each merge, and the two
// special tokens; 49,408 in all.
std::string standard_clip_vocab();

}  // namespace rbee::text

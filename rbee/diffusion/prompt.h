#pragma once
// Weights in prompts, and prompts that are longer than a text encoder's input.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::diffusion {

// a1111: (x) is 1.1 times as strong, (x:1.3) 1.3 times, [x] 1 / 1.1 times, all nested; the word
// BREAK
//        ends a chunk; a backslash before a bracket or another one makes it an ordinary
//        character, and is left out before anything else and at the end.
// comfy: (x) is 1.1 times as strong as what it stands in, (x:1.3) has 1.3 whatever it stands in;
//        a backslash before a bracket makes it an ordinary character.
// none:  no character has a meaning.
enum class PromptSyntax : uint8_t { a1111, comfy, none };

struct PromptPart {
  std::string text;
  float weight = 1;
  bool ends_chunk = false;  // BREAK; then the text is empty
};
// Gives at least one part, and joins neighbours of one weight. Unclosed brackets count until the
// end (a1111) or are ordinary characters (comfy), so any text is a prompt.
std::vector<PromptPart> parse_prompt(std::string_view prompt, PromptSyntax syntax);

// The ids of one call of a text encoder: start, at most capacity ids, end, padding.
struct PromptChunk {
  std::vector<int32_t> ids;
  std::vector<float> weights;  // one for each id
  bool weighted() const;       // some weight is not 1
};

struct ChunkOptions {
  int32_t length = 77;           // ids of a chunk in all
  std::optional<int32_t> start;  // first id
  int32_t end = 0;               // after the text
  int32_t pad = 0;               // after the end
  bool single = false;           // only the first chunk is kept
  // If a text needs several chunks, it is cut after this id (a comma) if one is at most `look_back`
  // ids before the end of the chunk.
  std::optional<int32_t> comma;
  int32_t look_back = 20;
  // The number of ids, from this one on, that are one uncuttable word. If it does not fit, it
  // begins the next chunk, unless it is longer than a chunk. Empty: every id is on its own.
  std::function<size_t(int32_t id)> together;
};
using Encode = std::function<std::vector<int32_t>(std::string_view)>;  // without special ids

// At least one chunk. Throws invalid_argument if a chunk has no room for text.
std::vector<PromptChunk> chunk_prompt(const std::vector<PromptPart>& parts, const Encode& encode,
                                      const ChunkOptions& options);

}  // namespace rbee::diffusion

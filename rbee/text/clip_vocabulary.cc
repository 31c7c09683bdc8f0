#include "rbee/text/clip_vocabulary.h"

#include <nlohmann/json.hpp>

#include "rbee/text/byte_alphabet.h"

// RBEE_CLIP_MERGES is the path of data/clip_merges.txt.
__asm__(
    ".section .rodata\n"
    "rbee_clip_merges_begin:\n"
    ".incbin \"" RBEE_CLIP_MERGES
    "\"\n"
    "rbee_clip_merges_end:\n"
    ".byte 0\n"
    ".text\n"
    ".global rbee_clip_merges_begin\n"
    ".global rbee_clip_merges_end\n");

extern "C" const char rbee_clip_merges_begin[];
extern "C" const char rbee_clip_merges_end[];

namespace rbee::text {
namespace {

// Bytes with a letter of their own come first (Radford et al. 2019, the table of GPT-2).
bool is_plain(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

std::string without_space(std::string_view rule) {
  std::string token(rule);
  token.erase(token.find(' '), 1);
  return token;
}

}  // namespace

std::string_view standard_clip_merges() {
  return {rbee_clip_merges_begin,
          static_cast<size_t>(rbee_clip_merges_end - rbee_clip_merges_begin)};
}

std::string standard_clip_vocab() {
  nlohmann::json vocab;
  int32_t next = 0;
  const auto add = [&](const std::string& token) { vocab[token] = next++; };
  for (const char* suffix : {"", "</w>"}) {
    for (const bool plain : {true, false}) {
      for (int byte = 0; byte < 256; ++byte) {
        if (is_plain(byte) == plain)
          add(to_alphabet(std::string(1, static_cast<char>(byte))) + suffix);
      }
    }
  }
  std::string_view rest = standard_clip_merges();
  rest.remove_prefix(rest.find('\n') + 1);  // the version
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    add(without_space(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  add("<|startoftext|>");
  add("<|endoftext|>");
  return vocab.dump();
}

}  // namespace rbee::text

#include "rbee/text/clip_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rbee/text/byte_alphabet.h"

namespace rbee::text {
namespace {

// Bytes with a letter of their own come first (Radford et al. 2019, the table of GPT-2).
bool is_plain(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

std::string without_space(std::string_view rule) {
  std::string token(rule);
  std::erase(token, ' ');
  std::erase(token, '\r');
  return token;
}

}  // namespace

std::string clip_vocab_of(std::string_view merges) {
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
  while (!merges.empty()) {
    const size_t end = std::min(merges.find('\n'), merges.size());
    const std::string_view line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (!line.empty() && !line.starts_with("#version")) add(without_space(line));
  }
  add("<|startoftext|>");
  add("<|endoftext|>");
  return vocab.dump();
}

}  // namespace rbee::text

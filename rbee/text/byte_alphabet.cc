#include "rbee/text/byte_alphabet.h"

#include <array>

#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr char32_t kFirstMoved = 0x100;
constexpr size_t kLetters = 0x100 + 68;  // 68 bytes are moved

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> letter{};
  std::array<int16_t, kLetters> byte{};

  constexpr Alphabet() {
    for (int16_t& b : byte) b = -1;
    char32_t next = kFirstMoved;
    for (int b = 0; b < 256; ++b) {
      const char32_t code = stands_for_itself(b) ? static_cast<char32_t>(b) : next++;
      letter[static_cast<size_t>(b)] = code;
      byte[code] = static_cast<int16_t>(b);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

char32_t alphabet_letter(uint8_t byte) {
  return kAlphabet.letter[byte];
}

int alphabet_byte(char32_t letter) {
  return letter < kLetters ? kAlphabet.byte[letter] : -1;
}

std::string to_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes) append_utf8(out, alphabet_letter(static_cast<uint8_t>(c)));
  return out;
}

std::optional<std::string> from_alphabet(std::string_view letters) {
  std::string out;
  for (size_t at = 0; at < letters.size(); at += utf8_length(letters[at])) {
    const int byte = alphabet_byte(utf8_at(letters, at));
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
  }
  return out;
}

}  // namespace rbee::text

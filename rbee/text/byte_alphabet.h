#pragma once
// GPT-2's alphabet: every byte as one printable character, so that byte strings can be JSON keys.
// The 188 printable bytes of Latin-1 stand for themselves, the others for U+0100 on, in order.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rbee::text {

char32_t alphabet_letter(uint8_t byte);
// The byte of a letter, or -1.
int alphabet_byte(char32_t letter);

std::string to_alphabet(std::string_view bytes);
// nullopt if `letters` (valid UTF-8) has a character outside the alphabet.
std::optional<std::string> from_alphabet(std::string_view letters);

}  // namespace rbee::text

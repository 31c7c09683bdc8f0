#pragma once
// Paths of this machine in messages for clients.

#include <string>
#include <string_view>

namespace rbee::server {

// The text with absolute paths cut to their last name: "open /home/me/a.gguf: no such file" becomes
// "open a.gguf: no such file". Where a path with blanks ends is a guess, which rather takes away
// too much: up to the last slash before a colon or semicolon with a blank, or a closing quote.
std::string without_folders(std::string_view text);

}  // namespace rbee::server

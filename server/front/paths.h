#pragma once
// Paths of this machine in messages for clients.

#include <string>
#include <string_view>

namespace rbee::server {

// The text with absolute paths cut to their last name: "open /home/me/a.gguf: no such file" becomes
// "open a.gguf: no such file". Nobody can tell where a path with blanks ends, so the function cuts
// rather too much: up to the last slash before a closing quote, or before a colon or semicolon with
// a blank.
std::string without_folders(std::string_view text);

}  // namespace rbee::server

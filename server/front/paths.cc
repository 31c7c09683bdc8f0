#include "server/front/paths.h"

namespace rbee::server {

std::string without_folders(std::string_view text) {
  constexpr std::string_view kBefore = " \t\n\"'`(=,", kAfter = " \t\n\"'`),;";
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const bool begins = text[at] == '/' && (at == 0 || kBefore.find(text[at - 1]) != kBefore.npos);
    if (!begins) {
      out += text[at++];
      continue;
    }
    const std::string_view path = text.substr(at, text.find_first_of(kAfter, at) - at);
    at += path.size();
    const size_t end = path.find_last_not_of("/:");  // of its last name
    out += end == path.npos ? path : path.substr(path.find_last_of('/', end) + 1);
  }
  return out;
}

}  // namespace rbee::server

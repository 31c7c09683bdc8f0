#include "server/apis/ollama/names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rbee::server {

std::string plain_model_name(std::string_view name) {
  std::string out(name);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kTag = ":latest";
  if (out.ends_with(kTag)) out.resize(out.size() - kTag.size());
  for (const std::string_view part :
       {"https://", "http://", "registry.ollama.ai/", "ollama.com/", "library/"}) {
    if (out.starts_with(part)) out.erase(0, part.size());
  }
  for (const std::string_view hub : {"hf.co/", "huggingface.co/"}) {
    if (out.starts_with(hub)) return out.replace(0, hub.size(), "hf:");
  }
  return out;
}

bool same_model_name(std::string_view a, std::string_view b) {
  return plain_model_name(a) == plain_model_name(b);
}

}  // namespace rbee::server

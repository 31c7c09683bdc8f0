#pragma once
// Bodies of Ollama's routes about files of models.

#include <string>
#include <string_view>

namespace rbee::server {

struct OllamaPull {
  std::string model;  // as sent; empty: none
  bool stream = true;
};

// Throws InvalidBody. `insecure` has no effect: the hub's address says whether TLS is used.
OllamaPull parse_ollama_pull(std::string_view body);

}  // namespace rbee::server

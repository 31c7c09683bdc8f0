#pragma once
// Names of models as Ollama's clients write them.

#include <string>
#include <string_view>

namespace rbee::server {

// A name without what Ollama fills in: "llama3.2" of "registry.ollama.ai/library/Llama3.2:latest".
// "hf.co/" and "huggingface.co/" in front become "hf:". In lower case, because Ollama's names have
// none.
std::string plain_model_name(std::string_view name);
// Whether both stand for one model.
bool same_model_name(std::string_view a, std::string_view b);

}  // namespace rbee::server

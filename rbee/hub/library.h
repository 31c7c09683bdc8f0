#pragma once
// Names of Ollama's library, such as "llama3.2:3b", and where the hub has these models as GGUF. The
// table was written from what is publicly known; nobody here has fetched these repositories.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::hub {

// The name on the hub, hf:org/repo:QUANTIZATION; absent for other texts. ":latest" may be at its
// end. In lower case, as Ollama writes its names.
std::optional<std::string> model_of_library_name(std::string_view name);

// The names that mean this repository, of the quantization that the table names for it.
std::vector<std::string> library_names_of(std::string_view repo, std::string_view quantization);

// All of them.
std::vector<std::string> library_names();

}  // namespace rbee::hub

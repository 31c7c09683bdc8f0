#pragma once
// Names of Ollama's library, such as "llama3.2:3b", and where the hub has these models as GGUF. The
// table was written from what is publicly known; nobody here has fetched these repositories.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::hub {

// The name on the hub, hf:org/repo:QUANTIZATION; absent for other families. In any case. A name is
// FAMILY[:SIZE[-WORD...][-QUANTIZATION]], such as "llama3.2:3b-instruct-q8_0", whose words must
// stand in the repository's name; registry.ollama.ai/, ollama.com/ and library/ may be before it,
// and ":latest" at its end. Throws not_found, naming what there is, for another tag of a family.
std::optional<std::string> model_of_library_name(std::string_view name);

// The names that mean this repository, of the quantization that the table names for it.
std::vector<std::string> library_names_of(std::string_view repo, std::string_view quantization);

// All of them.
std::vector<std::string> library_names();

}  // namespace rbee::hub

#pragma once
// Names of models on Hugging Face's hub: hf:org/repo[:QUANTIZATION | /file][@revision], of its old
// ones without an organisation hf:repo[:QUANTIZATION][@revision], and the short names that hives
// give image models.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::hub {

struct ModelName {
  std::string repo;          // "org/repo", or "repo" without an organisation
  std::string revision;      // branch, tag or commit; "main" unless it was named
  std::string file;          // path within the repository; empty = see choose_files()
  std::string quantization;  // as written, e.g. "Q4_K_M"; empty = not asked for
};

// True for texts that begin with "hf:".
bool is_hub_name(std::string_view text);

// Throws invalid_argument, saying which part is wrong and what it may be.
ModelName parse_model_name(std::string_view text);

// True for "org/repo" without hf:, unless it ends as a file of weights does.
bool looks_like_repo(std::string_view text);
// What an address of a page, such as https://huggingface.co/org/repo/blob/main/file, is as a name
// without hf:; other texts as they are. `endpoint`: the hub's.
std::string name_of_page(std::string_view text, std::string_view endpoint);

// hf: with what follows the hub's host in an address such as hf.co/org/repo:Q4_K_M, as Ollama's
// clients write it, or https://huggingface.co/org/repo; absent for other texts.
std::optional<std::string> model_of_address(std::string_view text);
// Throws invalid_argument, naming "model", for what can be no name in a request: of the hub, its
// addresses, Ollama's or anything else that is served.
void check_written_name(std::string_view text);

// The name as parse_model_name() reads it.
std::string to_text(const ModelName& name);

// What a short name means, such as "v1-5" or "flux-dev"; absent for other texts.
std::optional<std::string> model_of_short_name(std::string_view name);
// All of them, and their other spellings.
std::vector<std::string> short_names();

// Throw invalid_argument unless the text can be what it is named after, and is safe as a path
// within the cache: relative, without "..", backslashes, control characters or empty parts.
void check_repo(std::string_view repo);
void check_revision(std::string_view revision);
void check_file(std::string_view file);
// Of a commit: 40 hexadecimal digits.
bool is_commit(std::string_view text);

}  // namespace rbee::hub

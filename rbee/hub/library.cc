#include "rbee/hub/library.h"

#include <algorithm>
#include <cctype>

#include "rbee/core/error.h"
#include "rbee/core/printable.h"

namespace rbee::hub {
namespace {

struct LibraryName {
  std::string_view name;  // '*' before its tag: the name alone means this model
  std::string_view repo;
  std::string_view quantization = "Q4_K_M";  // Ollama's usual one

  std::string_view family() const { return name.substr(0, name.find(':')); }
  std::string_view tag() const {
    const std::string_view tag = name.substr(name.find(':') + 1);
    return is_default() ? tag.substr(1) : tag;
  }
  bool is_default() const { return name[name.find(':') + 1] == '*'; }
  std::string text() const { return cat(family(), ":", tag()); }
};

constexpr LibraryName kLibrary[] = {
    {"all-minilm:*22m", "second-state/All-MiniLM-L6-v2-Embedding-GGUF", "Q8_0"},
    {"bge-m3:*567m", "gpustack/bge-m3-GGUF", "Q8_0"},
    {"codellama:*7b", "TheBloke/CodeLlama-7B-Instruct-GGUF"},
    {"codellama:13b", "TheBloke/CodeLlama-13B-Instruct-GGUF"},
    {"deepseek-r1:1.5b", "bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF"},
    {"deepseek-r1:7b", "bartowski/DeepSeek-R1-Distill-Qwen-7B-GGUF"},
    {"deepseek-r1:*8b", "unsloth/DeepSeek-R1-0528-Qwen3-8B-GGUF"},
    {"deepseek-r1:14b", "bartowski/DeepSeek-R1-Distill-Qwen-14B-GGUF"},
    {"deepseek-r1:32b", "bartowski/DeepSeek-R1-Distill-Qwen-32B-GGUF"},
    {"deepseek-r1:70b", "bartowski/DeepSeek-R1-Distill-Llama-70B-GGUF"},
    {"dolphin3:*8b", "bartowski/Dolphin3.0-Llama3.1-8B-GGUF"},
    {"embeddinggemma:*300m", "ggml-org/embeddinggemma-300M-GGUF", "Q8_0"},
    {"falcon3:1b", "tiiuae/Falcon3-1B-Instruct-GGUF"},
    {"falcon3:3b", "tiiuae/Falcon3-3B-Instruct-GGUF"},
    {"falcon3:*7b", "tiiuae/Falcon3-7B-Instruct-GGUF"},
    {"falcon3:10b", "tiiuae/Falcon3-10B-Instruct-GGUF"},
    {"gemma2:2b", "bartowski/gemma-2-2b-it-GGUF"},
    {"gemma2:*9b", "bartowski/gemma-2-9b-it-GGUF"},
    {"gemma2:27b", "bartowski/gemma-2-27b-it-GGUF"},
    {"gemma3:270m", "unsloth/gemma-3-270m-it-GGUF"},
    {"gemma3:1b", "ggml-org/gemma-3-1b-it-GGUF"},
    {"gemma3:*4b", "ggml-org/gemma-3-4b-it-GGUF"},
    {"gemma3:12b", "ggml-org/gemma-3-12b-it-GGUF"},
    {"gemma3:27b", "ggml-org/gemma-3-27b-it-GGUF"},
    {"granite3.3:2b", "ibm-granite/granite-3.3-2b-instruct-GGUF"},
    {"granite3.3:*8b", "ibm-granite/granite-3.3-8b-instruct-GGUF"},
    {"hermes3:*8b", "NousResearch/Hermes-3-Llama-3.1-8B-GGUF"},
    {"llama2:*7b", "TheBloke/Llama-2-7B-Chat-GGUF"},
    {"llama2:13b", "TheBloke/Llama-2-13B-chat-GGUF"},
    {"llama3:*8b", "bartowski/Meta-Llama-3-8B-Instruct-GGUF"},
    {"llama3:70b", "bartowski/Meta-Llama-3-70B-Instruct-GGUF"},
    {"llama3.1:*8b", "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF"},
    {"llama3.1:70b", "bartowski/Meta-Llama-3.1-70B-Instruct-GGUF"},
    {"llama3.2:1b", "bartowski/Llama-3.2-1B-Instruct-GGUF"},
    {"llama3.2:*3b", "bartowski/Llama-3.2-3B-Instruct-GGUF"},
    {"llama3.3:*70b", "bartowski/Llama-3.3-70B-Instruct-GGUF"},
    {"mistral:*7b", "bartowski/Mistral-7B-Instruct-v0.3-GGUF"},
    {"mistral-nemo:*12b", "bartowski/Mistral-Nemo-Instruct-2407-GGUF"},
    {"mistral-small:*24b", "bartowski/Mistral-Small-24B-Instruct-2501-GGUF"},
    {"mixtral:*8x7b", "TheBloke/Mixtral-8x7B-Instruct-v0.1-GGUF"},
    {"mxbai-embed-large:*335m", "ChristianAzinn/mxbai-embed-large-v1-gguf", "Q8_0"},
    {"nomic-embed-text:*v1.5", "nomic-ai/nomic-embed-text-v1.5-GGUF", "F16"},
    {"nomic-embed-text:137m", "nomic-ai/nomic-embed-text-v1.5-GGUF", "F16"},
    {"olmo2:*7b", "allenai/OLMo-2-1124-7B-Instruct-GGUF"},
    {"olmo2:13b", "allenai/OLMo-2-1124-13B-Instruct-GGUF"},
    {"phi3.5:*3.8b", "bartowski/Phi-3.5-mini-instruct-GGUF"},
    {"phi4:*14b", "bartowski/phi-4-GGUF"},
    {"phi4-mini:*3.8b", "bartowski/microsoft_Phi-4-mini-instruct-GGUF"},
    {"qwen2:0.5b", "Qwen/Qwen2-0.5B-Instruct-GGUF"},
    {"qwen2:1.5b", "Qwen/Qwen2-1.5B-Instruct-GGUF"},
    {"qwen2:*7b", "Qwen/Qwen2-7B-Instruct-GGUF"},
    {"qwen2.5:0.5b", "bartowski/Qwen2.5-0.5B-Instruct-GGUF"},
    {"qwen2.5:1.5b", "bartowski/Qwen2.5-1.5B-Instruct-GGUF"},
    {"qwen2.5:3b", "bartowski/Qwen2.5-3B-Instruct-GGUF"},
    {"qwen2.5:*7b", "bartowski/Qwen2.5-7B-Instruct-GGUF"},
    {"qwen2.5:14b", "bartowski/Qwen2.5-14B-Instruct-GGUF"},
    {"qwen2.5:32b", "bartowski/Qwen2.5-32B-Instruct-GGUF"},
    {"qwen2.5:72b", "bartowski/Qwen2.5-72B-Instruct-GGUF"},
    {"qwen2.5-coder:0.5b", "bartowski/Qwen2.5-Coder-0.5B-Instruct-GGUF"},
    {"qwen2.5-coder:1.5b", "bartowski/Qwen2.5-Coder-1.5B-Instruct-GGUF"},
    {"qwen2.5-coder:3b", "bartowski/Qwen2.5-Coder-3B-Instruct-GGUF"},
    {"qwen2.5-coder:*7b", "bartowski/Qwen2.5-Coder-7B-Instruct-GGUF"},
    {"qwen2.5-coder:14b", "bartowski/Qwen2.5-Coder-14B-Instruct-GGUF"},
    {"qwen2.5-coder:32b", "bartowski/Qwen2.5-Coder-32B-Instruct-GGUF"},
    {"qwen2.5vl:3b", "ggml-org/Qwen2.5-VL-3B-Instruct-GGUF"},
    {"qwen2.5vl:*7b", "ggml-org/Qwen2.5-VL-7B-Instruct-GGUF"},
    {"qwen3:0.6b", "unsloth/Qwen3-0.6B-GGUF"},
    {"qwen3:1.7b", "unsloth/Qwen3-1.7B-GGUF"},
    {"qwen3:4b", "unsloth/Qwen3-4B-GGUF"},
    {"qwen3:*8b", "unsloth/Qwen3-8B-GGUF"},
    {"qwen3:14b", "unsloth/Qwen3-14B-GGUF"},
    {"qwen3:32b", "unsloth/Qwen3-32B-GGUF"},
    {"qwen3:30b", "unsloth/Qwen3-30B-A3B-GGUF"},
    {"qwen3-embedding:0.6b", "Qwen/Qwen3-Embedding-0.6B-GGUF", "Q8_0"},
    {"qwen3-embedding:4b", "Qwen/Qwen3-Embedding-4B-GGUF"},
    {"qwen3-embedding:*8b", "Qwen/Qwen3-Embedding-8B-GGUF"},
    {"qwq:*32b", "bartowski/Qwen_QwQ-32B-GGUF"},
    {"smollm2:135m", "bartowski/SmolLM2-135M-Instruct-GGUF"},
    {"smollm2:360m", "bartowski/SmolLM2-360M-Instruct-GGUF"},
    {"smollm2:*1.7b", "bartowski/SmolLM2-1.7B-Instruct-GGUF"},
    {"tinyllama:*1.1b", "TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF"},
    {"zephyr:*7b", "TheBloke/zephyr-7B-beta-GGUF"},
};

// In lower case, without what stands before and after a name of Ollama's library.
std::string plain_name(std::string_view written) {
  std::string out(written);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kLatest = ":latest";
  if (out.ends_with(kLatest)) out.resize(out.size() - kLatest.size());
  for (const std::string_view part :
       {"https://", "http://", "registry.ollama.ai/", "ollama.com/", "library/"}) {
    if (out.starts_with(part)) out.erase(0, part.size());
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view text, std::string_view between) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(between), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// What follows a family: "3b-instruct-q8_0".
struct Tag {
  std::string_view size;
  std::vector<std::string_view> variant;  // the words between
  std::string quantization;               // as GGUF files name it; empty: none
};

// As GGUF files name it, of a tag's word such as "q4_k_m" or "fp16"; empty: it is none.
std::string quantization_of_word(std::string_view word) {
  if (word.empty()) return {};
  if (word == "fp16" || word == "f16") return "F16";
  if (word == "fp32" || word == "f32") return "F32";
  if (word == "bf16") return "BF16";
  const std::string_view rest = word.substr(word.starts_with("iq") ? 2 : 1);
  const bool counted = word.starts_with('q') || word.starts_with("iq");
  if (!counted || rest.empty() || rest.front() < '1' || rest.front() > '8') return {};
  std::string out(word);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

Tag read_tag(std::string_view text) {
  std::vector<std::string_view> words = words_of(text, "-");
  if (words.empty()) return {};
  Tag out{.size = words.front(), .variant = {}, .quantization = {}};
  words.erase(words.begin());
  if (!words.empty()) out.quantization = quantization_of_word(words.back());
  if (!out.quantization.empty()) words.pop_back();
  out.variant = std::move(words);
  return out;
}

// Whether the repository's name has all words: "instruct", "v0.3", or "v1" of "v1.0".
bool describes(const std::vector<std::string_view>& variant, std::string_view repo) {
  const std::string name = plain_name(repo);
  const std::vector<std::string_view> known = words_of(name, "/-_");
  return std::ranges::all_of(variant, [&](std::string_view word) {
    return std::ranges::any_of(known, [&](std::string_view one) {
      const bool tuned = word == "instruct" && one == "it";  // Google's word
      return tuned || one == word || one.starts_with(cat(word, "."));
    });
  });
}

// "3b (bartowski/Llama-3.2-3B-Instruct-GGUF), ..."
std::string known_of(std::string_view family) {
  std::string out;
  for (const LibraryName& row : kLibrary) {
    if (row.family() != family) continue;
    out += cat(out.empty() ? "" : ", ", row.tag(), " (", row.repo, ")");
  }
  return out;
}

}  // namespace

std::optional<std::string> model_of_library_name(std::string_view written) {
  const std::string name = plain_name(written);
  const std::string_view family = std::string_view(name).substr(0, name.find(':'));
  const bool known = std::ranges::count(kLibrary, family, &LibraryName::family) > 0;
  if (!known) return std::nullopt;
  const bool alone = family.size() == name.size();
  const Tag tag = read_tag(std::string_view(name).substr(alone ? name.size() : family.size() + 1));
  for (const LibraryName& row : kLibrary) {
    const bool same = row.family() == family && (alone ? row.is_default() : row.tag() == tag.size);
    if (!same || !describes(tag.variant, row.repo)) continue;
    return cat("hf:", row.repo, ":",
               tag.quantization.empty() ? row.quantization : tag.quantization);
  }
  fail(Code::not_found, "model", "'", printable_line(written), "' is not known: of ", family,
       " there are here ", known_of(family),
       ", each also with what its repository's name says and ",
       "a quantization, such as -instruct-q8_0; others are named hf:org/repo:QUANTIZATION");
}

std::vector<std::string> library_names_of(std::string_view repo, std::string_view quantization) {
  std::vector<std::string> out;
  for (const LibraryName& row : kLibrary) {
    if (row.repo != repo || row.quantization != quantization) continue;
    out.push_back(row.text());
    if (row.is_default()) out.emplace_back(row.family());
  }
  return out;
}

std::vector<std::string> library_names() {
  std::vector<std::string> out;
  for (const LibraryName& row : kLibrary) {
    out.push_back(row.text());
    if (row.is_default()) out.emplace_back(row.family());
  }
  return out;
}

}  // namespace rbee::hub

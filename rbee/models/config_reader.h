#pragma once
// Reads a model's settings from a GGUF file's metadata or a Hugging Face config.json. One list of
// fields serves both, so a family describes itself once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/number_range.h"

namespace rbee::models {

// One setting under both names. Empty: the format does not have it.
struct Field {
  std::string_view gguf;  // without the architecture's prefix, e.g. "block_count"
  std::string_view hf;    // paths with '.', alternatives with '|', e.g. "rope_theta|rope.theta"
};

struct Limits {
  int64_t lowest = 1;
  int64_t highest = int64_t{1} << 31;
};

// Every getter throws invalid_argument naming the field, its value and what was wanted. Those
// without a fallback throw not_found if the field is absent or null.
class ConfigReader {
 public:
  // `hf_section`: an object of config.json that holds the settings if it exists, e.g. "text_config"
  // in multimodal models. Keeps a reference to the checkpoint.
  explicit ConfigReader(const io::Checkpoint& checkpoint, std::string_view hf_section = {});
  ~ConfigReader();
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  bool is_gguf() const;
  const io::Checkpoint& checkpoint() const { return checkpoint_; }
  const std::string& architecture() const { return architecture_; }

  bool has(Field field) const;      // and not null
  bool is_null(Field field) const;  // there, and null; Hugging Face only
  // Reads a list of equal numbers, one for each layer, as one number; throws unsupported for other
  // lists. In Hugging Face's files only lists of integers.
  int64_t integer(Field field, Limits limits = {}) const;
  int64_t integer(Field field, int64_t fallback, Limits limits = {}) const;
  double number(Field field, io::NumberRange range) const;
  double number(Field field, double fallback, io::NumberRange range) const;
  bool flag(Field field, bool fallback) const;
  bool is_text(Field field) const;  // there, and a text; Hugging Face only
  std::string text(Field field, std::string_view fallback) const;
  // Arrays of a Hugging Face config; empty if absent, and for GGUF files.
  std::vector<double> numbers(Field field, io::NumberRange range) const;
  std::vector<std::string> texts(Field field) const;
  // An array of a GGUF file; empty if the setting is absent or a single value, and for Hugging
  // Face.
  std::vector<bool> flags(Field field) const;

  // The field's name in errors: "llama.block_count" or "config.json's num_hidden_layers".
  std::string describe(Field field) const;

 private:
  struct Json;
  std::string key(Field field) const;  // in GGUF metadata
  bool is_list(Field field) const;     // of a GGUF file that has it

  const io::Checkpoint& checkpoint_;
  std::string architecture_;
  std::unique_ptr<Json> json_;  // Hugging Face only
};

}  // namespace rbee::models

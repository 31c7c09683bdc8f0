#pragma once
// Reads tokenizer.json without a JSON tree for its two big parts: a vocabulary of a quarter of a
// million tokens goes straight into flat lists.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rbee::text {

struct TokenizerFile {
  nlohmann::json rest;  // the file without model.vocab and model.merges
  std::vector<std::pair<std::string, int64_t>> vocab;       // model.vocab as an object
  std::vector<std::pair<std::string, double>> pieces;       // model.vocab as a list (unigram)
  std::vector<std::pair<std::string, std::string>> merges;  // "a b" or ["a", "b"]
};

// Error messages begin with `name`, e.g. "tokenizer.json". Throws invalid_argument if the text is
// not JSON or not an object, nests deeper than 64, or has a wrong type in one of the lists.
TokenizerFile read_tokenizer_file(std::string_view text, std::string_view name);

// A value and its path. Access is checked, and errors name the field.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool is_null() const { return value_->is_null(); }
  bool is_object() const { return value_->is_object(); }
  bool is_string() const { return value_->is_string(); }
  bool has(const char* key) const;       // and not null
  JsonField at(const char* key) const;   // throws invalid_argument if it is missing
  std::vector<JsonField> items() const;  // of a list
  const std::string& text() const;
  int64_t integer(int64_t low, int64_t high) const;

  std::string text(const char* key) const { return at(key).text(); }
  std::string text_or(const char* key, std::string_view fallback) const;
  bool flag_or(const char* key, bool fallback) const;
  int64_t integer_or(const char* key, int64_t fallback, int64_t low, int64_t high) const;
  std::string type() const { return text("type"); }

 private:
  const nlohmann::json* value_;
  std::string path_;
};

// The type that the file gives, or else BPE, WordPiece or Unigram: files older than tokenizers 0.8
// give none.
std::string model_type(const TokenizerFile& file, const JsonField& model);

}  // namespace rbee::text

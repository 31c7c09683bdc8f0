#include "rbee/text/json_file.h"

#include <cmath>
#include <limits>
#include <optional>

#include "rbee/core/error.h"
#include "rbee/core/json_fault.h"

namespace rbee::text {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 64;

// Hugging Face's reader of decimal numbers rounds twice: the digits to a double, then the quotient
// by a power of ten. One unit in the last place decides between paths of equal score, so the same
// is done here. nullopt: a number with an exponent or too many digits before the point.
std::optional<double> twice_rounded(std::string_view text) {
  constexpr uint64_t kFull = std::numeric_limits<uint64_t>::max() / 10;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const size_t point = text.find('.');
  if (point > 18 || text.find_first_of("eE") != text.npos) return std::nullopt;
  uint64_t digits = 0;
  double scale = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == point) continue;
    const auto digit = static_cast<uint64_t>(text[i] - '0');
    if (digits > kFull || (digits == kFull && digit > 5)) break;  // the rest is dropped
    digits = digits * 10 + digit;
    if (i > point) scale *= 10;  // exact up to 1e22
  }
  const double value = static_cast<double>(digits) / scale;
  return negative ? -value : value;
}

// Handler of nlohmann's event parser. Its names are the library's.
class Reader : public json::json_sax_t {
 public:
  Reader(TokenizerFile& file, std::string_view name) : file_(file), name_(name) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool flag) override { return value(flag); }
  bool number_integer(int64_t number) override { return any_number(number); }
  bool number_unsigned(uint64_t number) override {
    if (part_ == Part::tree) return value(number);
    check(number <= INT64_MAX, where(), number, " is too large");
    return any_number(static_cast<int64_t>(number));
  }
  bool number_float(double number, const std::string& text) override {
    if (part_ != Part::pieces) return value(number);
    return piece_score(twice_rounded(text).value_or(number));
  }
  bool string(std::string& text) override;
  bool binary(json::binary_t&) override { return false; }  // never from text
  bool key(std::string& text) override {
    key_ = std::move(text);
    return true;
  }
  bool start_object(size_t) override;
  bool end_object() override { return leave(); }
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

 private:
  enum class Part { tree, vocab, pieces, merges };

  std::string where() const {
    switch (part_) {
      case Part::vocab:
        return cat(name_, ": model.vocab[\"", key_, "\"]");
      case Part::pieces:
        return cat(name_, ": model.vocab[", file_.pieces.size(), "]");
      case Part::merges:
        return cat(name_, ": model.merges[", file_.merges.size(), "]");
      case Part::tree:
        break;
    }
    return cat(name_, ": \"", key_, "\"");
  }
  [[noreturn]] void wrong_type() const {
    fail(Code::invalid_argument, where(), "has a value of a wrong type");
  }

  // A big list starts: the value of `key` inside the top object's "model".
  bool at_model(const char* wanted) const {
    return part_ == Part::tree && open_.size() == 2 && in_model_ && key_ == wanted;
  }
  template <typename T>
  json* place(T&& node) {
    if (open_.empty()) {
      file_.rest = std::forward<T>(node);
      return &file_.rest;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::forward<T>(node));
      return &parent.back();
    }
    json& child = parent[key_];
    child = std::forward<T>(node);
    return &child;
  }
  template <typename T>
  bool value(T&& node) {
    if (part_ != Part::tree) wrong_type();
    place(json(std::forward<T>(node)));
    return true;
  }
  bool any_number(int64_t number);
  bool piece_score(double score);
  void deeper() {
    check(open_.size() + depth_ < kMaxDepth, name_, "its nesting is deeper than ", kMaxDepth);
  }
  bool leave() {
    if (part_ == Part::vocab) {
      part_ = Part::tree;
      return true;
    }
    if (part_ != Part::tree) wrong_type();
    open_.pop_back();
    if (open_.size() == 1) in_model_ = false;
    return true;
  }

  TokenizerFile& file_;
  std::string name_, key_;
  std::vector<json*> open_;  // the tree's open containers
  bool in_model_ = false;
  Part part_ = Part::tree;
  size_t depth_ = 0;                // of arrays inside a big list
  std::vector<std::string> tuple_;  // texts of the open element of a big list
  bool scored_ = false;
  double score_ = 0;
};

bool Reader::string(std::string& text) {
  switch (part_) {
    case Part::tree:
      return value(std::move(text));
    case Part::vocab:
      wrong_type();
    case Part::pieces:
      if (depth_ != 1 || !tuple_.empty()) wrong_type();
      tuple_.push_back(std::move(text));
      return true;
    case Part::merges:
      break;
  }
  if (depth_ == 1) {
    if (tuple_.size() == 2) wrong_type();
    tuple_.push_back(std::move(text));
    return true;
  }
  // Files older than tokenizers 0.20 can start the list with the version.
  if (file_.merges.empty() && text.starts_with("#version")) return true;
  const size_t space = text.find(' ');
  check(space != text.npos && text.find(' ', space + 1) == text.npos, where(), "\"", text,
        "\" is not two tokens");
  file_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  return true;
}

bool Reader::any_number(int64_t number) {
  if (part_ == Part::tree) return value(number);
  if (part_ == Part::pieces) return piece_score(static_cast<double>(number));
  if (part_ != Part::vocab) wrong_type();
  file_.vocab.emplace_back(std::move(key_), number);
  key_.clear();
  return true;
}

bool Reader::piece_score(double score) {
  if (depth_ != 1 || tuple_.size() != 1 || scored_) wrong_type();
  check(std::isfinite(score), where(), "its score is not finite");
  scored_ = true;
  score_ = score;
  return true;
}

bool Reader::start_object(size_t) {
  if (part_ != Part::tree) wrong_type();
  if (at_model("vocab")) {
    part_ = Part::vocab;
    return true;
  }
  deeper();
  if (open_.size() == 1) in_model_ = key_ == "model";
  open_.push_back(place(json::object()));
  return true;
}

bool Reader::start_array(size_t) {
  if (at_model("vocab") || at_model("merges")) {
    part_ = key_ == "vocab" ? Part::pieces : Part::merges;
    depth_ = 0;
    return true;
  }
  if (part_ == Part::tree) {
    deeper();
    open_.push_back(place(json::array()));
    return true;
  }
  if (part_ == Part::vocab || depth_ != 0) wrong_type();
  depth_ = 1;
  tuple_.clear();
  scored_ = false;
  return true;
}

bool Reader::end_array() {
  if (part_ == Part::tree) return leave();
  if (depth_ == 0) {
    part_ = Part::tree;
    return true;
  }
  depth_ = 0;
  if (part_ == Part::pieces) {
    if (tuple_.size() != 1 || !scored_) wrong_type();
    file_.pieces.emplace_back(std::move(tuple_[0]), score_);
  } else {
    if (tuple_.size() != 2) wrong_type();
    file_.merges.emplace_back(std::move(tuple_[0]), std::move(tuple_[1]));
  }
  return true;
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view text, std::string_view name) {
  TokenizerFile file;
  Reader reader(file, name);
  if (!json::sax_parse(text, &reader)) {
    fail(Code::invalid_argument, name, "no JSON: ", json_fault(text));
  }
  check(file.rest.is_object(), name, "is not a JSON object");
  return file;
}

bool JsonField::has(const char* key) const {
  check(value_->is_object(), path_, "is not an object");
  return value_->contains(key) && !(*value_)[key].is_null();
}

JsonField JsonField::at(const char* key) const {
  check(value_->is_object(), path_, "is not an object");
  const auto found = value_->find(key);
  check(found != value_->end(), path_, "has no \"", key, "\"");
  return {*found, cat(path_, path_.find(": ") == path_.npos ? ": " : ".", key)};
}

std::vector<JsonField> JsonField::items() const {
  check(value_->is_array(), path_, "is not a list");
  std::vector<JsonField> list;
  list.reserve(value_->size());
  for (const json& item : *value_) list.emplace_back(item, cat(path_, "[", list.size(), "]"));
  return list;
}

const std::string& JsonField::text() const {
  check(value_->is_string(), path_, "is not a string");
  return value_->get_ref<const std::string&>();
}

int64_t JsonField::integer(int64_t low, int64_t high) const {
  check(value_->is_number_integer(), path_, "is not an integer");
  const bool fits = !value_->is_number_unsigned() || value_->get<uint64_t>() <= INT64_MAX;
  const auto number = value_->get<int64_t>();
  check(fits && number >= low && number <= high, path_, value_->dump(), " is outside of ", low,
        " ... ", high);
  return number;
}

std::string JsonField::text_or(const char* key, std::string_view fallback) const {
  return has(key) ? at(key).text() : std::string(fallback);
}

bool JsonField::flag_or(const char* key, bool fallback) const {
  if (!has(key)) return fallback;
  const JsonField field = at(key);
  check(field.value_->is_boolean(), field.path_, "is not true or false");
  return field.value_->get<bool>();
}

int64_t JsonField::integer_or(const char* key, int64_t fallback, int64_t low, int64_t high) const {
  return has(key) ? at(key).integer(low, high) : fallback;
}

std::string model_type(const TokenizerFile& file, const JsonField& model) {
  const bool pieces = !file.pieces.empty(), merges = !file.merges.empty();
  return model.text_or("type", pieces ? "Unigram" : merges ? "BPE" : "WordPiece");
}

}  // namespace rbee::text

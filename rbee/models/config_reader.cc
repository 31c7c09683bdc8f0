#include "rbee/models/config_reader.h"

#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/io/json_parse.h"

namespace rbee::models {
namespace {

using nlohmann::json;

constexpr const char* kOp = "model config";
constexpr const char* kFile = "config.json's ";

// The value at a dotted path; null where any step is missing.
const json* at_path(const json& root, std::string_view path) {
  const json* here = &root;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    if (!here->is_object()) return nullptr;
    const auto step = here->find(path.substr(0, dot));
    if (step == here->end()) return nullptr;
    here = &*step;
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return here;
}

double in_range(double value, io::NumberRange range, const std::string& name) {
  check(range.holds(value), kOp, name, " is ", value, ", wanted ", range.describe());
  return value;
}

void check_range(int64_t value, Limits limits, const std::string& name) {
  check(value >= limits.lowest && value <= limits.highest, kOp, name, " is ", value,
        ", wanted an integer from ", limits.lowest, " to ", limits.highest);
}

[[noreturn]] void fail_type(const std::string& name, const json& value, const char* wanted) {
  std::string shown = value.dump();
  constexpr size_t kLongest = 60;
  if (shown.size() > kLongest) {
    shown.resize(kLongest);
    shown += "...";
  }
  fail(Code::invalid_argument, kOp, name, " is ", shown, ", wanted ", wanted);
}

// Newer files may have a list with one value a layer. Layers that differ are not implemented.
template <typename T>
T same_everywhere(const std::vector<T>& values, const std::string& key) {
  check(!values.empty(), kOp, key, " is an empty list");
  for (const T value : values) {
    if (value == values.front()) continue;
    fail(Code::unsupported, kOp, key, " is ", values.front(), " for one layer and ", value,
         " for another; only one value for all layers is implemented");
  }
  return values.front();
}

}  // namespace

struct ConfigReader::Json {
  json root;

  // The first alternative that is there and not null; empty if none is.
  std::string_view spelling(std::string_view alternatives) const {
    while (!alternatives.empty()) {
      const size_t bar = alternatives.find('|');
      const std::string_view path = alternatives.substr(0, bar);
      const json* value = at_path(root, path);
      if (value != nullptr && !value->is_null()) return path;
      if (bar == std::string_view::npos) break;
      alternatives.remove_prefix(bar + 1);
    }
    return {};
  }
  const json* find(std::string_view alternatives) const {
    const std::string_view path = spelling(alternatives);
    return path.empty() ? nullptr : at_path(root, path);
  }
};

ConfigReader::ConfigReader(const io::Checkpoint& checkpoint, std::string_view hf_section)
    : checkpoint_(checkpoint), architecture_(checkpoint.architecture()) {
  if (is_gguf()) return;
  json_ = std::make_unique<Json>(Json{io::parse_json(checkpoint.config_json(), "config.json")});
  check(json_->root.is_object(), kOp, "config.json does not hold an object");
  if (hf_section.empty()) return;
  const auto section = json_->root.find(hf_section);
  if (section == json_->root.end() || section->is_null()) return;
  check(section->is_object(), kOp, kFile, hf_section, " is not an object");
  json_->root = json(*section);
}

ConfigReader::~ConfigReader() = default;

bool ConfigReader::is_gguf() const {
  return checkpoint_.format() == io::Checkpoint::Format::gguf;
}

std::string ConfigReader::key(Field field) const {
  return cat(architecture_, ".", field.gguf);
}

std::string ConfigReader::describe(Field field) const {
  if (is_gguf()) return key(field);
  const std::string_view there = json_->spelling(field.hf);
  return cat(kFile, there.empty() ? field.hf.substr(0, field.hf.find('|')) : there);
}

bool ConfigReader::has(Field field) const {
  if (!is_gguf()) return json_->find(field.hf) != nullptr;
  return !field.gguf.empty() && checkpoint_.metadata().contains(key(field));
}

bool ConfigReader::is_list(Field field) const {
  return checkpoint_.metadata().find(key(field))->type == io::MetaType::array;
}

bool ConfigReader::is_null(Field field) const {
  if (is_gguf() || has(field)) return false;
  const json* value = at_path(json_->root, field.hf);
  return value != nullptr && value->is_null();
}

int64_t ConfigReader::integer(Field field, Limits limits) const {
  if (!has(field)) fail(Code::not_found, kOp, describe(field), " is missing");
  int64_t value = 0;
  if (is_gguf()) {
    const io::Metadata& metadata = checkpoint_.metadata();
    value = is_list(field) ? same_everywhere(metadata.require_ints(key(field)), key(field))
                           : metadata.require_i64(key(field));
  } else {
    const json& found = *json_->find(field.hf);
    std::vector<int64_t> values;
    for (const json& item : found.is_array() ? found : json::array({found})) {
      const bool in_range =
          item.is_number_integer() &&
          (!item.is_number_unsigned() || item.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
      if (!in_range) fail_type(describe(field), found, "an integer");
      values.push_back(item.get<int64_t>());
    }
    value = same_everywhere(values, describe(field));
  }
  check_range(value, limits, describe(field));
  return value;
}

int64_t ConfigReader::integer(Field field, int64_t fallback, Limits limits) const {
  return has(field) ? integer(field, limits) : fallback;
}

double ConfigReader::number(Field field, io::NumberRange range) const {
  if (!has(field)) fail(Code::not_found, kOp, describe(field), " is missing");
  if (!is_gguf()) {
    const json& found = *json_->find(field.hf);
    if (!found.is_number()) fail_type(describe(field), found, "a number");
    return in_range(found.get<double>(), range, describe(field));
  }
  const io::Metadata& metadata = checkpoint_.metadata();
  if (!is_list(field)) return in_range(metadata.require_f64(key(field)), range, key(field));
  const std::vector<float> values = metadata.require_floats(key(field));
  for (const float value : values) in_range(value, range, key(field));
  return same_everywhere(values, key(field));
}

double ConfigReader::number(Field field, double fallback, io::NumberRange range) const {
  return has(field) ? number(field, range) : fallback;
}

bool ConfigReader::flag(Field field, bool fallback) const {
  if (!has(field)) return fallback;
  if (is_gguf()) return checkpoint_.metadata().require_bool(key(field));
  const json& found = *json_->find(field.hf);
  if (!found.is_boolean()) fail_type(describe(field), found, "true or false");
  return found.get<bool>();
}

bool ConfigReader::is_text(Field field) const {
  return !is_gguf() && has(field) && json_->find(field.hf)->is_string();
}

std::string ConfigReader::text(Field field, std::string_view fallback) const {
  if (!has(field)) return std::string(fallback);
  if (is_gguf()) return std::string(checkpoint_.metadata().require_string(key(field)));
  const json& found = *json_->find(field.hf);
  if (!found.is_string()) fail_type(describe(field), found, "a string");
  return found.get<std::string>();
}

std::vector<double> ConfigReader::numbers(Field field, io::NumberRange range) const {
  if (is_gguf() || !has(field)) return {};
  const json& found = *json_->find(field.hf);
  if (!found.is_array()) fail_type(describe(field), found, "an array of numbers");
  std::vector<double> values;
  values.reserve(found.size());
  for (const json& item : found) {
    if (!item.is_number()) fail_type(describe(field), item, "numbers only");
    values.push_back(in_range(item.get<double>(), range, describe(field)));
  }
  return values;
}

std::vector<std::string> ConfigReader::texts(Field field) const {
  if (is_gguf() || !has(field)) return {};
  const json& found = *json_->find(field.hf);
  if (!found.is_array()) fail_type(describe(field), found, "an array of strings");
  std::vector<std::string> values;
  values.reserve(found.size());
  for (const json& item : found) {
    if (!item.is_string()) fail_type(describe(field), item, "strings only");
    values.push_back(item.get<std::string>());
  }
  return values;
}

std::vector<bool> ConfigReader::flags(Field field) const {
  if (!is_gguf() || !has(field)) return {};
  const io::MetaEntry* entry = checkpoint_.metadata().find(key(field));
  if (entry->type != io::MetaType::array) return {};
  return *checkpoint_.metadata().get_bools(entry->key);
}

}  // namespace rbee::models

#include "rbee/engine/infotext/infotext_writer.h"

#include "rbee/core/cat.h"
#include "rbee/engine/api/image_loras.h"

namespace rbee::engine {
namespace {

using nlohmann::json;

const json kNull;
const json kNothing = json::array();

const json& field(const json& object, const char* key) {
  if (!object.is_object()) return kNull;
  const auto at = object.find(key);
  return at == object.end() ? kNull : *at;
}

}  // namespace

std::string text_of(const json& object, const char* key) {
  const json& value = field(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string number_text(const json& object, const char* key) {
  const json& value = field(object, key);
  if (value.is_number()) return value.dump();
  const std::string text = text_of(object, key);
  const bool digits = text.find_first_not_of("0123456789.-") == std::string::npos;
  return digits ? text : std::string();
}

const json& part_of(const json& object, const char* key) {
  return field(object, key);
}

const json& list_of(const json& object, const char* key) {
  const json& value = field(object, key);
  return value.is_array() ? value : kNothing;
}

void InfotextWriter::text(std::string_view key, std::string_view value) {
  if (value.empty()) return;
  if (!settings_.empty()) settings_ += ", ";
  const bool plain = value.find_first_of(",:\n\"") == std::string_view::npos;
  settings_ += cat(key, ": ", plain ? std::string(value) : json(value).dump());
}

void InfotextWriter::constant(std::string_view key, std::string_view value) {
  constants_ += cat(", ", key, ": ", value);
}

void InfotextWriter::number(std::string_view key, const json& object, const char* field) {
  text(key, number_text(object, field));
}

void InfotextWriter::size(const json& object, const char* width, const char* height) {
  const std::string w = number_text(object, width), h = number_text(object, height);
  if (!w.empty() && !h.empty()) text("Size", cat(w, "x", h));
}

void InfotextWriter::lora(std::string_view file, std::string_view weight) {
  file = file.substr(file.find_last_of("/\\") + 1);  // npos + 1 is 0
  for (const std::string_view end : {".safetensors", ".gguf", ".pt", ".ckpt"}) {
    if (file.ends_with(end)) file.remove_suffix(end.size());
  }
  if (file.empty() || !engine::fits_tag(file)) return;
  loras_ += cat(" <lora:", file, ":", weight.empty() ? "1" : weight, ">");
}

std::string InfotextWriter::finish() const {
  std::string out = prompt + loras_;
  if (!negative_prompt.empty()) out += cat("\nNegative prompt: ", negative_prompt);
  if (!settings_.empty()) out += cat(out.empty() ? "" : "\n", settings_, constants_);
  return out;
}

}  // namespace rbee::engine

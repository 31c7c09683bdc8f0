#pragma once
// Writes AUTOMATIC1111's text of a picture's settings from JSON values. Includes nlohmann's large
// header: for .cc files of the readers only.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rbee::engine {

// A field of an object; empty if it is missing or of another type.
std::string text_of(const nlohmann::json& object, const char* key);
std::string number_text(const nlohmann::json& object, const char* key);  // also a text of digits
const nlohmann::json& part_of(const nlohmann::json& object, const char* key);
const nlohmann::json& list_of(const nlohmann::json& object, const char* key);

class InfotextWriter {
 public:
  std::string prompt, negative_prompt;

  // Leaves empty values out.
  void text(std::string_view key, std::string_view value);
  void number(std::string_view key, const nlohmann::json& object, const char* field);
  // What the program always does; left out if there is no other setting.
  void constant(std::string_view key, std::string_view value);
  void size(const nlohmann::json& object, const char* width, const char* height);
  // Adds <lora:name:weight> after the prompt, without the file's folder and ending.
  void lora(std::string_view file, std::string_view weight);
  std::string finish() const;

 private:
  std::string settings_;
  std::string constants_;
  std::string loras_;
};

}  // namespace rbee::engine

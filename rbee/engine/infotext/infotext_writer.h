#pragma once
// AUTOMATIC1111's text of a picture's settings, from values of JSON. Includes nlohmann's large
// header: for .cc files of the readers only.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rbee::engine {

// Of a field of an object: what is not there, or of another type, is empty.
std::string text_of(const nlohmann::json& object, const char* key);
std::string number_text(const nlohmann::json& object, const char* key);  // also a text of digits
const nlohmann::json& part_of(const nlohmann::json& object, const char* key);
const nlohmann::json& list_of(const nlohmann::json& object, const char* key);

class InfotextWriter {
 public:
  std::string prompt, negative_prompt;

  // Empty values are left out.
  void text(std::string_view key, std::string_view value);
  void number(std::string_view key, const nlohmann::json& object, const char* field);
  void size(const nlohmann::json& object, const char* width, const char* height);
  // Behind the prompt, as <lora:name:weight>, without the folder and the end of the file's name.
  void lora(std::string_view file, std::string_view weight);
  std::string finish() const;

 private:
  std::string settings_;
  std::string loras_;
};

}  // namespace rbee::engine

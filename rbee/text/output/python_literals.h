#pragma once
// Turns Python literals in a model's text into JSON: True, False, None, and strings in single
// quotes. Internal to the folder.

#include <string>
#include <string_view>

namespace rbee::text {

// Reads text in pieces. Does not change JSON.
class PythonLiterals {
 public:
  void push(std::string_view text, std::string& out);
  // Appends held text at the end of the input.
  void flush(std::string& out);

 private:
  void push(char c, std::string& out);
  void inside(char c, std::string& out);

  char quote_ = 0;  // of the text that is open; 0: none is
  bool escaped_ = false;
  std::string word_;  // letters that may be a literal
};

std::string json_of_python(std::string_view text);

}  // namespace rbee::text

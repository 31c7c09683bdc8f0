#pragma once
// JSON out of what a model writes as Python: True, False and None, and texts in single quotes.
// Internal to the folder.

#include <string>
#include <string_view>

namespace rbee::text {

// Reads text in pieces. What is JSON already stays as it is.
class PythonLiterals {
 public:
  void push(std::string_view text, std::string& out);
  // What was held back, once no more comes.
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

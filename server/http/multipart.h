#pragma once
// Bodies of multipart/form-data (RFC 7578).

#include <string>
#include <string_view>
#include <vector>

namespace rbee::server {

struct FormPart {
  std::string name;
  std::string filename;  // empty for a plain field
  std::string data;
};

// True for multipart/form-data with any parameters.
bool is_form_type(std::string_view content_type);

// Throws invalid_argument for a content type without a boundary, a malformed body, a part without a
// name, and more than 64 parts.
std::vector<FormPart> parse_form(std::string_view content_type, std::string_view body);

}  // namespace rbee::server

#include "rbee/io/json_parse.h"

#include <string>

#include "rbee/core/error.h"
#include "rbee/core/json_fault.h"
#include "rbee/core/json_shape.h"

namespace rbee::io {
namespace {

// Python writes numbers that JSON does not have: diffusers -Infinity for a bound that is none,
// ComfyUI NaN for a node that always runs. Not null, which would stand for a field's default.
std::string with_texts(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (quoted && rest.starts_with('\\') && rest.size() > 1) {
      out += text[at++];
    } else if (rest.starts_with('"')) {
      quoted = !quoted;
    }
    std::string_view number;
    for (const std::string_view name : {"NaN", "-Infinity", "Infinity"}) {
      if (!quoted && rest.starts_with(name)) number = name;
    }
    if (!number.empty()) {
      out.append(1, '"').append(number).append(1, '"');
      at += number.size() - 1;
    } else {
      out += text[at];
    }
  }
  return out;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view source,
                          const JsonLimits& limits) {
  using nlohmann::json;
  check(text.size() <= limits.bytes, source, "its ", text.size(), " bytes are more than the ",
        limits.bytes, " allowed");
  const auto deepest = static_cast<size_t>(limits.depth);
  check(shape_of_json(text).depth <= deepest, source, "nested deeper than ", limits.depth);
  const bool python = text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
  const std::string plain = python ? with_texts(text) : std::string();
  try {
    return json::parse(python ? plain : text);
  } catch (const json::exception&) {
    fail(Code::invalid_argument, source, "no JSON: ", json_fault(text, JsonDialect::python));
  }
}

}  // namespace rbee::io

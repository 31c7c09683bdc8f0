#include "rbee/io/json_parse.h"

#include "rbee/core/error.h"

namespace rbee::io {

nlohmann::json parse_json(std::string_view text, std::string_view source,
                          const JsonLimits& limits) {
  using nlohmann::json;
  check(text.size() <= limits.bytes, source, "its ", text.size(), " bytes are more than the ",
        limits.bytes, " allowed");
  // `depth` counts what encloses the value.
  const auto bounded = [&](int depth, json::parse_event_t event, json&) {
    const bool opens =
        event == json::parse_event_t::array_start || event == json::parse_event_t::object_start;
    check(!opens || depth < limits.depth, source, "nested deeper than ", limits.depth);
    return true;
  };
  try {
    return json::parse(text, bounded);
  } catch (const json::exception& error) {
    fail(Code::invalid_argument, source, error.what());
  }
}

}  // namespace rbee::io

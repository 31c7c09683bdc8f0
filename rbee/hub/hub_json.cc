#include "rbee/hub/hub_json.h"

#include <limits>

#include "rbee/core/error.h"
#include "rbee/core/json_fault.h"
#include "rbee/core/json_shape.h"

namespace rbee::hub {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 32;
constexpr size_t kMaxValues = 4'000'000;  // 100000 files with all that the hub tells of each

}  // namespace

json parse_json(std::string_view text, std::string_view what) {
  if (text.size() > kMaxJson) fail(Code::io, "hub", what, " is too large");
  const JsonShape shape = shape_of_json(text);
  if (shape.depth > kMaxDepth) fail(Code::io, "hub", what, " is nested too deeply");
  if (shape.values > kMaxValues) fail(Code::io, "hub", what, " has too many values");
  json out = json::parse(text, nullptr, false);
  if (out.is_discarded()) fail(Code::io, "hub", what, " is no JSON: ", json_fault(text));
  return out;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t integer_of(const json& object, const char* key) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return 0;
  const bool above =
      found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(kLargest);
  return above ? kLargest : found->get<int64_t>();
}

}  // namespace rbee::hub

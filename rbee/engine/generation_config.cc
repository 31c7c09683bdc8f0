#include "rbee/engine/generation_config.h"

#include "rbee/core/error.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

using nlohmann::json;

json parse(std::string_view text, std::string_view file) {
  json value = io::parse_json(text, file);
  check(value.is_object(), file, "not a JSON object");
  return value;
}

}  // namespace

std::vector<int32_t> end_token_ids(std::string_view text, std::string_view file) {
  const json config = parse(text, file);
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return {};
  const json list = found->is_array() ? *found : json::array({*found});
  std::vector<int32_t> ids;
  for (const json& id : list) {
    check(id.is_number_integer() && id >= 0 && id <= INT32_MAX, file, "eos_token_id ", id.dump(),
          " is no token id");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

std::optional<std::string> chat_template_of(std::string_view text) {
  const json config = parse(text, "tokenizer_config.json");
  const auto found = config.find("chat_template");
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return std::nullopt;
  for (const json& entry : *found) {
    if (entry.is_object() && entry.value("name", json()) == "default" &&
        entry.value("template", json()).is_string()) {
      return entry["template"].get<std::string>();
    }
  }
  return std::nullopt;
}

}  // namespace rbee::engine

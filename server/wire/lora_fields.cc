#include "server/wire/lora_fields.h"

#include "rbee/core/cat.h"
#include "rbee/core/served_name.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr float kMaxScale = 100;
constexpr size_t kMaxAdapters = 8;  // of a request

std::vector<LoraField> read_list(const json& list, ObjectReader& reader,
                                 std::vector<FieldError>& errors) {
  std::vector<LoraField> out;
  if (!list.is_array() || list.size() > kMaxAdapters) {
    reader.note("lora", cat("type(array), max_count(", kMaxAdapters, ")"),
                cat("must be an array of at most ", kMaxAdapters, " adapters"), &list);
    return out;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name = cat("lora[", i, "]");
    if (!list[i].is_object()) {
      reader.note(name, "type(object)", "must be an object", &list[i]);
      continue;
    }
    ObjectReader fields(list[i], name + ".", errors);
    LoraField field{.id = fields.integer("id", {0, INT32_MAX}),
                    .name = fields.text("name").value_or(""),
                    .scale = fields.number("scale", {-kMaxScale, kMaxScale})};
    if (fields.find("id") == nullptr && fields.find("name") == nullptr) {
      fields.note("id", "required", "is missing (or give name)", nullptr);
    }
    out.push_back(std::move(field));
  }
  return out;
}

LoraOrder parse_order(std::string_view text, bool with_path) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  LoraOrder out;
  const auto required = [&](const char* name) {
    std::string value = reader.text(name).value_or("");
    if (value.empty() && errors.empty()) {
      reader.note(name, "required, non_empty", "is missing or empty", reader.find(name));
    }
    return value;
  };
  out.name = required("lora_name");
  if (with_path && !out.name.empty() && !is_served_name(out.name)) {
    reader.note("lora_name", "name", cat("must be ", kServedNameRule), reader.find("lora_name"));
  }
  if (with_path) out.path = required("lora_path");
  // A request must not wait for a download, nor choose what the worker fetches.
  if (out.path.starts_with("hf:")) {
    reader.note("lora_path", "path",
                "is a path on the worker's machine; names of the hub are for the flag --lora",
                reader.find("lora_path"));
  }
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

}  // namespace

void read_adapters(ObjectReader& reader, std::vector<FieldError>& errors,
                   GenerateRequest& request) {
  // An adapter's name; every other name means the model.
  request.model = reader.text("model").value_or("");
  if (const json* list = reader.find("lora")) request.lora = read_list(*list, reader, errors);
}

std::vector<LoraField> parse_lora_scales(std::string_view body) {
  const json list = parse_array(body);
  std::vector<FieldError> errors;
  ObjectReader reader(list, "", errors);
  std::vector<LoraField> out = read_list(list, reader, errors);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

LoraOrder parse_lora_load(std::string_view body) {
  return parse_order(body, true);
}

LoraOrder parse_lora_unload(std::string_view body) {
  return parse_order(body, false);
}

std::string lora_list_json(const std::vector<LoraEntry>& adapters) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const LoraEntry& adapter : adapters) {
    out.push_back({{"id", out.size()},
                   {"name", adapter.name},
                   {"path", adapter.path},
                   {"scale", decimal(adapter.scale)}});
  }
  return dump(out);
}

}  // namespace rbee::server

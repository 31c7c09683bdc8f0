#include "server/wire/constraint_fields.h"

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

class Fields {
 public:
  Fields(const JsonBody& body, std::vector<FieldError>& errors) : body_(body), errors_(errors) {}

  void read(ObjectReader& reader) {
    read_response_format(reader);
    take_text(reader, "grammar", "grammar");
    take_schema(reader, "json_schema", "/json_schema");
    take_schema(reader, "guided_json", "/guided_json");
    take_text(reader, "guided_regex", "regex");
    take_choices(reader, "guided_choice");
    take_text(reader, "guided_grammar", "grammar");
    if (const json* value = reader.find("structured_outputs")) {
      if (!value->is_object()) {
        return reader.note("structured_outputs", "type(object)", "must be an object", value);
      }
      ObjectReader inner(*value, "structured_outputs.", errors_);
      take_schema(inner, "json", "/structured_outputs/json");
      take_text(inner, "regex", "regex");
      take_choices(inner, "choice");
      take_text(inner, "grammar", "grammar");
      if (const json* tag = inner.find("structural_tag")) {
        inner.note("structural_tag", "unsupported", "is not a form that this worker knows", tag);
      }
      if (inner.boolean("json_object").value_or(false)) take(inner, "json_object", "json_object");
    }
  }

  // "format" of the Responses API's "text".
  void read_text(ObjectReader& text) {
    const json* value = text.find("format");
    if (value == nullptr) return;
    if (!value->is_object()) {
      return text.note("format", "type(object)", "must be an object", value);
    }
    ObjectReader format(*value, "text.format.", errors_);
    const std::string type = format.text("type").value_or("");
    if (type == "json_object") {
      take(text, "format", "json_object");
    } else if (type == "json_schema") {
      if (format.find("schema") == nullptr)
        format.note("schema", "required", "is missing", nullptr);
      take_schema(format, "schema", "/text/format/schema");
    } else if (type != "text") {
      format.note("type", "one_of(text, json_object, json_schema)",
                  "must be text, json_object or json_schema", format.find("type"));
    }
  }

  // "format" of the Messages API's "output_config".
  void read_output(ObjectReader& config) {
    const json* value = config.find("format");
    if (value == nullptr) return;
    if (!value->is_object()) {
      return config.note("format", "type(object)", "must be an object", value);
    }
    ObjectReader format(*value, "output_config.format.", errors_);
    if (format.text("type").value_or("") != "json_schema") {
      format.note("type", "one_of(json_schema)", "must be json_schema", format.find("type"));
    }
    if (format.find("schema") == nullptr) format.note("schema", "required", "is missing", nullptr);
    take_schema(format, "schema", "/output_config/format/schema");
  }

  ConstraintFields out;

 private:
  // Keeps the first form only. Returns whether it is this one.
  bool take(ObjectReader& reader, const char* field, const char* kind) {
    if (out.kind.empty()) {
      out.kind = kind;
      field_ = field;
      return true;
    }
    reader.note(field, cat("exclusive(", field_, ")"),
                cat("cannot be given together with ", field_), nullptr);
    return false;
  }

  void take_text(ObjectReader& reader, const char* field, const char* kind) {
    if (auto text = reader.text(field)) {
      if (take(reader, field, kind)) out.text = *std::move(text);
    }
  }

  // pointer: to the schema in the body.
  void take_schema(ObjectReader& reader, const char* field, const std::string& pointer) {
    const json* value = reader.find(field);
    if (value == nullptr || !take(reader, field, "json_schema")) return;
    if (value->is_string()) {
      out.text = value->get<std::string>();
    } else if (value->is_object() || value->is_boolean()) {
      // `json` sorts names, but the answer's properties come in the schema's order.
      const ordered_json::json_pointer place(pointer);
      const std::string name = pointer.substr(1, pointer.find('/', 1) - 1);
      ordered_json named;
      named[name] = body_.in_order(name);
      out.text = dump_in_order(named.at(place));
    } else {
      reader.note(field, "type(object)", "must be a JSON schema", value);
    }
  }

  void take_choices(ObjectReader& reader, const char* field) {
    const json* value = reader.find(field);
    if (value == nullptr || !take(reader, field, "choice")) return;
    bool texts = value->is_array() && !value->empty();
    for (const json& entry : texts ? *value : json::array()) {
      texts &= entry.is_string() && !entry.get_ref<const std::string&>().empty();
      if (texts) out.choices.push_back(entry.get<std::string>());
    }
    if (!texts) {
      reader.note(field, "type(array), non_empty", "must be an array of strings that are not empty",
                  value);
    }
  }

  void read_response_format(ObjectReader& reader) {
    const json* value = reader.find("response_format");
    if (value == nullptr) return;
    if (!value->is_object()) {
      return reader.note("response_format", "type(object)", "must be an object", value);
    }
    ObjectReader format(*value, "response_format.", errors_);
    const std::string type = format.text("type").value_or("");
    if (type == "json_object") {
      // llama-server allows a schema here.
      if (format.find("schema") != nullptr) {
        take_schema(format, "schema", "/response_format/schema");
      } else {
        take(reader, "response_format", "json_object");
      }
    } else if (type == "json_schema") {
      read_named_schema(format);
    } else if (type != "text") {
      format.note("type", "one_of(text, json_object, json_schema)",
                  "must be text, json_object or json_schema", format.find("type"));
    }
  }

  // OpenAI's form, and llama-server's with the schema beside the type.
  void read_named_schema(ObjectReader& format) {
    if (format.find("json_schema") == nullptr && format.find("schema") != nullptr) {
      return take_schema(format, "schema", "/response_format/schema");
    }
    const json* named = format.find("json_schema");
    const bool has_schema = named != nullptr && named->is_object() && named->contains("schema") &&
                            !named->at("schema").is_null();
    if (!has_schema) {
      return format.note("json_schema", "required", "must be an object with a schema", named);
    }
    ObjectReader inner(*named, "response_format.json_schema.", errors_);
    take_schema(inner, "schema", "/response_format/json_schema/schema");
  }

  const JsonBody& body_;
  std::vector<FieldError>& errors_;
  std::string field_;  // of the kept form
};

}  // namespace

ConstraintFields read_constraint(ObjectReader& reader, const JsonBody& body,
                                 std::vector<FieldError>& errors) {
  Fields fields(body, errors);
  fields.read(reader);
  return std::move(fields.out);
}

ConstraintFields read_text_format(ObjectReader& text, const JsonBody& body,
                                  std::vector<FieldError>& errors) {
  Fields fields(body, errors);
  fields.read_text(text);
  return std::move(fields.out);
}

ConstraintFields read_output_format(ObjectReader& config, const JsonBody& body,
                                    std::vector<FieldError>& errors) {
  Fields fields(body, errors);
  fields.read_output(config);
  return std::move(fields.out);
}

}  // namespace rbee::server

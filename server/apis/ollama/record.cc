#include "server/apis/ollama/record.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <utility>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/engine/api/fields.h"
#include "server/apis/ollama/models.h"
#include "server/apis/ollama/request.h"
#include "server/apis/openai/request.h"
#include "server/http/clock.h"
#include "server/wire/json_object.h"
#include "server/wire/json_text.h"
#include "server/wire/other_names.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = OllamaRecord::Json;

constexpr size_t kMostFiles = 1000, kMostName = 255;

void refuse_what_is_not_read(ObjectReader& reader) {
  const auto refuse = [&](const char* name, std::string_view why) {
    const json* value = reader.find(name);
    if (value != nullptr && !value->empty() && *value != "") {
      reader.note(name, "unsupported", why, value);
    }
  };
  refuse("modelfile",
         "is not read here: clients send its lines as fields (from, files, template, ...)");
  for (const char* name : {"renderer", "parser"}) {
    refuse(name, "is not read here: the form of prompts and calls comes from the template");
  }
  refuse("remote_host", "is not read here: models run on this machine");
}

// A path below the model's folder, without a part that leads elsewhere.
bool is_file_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return c >= 0x20 && c != 0x7f && c != '\\'; };
  if (name.empty() || name.size() > kMostName || !std::ranges::all_of(name, plain)) return false;
  if (name.ends_with('/')) return false;
  for (std::string_view rest = name; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part.starts_with('.')) return false;
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return is_utf8(name);
}

// {name: digest}
OllamaRecord::Files read_files(ObjectReader& reader, const char* field) {
  OllamaRecord::Files out;
  const json* sent = reader.find(field);
  if (sent == nullptr) return out;
  if (!sent->is_object() || sent->size() > kMostFiles) {
    reader.note(field, cat("type(object), size(..=", kMostFiles, ")"),
                cat("must be an object of at most ", kMostFiles, " names and digests"), sent);
    return out;
  }
  for (const auto& [name, digest] : sent->items()) {
    const auto digits = digits_of_digest(digest.is_string() ? digest.get<std::string>() : "");
    if (!is_file_name(name)) {
      reader.note(field, "names", "must have names of files: relative, without '..'", sent);
    } else if (!digits) {
      reader.note(field, "digests", "must give each name a digest: sha256: and 64 digits", sent);
    } else {
      out[name] = *digits;
    }
  }
  return out;
}

json files_json(const OllamaRecord::Files& files) {
  json out = json::object();
  for (const auto& [name, digits] : files) out[name] = cat("sha256:", digits);
  return out;
}

// A text, or a list of texts.
Json read_license(ObjectReader& reader) {
  Json out = Json::array();
  const json* sent = reader.find("license");
  if (sent == nullptr || *sent == "") return out;
  const json list = sent->is_array() ? *sent : json::array({*sent});
  for (const json& one : list) {
    if (one.is_string()) {
      out.push_back(one.get<std::string>());
    } else {
      reader.note("license", "type(string | array)", "must be a text or a list of texts", sent);
    }
  }
  return out;
}

// Parameters and messages must be what a request may give.
void check_settings(const OllamaRecord& record) {
  const Json asked = {
      {"model", "m"}, {"options", record.parameters}, {"messages", record.messages}};
  try {
    (void)parse_ollama_chat(dump_in_order(asked));
  } catch (const InvalidBody& invalid) {
    std::vector<FieldError> errors = invalid.errors();
    constexpr std::string_view kOptions = "options", kParameters = "parameters";
    for (FieldError& error : errors) {
      if (!error.field.starts_with(kOptions)) continue;
      error.field.replace(0, kOptions.size(), kParameters);
      if (error.message.starts_with(kOptions)) {
        error.message.replace(0, kOptions.size(), kParameters);
      }
    }
    throw InvalidBody(std::move(errors));
  }
}

// "developer" is OpenAI's newer name.
bool is_system(const Json& message, bool openai) {
  const Json role = message.value("role", Json());
  return role == "system" || (openai && role == "developer");
}

// The system's text first, the chat's own if it has one; then the record's messages, then the rest.
void add_messages(const OllamaRecord& record, bool openai, Json& body) {
  const auto sent = body.find("messages");
  if (sent == body.end() || sent->empty()) return;
  const auto rest = std::ranges::find_if_not(
      *sent, [&](const Json& message) { return is_system(message, openai); });
  Json all = Json::array();
  const bool adds = !record.system.empty() && rest == sent->begin();
  if (adds) all.push_back({{"role", "system"}, {"content", record.system}});
  all.insert(all.end(), sent->begin(), rest);
  all.insert(all.end(), record.messages.begin(), record.messages.end());
  all.insert(all.end(), rest, sent->end());
  *sent = std::move(all);
}

// Of a chat, as its client numbers the messages.
bool is_valid(const std::string& text, bool openai) {
  try {
    openai ? (void)parse_openai_chat(text) : (void)parse_ollama_chat(text);
    return true;
  } catch (const InvalidBody&) {
    return false;
  }
}

// Null stands for a field that is not given.
bool lacks(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null();
}

void add_options(const OllamaRecord& record, Json& body) {
  if (record.parameters.empty()) return;
  if (lacks(body, "options")) body["options"] = Json::object();
  Json& options = body["options"];
  if (!options.is_object()) return;
  for (const auto& [name, value] : record.parameters.items()) {
    if (lacks(options, name)) options[name] = value;
  }
}

// With what OpenAI's routes mean by them.
Json openai_parameters(const OllamaRecord& record) {
  Json out = record.parameters;
  // How far back the penalties look: Ollama's 0 is nothing, its -1 everything, which is 0 there.
  const Json window = out.value("repeat_last_n", Json());
  if (window == 0) {
    out["repeat_penalty"] = 1.0;
    out["frequency_penalty"] = out["presence_penalty"] = 0.0;
  }
  if (window == -1) out["repeat_last_n"] = 0;
  return out;
}

void add_openai_parameters(const OllamaRecord& record, Json& body) {
  const Json parameters = openai_parameters(record);
  for (const engine::SamplingField& field : engine::sampling_fields()) {
    const std::string ollamas(field.in(engine::SamplingApi::ollama).name);
    const std::string openais(field.name), alias(field.alias);
    const bool given = !lacks(body, openais) || (!alias.empty() && !lacks(body, alias));
    if (!given && !lacks(parameters, ollamas)) body[openais] = parameters.at(ollamas);
  }
  if (!lacks(parameters, "stop") && lacks(body, "stop")) body["stop"] = parameters.at("stop");
  const Json most = parameters.value("num_predict", Json());
  const bool limited = most.is_number_integer() && most > 0;
  const bool given = !lacks(body, "max_tokens") || !lacks(body, "max_completion_tokens") ||
                     !lacks(body, "n_predict");
  if (limited && !given) body["max_tokens"] = most;
}

// As the lines of a Modelfile.
std::string parameters_text(const Json& parameters) {
  std::string out;
  const auto add = [&](const std::string& name, const Json& value) {
    const std::string gap(name.size() < 31 ? 31 - name.size() : 1, ' ');
    out += cat(out.empty() ? "" : "\n", name, gap, dump_in_order(value));
  };
  for (const auto& [name, value] : parameters.items()) {
    if (!value.is_array()) add(name, value);
    if (!value.is_array()) continue;
    for (const Json& one : value) add(name, one);
  }
  return out;
}

// Empty if it is no text.
std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string modelfile_of(const OllamaRecord& record) {
  std::string out = record.from.empty() ? "" : cat("FROM ", record.from, "\n");
  for (const auto& [name, digits] : record.files) out += cat("FROM ", name, "\n");
  for (const auto& [name, digits] : record.adapters) out += cat("ADAPTER ", name, "\n");
  if (!record.chat_template.empty()) {
    out += cat("TEMPLATE \"\"\"", record.chat_template, "\"\"\"\n");
  }
  if (!record.system.empty()) out += cat("SYSTEM \"\"\"", record.system, "\"\"\"\n");
  for (const auto& [name, value] : record.parameters.items()) {
    const Json list = value.is_array() ? value : Json::array({value});
    for (const Json& one : list) out += cat("PARAMETER ", name, " ", dump_in_order(one), "\n");
  }
  for (const Json& message : record.messages) {
    out += cat("MESSAGE ", text_of(message, "role"), " \"\"\"", text_of(message, "content"),
               "\"\"\"\n");
  }
  for (const Json& one : record.license) {
    out += cat("LICENSE \"\"\"", one.get<std::string>(), "\"\"\"\n");
  }
  return out;
}

std::string time_of(const OllamaRecord& record) {
  return iso8601(std::chrono::sys_seconds{std::chrono::seconds(record.created)});
}

}  // namespace

OllamaRecord OllamaCreate::made_of(const OllamaRecord& other) const {
  OllamaRecord out = record;
  out.from = other.from;
  out.files = other.files;
  if (out.adapters.empty()) out.adapters = other.adapters;
  if (out.system.empty()) out.system = other.system;
  if (out.chat_template.empty()) out.chat_template = other.chat_template;
  if (!gives_messages) out.messages = other.messages;
  if (out.license.empty()) out.license = other.license;
  for (const auto& [name, value] : other.parameters.items()) {
    if (!out.parameters.contains(name)) out.parameters[name] = value;
  }
  return out;
}

OllamaCreate parse_ollama_create(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OllamaCreate out;
  OllamaRecord& record = out.record;
  record.name = reader.text("model").value_or("");
  const std::string older = reader.text("name").value_or("");
  if (record.name.empty()) record.name = older;
  (void)given_name(reader, {"model", "name"});
  record.from = reader.text("from").value_or("");
  record.system = reader.text("system").value_or("");
  record.chat_template = reader.text("template").value_or("");
  record.license = read_license(reader);
  out.stream = reader.boolean("stream").value_or(true);
  record.files = read_files(reader, "files");
  record.adapters = read_files(reader, "adapters");
  out.quantize = reader.text("quantize").value_or("");
  const std::string older_quantize = reader.text("quantization").value_or("");
  if (out.quantize.empty()) out.quantize = older_quantize;
  (void)given_name(reader, {"quantize", "quantization"});
  refuse_what_is_not_read(reader);
  if (record.from.empty() && record.files.empty() && errors.empty()) {
    reader.note("from", "required", "must name the model that it is made of, or files its files",
                nullptr);
  }
  if (!record.from.empty() && !record.files.empty()) {
    reader.note("files", "excludes(from)", "cannot be given with from", nullptr);
  }
  if (const json* sent = reader.find("parameters")) {
    out.gives_parameters = true;
    record.parameters = body.in_order("parameters");
    if (!sent->is_object()) reader.note("parameters", "type(object)", "must be an object", sent);
  }
  if (const json* sent = reader.find("messages")) {
    out.gives_messages = true;
    record.messages = body.in_order("messages");
    if (!sent->is_array()) reader.note("messages", "type(array)", "must be an array", sent);
  }
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  check_settings(record);
  return out;
}

std::optional<std::string> digits_of_digest(std::string_view digest) {
  constexpr size_t kDigits = 64;
  constexpr std::string_view kNames[] = {"sha256:", "sha256-"};
  const bool named =
      std::ranges::any_of(kNames, [&](auto name) { return digest.starts_with(name); });
  std::string out(digest.substr(std::min(digest.size(), kNames[0].size())));
  const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
  if (!named || out.size() != kDigits || !std::ranges::all_of(out, is_digit)) return std::nullopt;
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

OllamaCopy parse_ollama_copy(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OllamaCopy out{.source = reader.text("source").value_or(""),
                 .destination = reader.text("destination").value_or("")};
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::string record_to_json(const OllamaRecord& record) {
  return dump_in_order({{"name", record.name},
                        {"from", record.from},
                        {"files", files_json(record.files)},
                        {"adapters", files_json(record.adapters)},
                        {"system", record.system},
                        {"template", record.chat_template},
                        {"parameters", record.parameters},
                        {"messages", record.messages},
                        {"license", record.license},
                        {"created", record.created}});
}

OllamaRecord record_from_json(std::string_view text) {
  try {
    const JsonBody body(text);
    const OllamaCreate read = parse_ollama_create(text);
    OllamaRecord out = read.record;
    std::vector<FieldError> errors;
    ObjectReader reader(body, errors);
    const json* created = reader.find("created");
    check(created != nullptr && created->is_number_integer(), "record", "it has no time");
    out.created = created->get<int64_t>();
    return out;
  } catch (const InvalidBody& invalid) {
    fail(Code::invalid_argument, "record", invalid.what());
  }
}

std::optional<std::string> with_record(const OllamaRecord& record, Operation operation,
                                       const std::string& text) {
  const bool openai = operation == Operation::openai_chat;
  const bool generate = operation == Operation::ollama_generate;
  if (!record.has_settings()) return text;
  if (operation != Operation::ollama_chat && !openai && !generate) return std::nullopt;
  try {
    const JsonBody checked(text);
  } catch (const InvalidBody&) {
    return text;  // the worker says what is wrong
  }
  const bool adds = !generate && (!record.system.empty() || !record.messages.empty());
  if (adds && !is_valid(text, openai)) return text;
  Json body = parse_in_order(text);
  if (generate) {
    const bool raw = body.value("raw", Json()) == true;
    const bool given = !lacks(body, "system") && body["system"] != "";
    const bool filled = !lacks(body, "suffix") && body["suffix"] != "";
    if (!raw && !given && !filled && !record.system.empty()) body["system"] = record.system;
  } else if (adds) {
    add_messages(record, openai, body);
  }
  openai ? add_openai_parameters(record, body) : add_options(record, body);
  return dump_in_order(body);
}

std::string shown_of_record(const OllamaRecord& record, const std::string& answer) {
  Json out = Json::parse(answer, nullptr, false);
  if (!out.is_object()) return answer;
  out["modelfile"] = modelfile_of(record);
  if (!record.parameters.empty()) out["parameters"] = parameters_text(record.parameters);
  if (!record.chat_template.empty()) out["template"] = record.chat_template;
  if (!record.system.empty()) out["system"] = record.system;
  if (!record.messages.empty()) out["messages"] = record.messages;
  std::string license;
  for (const Json& one : record.license) {
    license += cat(license.empty() ? "" : "\n", one.get<std::string>());
  }
  if (!license.empty()) out["license"] = license;
  if (out["details"].is_object()) out["details"]["parent_model"] = record.from;
  out["modified_at"] = time_of(record);
  return dump(out);
}

json listed_as_record(const OllamaRecord& record, json entry) {
  entry["name"] = entry["model"] = record.name;
  entry["digest"] = ollama_digest(record_to_json(record));
  if (entry.contains("modified_at")) entry["modified_at"] = time_of(record);
  if (entry["details"].is_object()) entry["details"]["parent_model"] = record.from;
  return entry;
}

}  // namespace rbee::server

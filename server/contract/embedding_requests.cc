#include "server/contract/embedding_requests.h"

#include <algorithm>
#include <initializer_list>

#include "rbee/core/cat.h"
#include "server/contract/json_object.h"

namespace rbee::server {
namespace {

using nlohmann::json;

bool is_id(const json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX;
}

void note_size(ObjectReader& reader, const char* name, size_t size, const json* value) {
  if (size >= 1 && size <= kMaxEmbeddingInputs) return;
  reader.note(name, cat("items(1..=", kMaxEmbeddingInputs, ")"),
              cat("must have 1 to ", kMaxEmbeddingInputs, " items"), value);
}

std::optional<std::vector<int32_t>> ids_of(const json& list) {
  if (!list.is_array() || list.empty()) return std::nullopt;
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const json& id : list) {
    if (!is_id(id)) return std::nullopt;
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// The text of {"prompt_string"} or of {"content": [{"type": "text", "text"}, ...]}.
std::optional<std::string> text_of_object(const json& item) {
  if (!item.is_object()) return std::nullopt;
  if (const auto text = item.find("prompt_string"); text != item.end() && text->is_string()) {
    return text->get<std::string>();
  }
  const auto parts = item.find("content");
  if (parts == item.end() || !parts->is_array() || parts->empty()) return std::nullopt;
  std::string out;
  for (const json& part : *parts) {
    const bool text = part.is_object() && part.value("type", json()) == "text" &&
                      part.contains("text") && part["text"].is_string();
    if (!text) return std::nullopt;
    out += part["text"].get<std::string>();
  }
  return out;
}

// A list of ids with texts among them.
std::optional<EmbeddingParts> parts_of(const json& list) {
  if (!list.is_array() || std::ranges::none_of(list, is_id)) return std::nullopt;
  EmbeddingParts out;
  for (const json& part : list) {
    if (is_id(part)) {
      out.emplace_back(part.get<int32_t>());
    } else if (part.is_string()) {
      out.emplace_back(part.get<std::string>());
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<EmbeddingText> one_input(const json& item) {
  if (item.is_string()) return item.get<std::string>();
  if (auto text = text_of_object(item)) return *std::move(text);
  if (auto ids = ids_of(item)) return *std::move(ids);
  if (auto parts = parts_of(item)) return *std::move(parts);
  return std::nullopt;
}

void read_input(ObjectReader& reader, const char* field, std::vector<EmbeddingText>& out) {
  const json* input = reader.find(field);
  const auto wrong = [&](std::string_view name, const json* value) {
    reader.note(name, value == nullptr ? "required" : "type(string | array)",
                "must be a text, token ids, both in a row, an object with a prompt_string or a "
                "content of texts, or a list of those",
                value);
  };
  if (input == nullptr) return wrong(field, nullptr);
  if (auto one = one_input(*input)) return out.push_back(*std::move(one));
  if (!input->is_array()) return wrong(field, input);
  note_size(reader, field, input->size(), input);
  for (size_t i = 0; i < input->size() && i < kMaxEmbeddingInputs; ++i) {
    auto one = one_input((*input)[i]);
    if (!one) return wrong(cat(field, "[", i, "]"), &(*input)[i]);
    out.push_back(*std::move(one));
  }
}

std::optional<int32_t> read_truncate(ObjectReader& reader) {
  return reader.integer("truncate_prompt_tokens", {-1, INT32_MAX});
}

bool read_base64(ObjectReader& reader) {
  const auto format = reader.text("encoding_format");
  if (!format || *format == "float") return false;
  if (*format != "base64") {
    reader.note("encoding_format", "one_of(float, base64)", "must be float or base64",
                reader.find("encoding_format"));
  }
  return true;
}

// A string, or the "text" of an object.
std::optional<std::string> text_of(const json& item) {
  if (item.is_string()) return item.get<std::string>();
  if (item.is_object() && item.contains("text") && item["text"].is_string()) {
    return item["text"].get<std::string>();
  }
  return std::nullopt;
}

// The one of a field's names that is there; the first where none is. Two at once are an error.
const char* given_name(ObjectReader& reader, std::initializer_list<const char*> names) {
  const char* out = nullptr;
  for (const char* name : names) {
    const json* found = reader.find(name);
    if (found == nullptr) continue;
    if (out != nullptr) {
      reader.note(name, cat("exclusive(", out, ")"), cat("cannot be given together with ", out),
                  found);
    } else {
      out = name;
    }
  }
  return out != nullptr ? out : *names.begin();
}

// lone: a text stands for a list of it.
std::vector<std::string> read_texts(ObjectReader& reader, std::initializer_list<const char*> names,
                                    bool lone) {
  const char* const name = given_name(reader, names);
  const json* const list = reader.find(name);
  std::vector<std::string> out;
  if (lone && list != nullptr && list->is_string()) {
    out.push_back(list->get<std::string>());
    return out;
  }
  if (list == nullptr || !list->is_array()) {
    reader.note(name, list == nullptr ? "required" : "type(array)", "must be a list of texts",
                list);
    return out;
  }
  note_size(reader, name, list->size(), list);
  for (size_t i = 0; i < list->size() && i < kMaxEmbeddingInputs; ++i) {
    auto text = text_of((*list)[i]);
    if (!text) {
      reader.note(cat(name, "[", i, "]"), "type(string)", "must be a text, or an object with one",
                  &(*list)[i]);
      return out;
    }
    out.push_back(std::move(*text));
  }
  return out;
}

void refuse(std::vector<FieldError>& errors) {
  if (!errors.empty()) throw InvalidBody(std::move(errors));
}

void read_how(ObjectReader& reader, EmbeddingBody& out) {
  out.dimensions = reader.integer("dimensions", {1, INT32_MAX}).value_or(0);
  out.normalize = reader.boolean("normalize");
  out.prompt_name = reader.text("prompt_name");
  out.truncate = read_truncate(reader);
}

}  // namespace

EmbeddingBody parse_embeddings(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  EmbeddingBody out;
  read_input(reader, "input", out.inputs);
  out.base64 = read_base64(reader);
  read_how(reader, out);
  refuse(errors);
  return out;
}

EmbeddingBody parse_llama_embedding(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  EmbeddingBody out;
  read_input(reader, given_name(reader, {"content", "input"}), out.inputs);
  read_how(reader, out);
  refuse(errors);
  return out;
}

CohereEmbedBody parse_cohere_embed(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  CohereEmbedBody out;
  out.texts = read_texts(reader, {"texts"}, false);
  for (const std::string& each : out.texts) out.generic.inputs.emplace_back(each);
  out.generic.dimensions = reader.integer("output_dimension", {1, INT32_MAX}).value_or(0);
  const json all = json::array({"float"});
  const json* types = reader.find("embedding_types");
  if (types != nullptr && !types->is_array()) {
    reader.note("embedding_types", "type(array)", "must be a list of float and base64", types);
    types = nullptr;
  }
  for (const json& type : types != nullptr ? *types : all) {
    out.floats |= type == "float";
    out.base64 |= type == "base64";
    if (type == "float" || type == "base64") continue;
    reader.note("embedding_types", "one_of(float, base64)", "may hold float and base64", types);
  }
  if (errors.empty() && !out.floats && !out.base64) {
    reader.note("embedding_types", "non_empty", "must hold float or base64", types);
  }
  // Cohere's END and START say which end is cut off; the end is what is cut here.
  const std::string cut = reader.text("truncate").value_or("END");
  if (cut != "NONE") out.generic.truncate = -1;
  if (cut != "NONE" && cut != "END") {
    reader.note("truncate", "one_of(NONE, END)", "must be NONE or END", reader.find("truncate"));
  }
  refuse(errors);
  return out;
}

RerankBody parse_rerank(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  RerankBody out;
  const auto query = reader.text("query");
  if (!query && reader.find("query") == nullptr) {
    reader.note("query", "required", "is missing", nullptr);
  }
  out.query = query.value_or("");
  out.tei = reader.find("documents") == nullptr && reader.find("texts") != nullptr;
  out.documents = read_texts(reader, {"documents", "texts"}, false);
  out.instruction = reader.text("instruction").value_or("");
  out.top_n = static_cast<size_t>(reader.integer("top_n", {0, INT32_MAX}).value_or(0));
  out.return_documents = reader.boolean("return_documents").value_or(true);
  out.truncate = read_truncate(reader);
  out.use_activation = reader.boolean("use_activation").value_or(true);
  const bool raw = reader.boolean("raw_scores").value_or(false);
  const bool texts = reader.boolean("return_text").value_or(false);
  if (out.tei) {
    out.use_activation = !raw;
    out.return_documents = texts;
  }
  refuse(errors);
  return out;
}

ScoreBody parse_score(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ScoreBody out;
  out.first = read_texts(reader, {"text_1", "data_1", "queries"}, true);
  out.second = read_texts(reader, {"text_2", "data_2", "documents"}, true);
  out.instruction = reader.text("instruction").value_or("");
  if (errors.empty() && out.first.size() != 1 && out.first.size() != out.second.size()) {
    reader.note("text_1", "items",
                cat("must have one item, or the ", out.second.size(), " of text_2"),
                reader.find("text_1"));
  }
  out.truncate = read_truncate(reader);
  out.use_activation = reader.boolean("use_activation").value_or(true);
  refuse(errors);
  return out;
}

}  // namespace rbee::server

#include "server/contract/embedding_requests.h"

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

void read_input(ObjectReader& reader, std::vector<EmbeddingText>& out) {
  const json* input = reader.find("input");
  const auto wrong = [&](std::string_view name, const json* value) {
    reader.note(name, value == nullptr ? "required" : "type(string | array)",
                "must be a text or token ids, not empty, or a list of those", value);
  };
  if (input == nullptr) return wrong("input", nullptr);
  if (input->is_string()) {
    if (input->get_ref<const std::string&>().empty()) return wrong("input", input);
    out.emplace_back(input->get<std::string>());
    return;
  }
  if (!input->is_array()) return wrong("input", input);
  if (auto ids = ids_of(*input)) {
    out.emplace_back(std::move(*ids));
    return;
  }
  note_size(reader, "input", input->size(), input);
  for (size_t i = 0; i < input->size() && i < kMaxEmbeddingInputs; ++i) {
    const json& item = (*input)[i];
    if (item.is_string() && !item.get_ref<const std::string&>().empty()) {
      out.emplace_back(item.get<std::string>());
    } else if (auto ids = ids_of(item)) {
      out.emplace_back(std::move(*ids));
    } else {
      return wrong(cat("input[", i, "]"), &item);
    }
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

std::vector<std::string> read_texts(ObjectReader& reader, const char* name, bool lone) {
  const json* list = reader.find(name);
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

}  // namespace

EmbeddingBody parse_embeddings(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  EmbeddingBody out;
  read_input(reader, out.inputs);
  out.base64 = read_base64(reader);
  out.dimensions = reader.integer("dimensions", {1, INT32_MAX}).value_or(0);
  out.normalize = reader.boolean("normalize");
  out.prompt_name = reader.text("prompt_name");
  out.truncate = read_truncate(reader);
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
  out.documents = read_texts(reader, "documents", false);
  out.instruction = reader.text("instruction").value_or("");
  out.top_n = static_cast<size_t>(reader.integer("top_n", {0, INT32_MAX}).value_or(0));
  out.return_documents = reader.boolean("return_documents").value_or(true);
  out.truncate = read_truncate(reader);
  out.use_activation = reader.boolean("use_activation").value_or(true);
  refuse(errors);
  return out;
}

ScoreBody parse_score(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ScoreBody out;
  out.first = read_texts(reader, "text_1", true);
  out.second = read_texts(reader, "text_2", true);
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

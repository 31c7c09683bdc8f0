#include "server/apis/embeddings/request.h"

#include <algorithm>
#include <initializer_list>

#include "rbee/core/cat.h"
#include "server/wire/chat_fields.h"
#include "server/wire/json_object.h"
#include "server/wire/other_names.h"
#include "server/wire/reasoning_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

// The most vectors that a header describes: clients take headers of up to 64 KiB.
constexpr size_t kMaxInHeader = 256;

// The engine checks whether the model has the id.
bool is_id(const json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= INT32_MAX;
  return value.is_number_integer() && value.get<int64_t>() >= INT32_MIN;
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

// A list of ids and texts.
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

// The value of field `name`, one of `values`; absent: the first.
template <typename T>
T read_choice(ObjectReader& reader, const char* name,
              std::initializer_list<std::pair<std::string_view, T>> values) {
  const auto text = reader.text(name);
  if (!text) return values.begin()->second;
  std::string known;
  for (const auto& [value, meaning] : values) {
    if (*text == value) return meaning;
    known += cat(known.empty() ? "" : ", ", value);
  }
  reader.note(name, cat("one_of(", known, ")"), cat("must be one of ", known), reader.find(name));
  return values.begin()->second;
}

VectorEncoding read_encoding(ObjectReader& reader) {
  using enum VectorFormat;
  using enum VectorType;
  return {
      .format = read_choice<VectorFormat>(
          reader, "encoding_format",
          {{"float", numbers}, {"base64", base64}, {"bytes", bytes}, {"bytes_only", bytes_only}}),
      .type = read_choice<VectorType>(reader, "embed_dtype",
                                      {{"float32", f32},
                                       {"float16", f16},
                                       {"bfloat16", bf16},
                                       {"fp8_e4m3", f8e4m3},
                                       {"fp8_e5m2", f8e5m2}}),
      .big_endian = read_choice<bool>(reader, "endianness",
                                      {{"native", false}, {"little", false}, {"big", true}})};
}

// A string, or the "text" of an object.
std::optional<std::string> text_of(const json& item) {
  if (item.is_string()) return item.get<std::string>();
  if (item.is_object() && item.contains("text") && item["text"].is_string()) {
    return item["text"].get<std::string>();
  }
  return std::nullopt;
}

// lone: a single text counts as a list of one.
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
  const std::optional<bool> activation = reader.boolean("use_activation");  // vLLM's newer name
  if (activation) out.normalize = activation;
  out.prompt_name = reader.text("prompt_name");
  out.truncate = read_truncate(reader);
  out.keeps_last = read_choice<bool>(reader, "truncation_side", {{"right", false}, {"left", true}});
}

// The fields of a chat, which have no effect if the body has no messages. As in vLLM, the template
// does not begin an assistant's turn, and no special tokens are added.
void read_chat(ObjectReader& reader, const JsonBody& body, std::vector<FieldError>& errors,
               EmbeddingBody& out) {
  if (reader.find("messages") != nullptr) out.messages = read_messages(reader, errors);
  read_reasoning(reader, body, out.chat);
  out.chat.add_generation_prompt = reader.boolean("add_generation_prompt").value_or(false);
  out.chat.continue_last = reader.boolean("continue_final_message").value_or(false);
  if (out.chat.add_generation_prompt && out.chat.continue_last) {
    reader.note("continue_final_message", "exclusive(add_generation_prompt)",
                "cannot be given together with add_generation_prompt", nullptr);
  }
  for (size_t i = 0; i < out.messages.size(); ++i) {
    if (out.messages[i].pictures.empty()) continue;
    reader.note(cat("messages[", i, "].content"), "unsupported", "holds a picture; texts are read",
                nullptr);
  }
}

EmbeddingBody read_embeddings(ObjectReader& reader, const JsonBody& body,
                              std::vector<FieldError>& errors) {
  EmbeddingBody out;
  const bool chat = reader.find("messages") != nullptr;
  if (chat && reader.find("input") != nullptr) {
    reader.note("messages", "exclusive(input)", "cannot be given together with input", nullptr);
  }
  read_chat(reader, body, errors, out);
  if (!chat) read_input(reader, "input", out.inputs);
  out.add_special = reader.boolean("add_special_tokens").value_or(!chat);
  out.encoding = read_encoding(reader);
  read_how(reader, out);
  if (out.encoding.format == VectorFormat::bytes && out.inputs.size() > kMaxInHeader) {
    reader.note("encoding_format", cat("max_count(", kMaxInHeader, ")"),
                cat("bytes tells where vectors are in a header, of ", kMaxInHeader,
                    " at most; bytes_only takes more"),
                reader.find("encoding_format"));
  }
  return out;
}

// 0 = no limit.
int32_t read_pair_limit(ObjectReader& reader, const char* name) {
  const json* value = reader.find(name);
  if (value == nullptr) return 0;
  if (value->is_number_integer() && *value >= 0 && *value <= INT32_MAX)
    return value->get<int32_t>();
  reader.note(name, cat("range(0..=", INT32_MAX, ")"),
              cat("must be a non-negative integer, at most ", INT32_MAX), value);
  return 0;
}

PairLimits read_pair_limits(ObjectReader& reader) {
  return {.truncate = read_truncate(reader),
          .query = read_pair_limit(reader, "max_tokens_per_query"),
          .document = read_pair_limit(reader, "max_tokens_per_doc")};
}

// The requested kinds of vectors; absent: floats.
void read_embedding_types(ObjectReader& reader, CohereEmbedBody& out) {
  const json* types = reader.find("embedding_types");
  if (types == nullptr) {
    out.floats = true;
    return;
  }
  const std::pair<const char*, bool*> known[] = {
      {"float", &out.floats}, {"base64", &out.base64}, {"int8", &out.int8},
      {"uint8", &out.uint8},  {"binary", &out.binary}, {"ubinary", &out.ubinary}};
  bool wrong = !types->is_array() || types->empty();
  for (const json& type : types->is_array() ? *types : json::array()) {
    const auto at = std::ranges::find_if(known, [&](auto& each) { return type == each.first; });
    if (at == std::end(known)) {
      wrong = true;
    } else {
      *at->second = true;
    }
  }
  if (!wrong) return;
  reader.note("embedding_types", "type(array), one_of(float, base64, int8, uint8, binary, ubinary)",
              "must be a list of one or more of float, base64, int8, uint8, binary and ubinary",
              types);
}

}  // namespace

EmbeddingBody parse_embeddings(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  EmbeddingBody out = read_embeddings(reader, body, errors);
  refuse(errors);
  return out;
}

EmbeddingBody parse_pooling(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  EmbeddingBody out = read_embeddings(reader, body, errors);
  out.task = reader.text("task").value_or("");
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

EmbeddingBody parse_tei_embed(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  EmbeddingBody out;
  read_input(reader, "inputs", out.inputs);
  out.normalize = reader.boolean("normalize").value_or(true);
  if (reader.boolean("truncate").value_or(false)) out.truncate = -1;
  out.keeps_last =
      read_choice<bool>(reader, "truncation_direction",
                        {{"right", false}, {"left", true}, {"Right", false}, {"Left", true}});
  out.prompt_name = reader.text("prompt_name");
  out.dimensions = reader.integer("dimensions", {1, INT32_MAX}).value_or(0);
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
  out.input_type = reader.text("input_type").value_or("");
  read_embedding_types(reader, out);
  enum class Cut : uint8_t { end, start, none };
  const Cut cut = read_choice<Cut>(reader, "truncate",
                                   {{"END", Cut::end}, {"START", Cut::start}, {"NONE", Cut::none}});
  if (cut != Cut::none) out.generic.truncate = -1;
  out.generic.keeps_last = cut == Cut::start;
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
  out.limits = read_pair_limits(reader);
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
  out.second = read_texts(reader, {"text_2", "data_2", "documents", "items"}, true);
  out.instruction = reader.text("instruction").value_or("");
  if (errors.empty() && out.first.size() != 1 && out.first.size() != out.second.size()) {
    reader.note("text_1", "items",
                cat("must have one item, or the ", out.second.size(), " of text_2"),
                reader.find("text_1"));
  }
  out.limits = read_pair_limits(reader);
  out.use_activation = reader.boolean("use_activation").value_or(true);
  refuse(errors);
  return out;
}

Invocation parse_invocation(std::string_view text) {
  const JsonBody body(text);
  const auto any = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return body.has(name); });
  };
  if (any({"input", "messages"})) return Invocation::embeddings;
  if (any({"query"})) return Invocation::rerank;
  if (any({"text_1", "data_1", "queries"})) return Invocation::score;
  std::vector<FieldError> errors;
  ObjectReader(body, errors)
      .note("input", "required", "is missing (or query, or queries)", nullptr);
  throw InvalidBody(std::move(errors));
}

}  // namespace rbee::server

// Each documented field of each body, with a value of every type that its schema does not name: it
// is refused by its name, never ignored. The fields come from the OpenAPI documents, which
// api_document_test.cc compares with the parsers, so new fields are covered by themselves; the
// parsers tell those that the documents omit.

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rbee/core/cat.h"
#include "server/apis/a1111/request.h"
#include "server/apis/anthropic/request.h"
#include "server/apis/cohere/request.h"
#include "server/apis/embeddings/request.h"
#include "server/apis/embeddings/routes.h"
#include "server/apis/llama/request.h"
#include "server/apis/llama/text_request.h"
#include "server/apis/ollama/file_requests.h"
#include "server/apis/ollama/request.h"
#include "server/apis/openai/image_request.h"
#include "server/apis/openai/request.h"
#include "server/apis/own/image_request.h"
#include "server/apis/own/request.h"
#include "server/apis/responses/request.h"
#include "server/apis/tgi/request.h"
#include "server/image/page.h"
#include "server/llm/page.h"
#include "server/wire/generate_request.h"
#include "server/wire/json_object.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Types = std::set<std::string>;  // JSON schema's names

constexpr int kMaxInner = 3;  // objects and lists within one another

std::string type_of(const json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : "object";
}

// The types of values that a schema accepts; nothing: any. Within `document`.
class Schemas {
 public:
  explicit Schemas(std::string_view document) : document_(json::parse(document)) {}

  const json& of(const char* path) const {
    const json& content = document_.at("paths").at(path).at("post").at("requestBody").at("content");
    return followed(content.at("application/json").at("schema"));
  }

  const json& followed(const json& schema) const {
    const auto ref = schema.find("$ref");
    if (ref == schema.end()) return schema;
    return followed(document_.at(json::json_pointer(ref->get<std::string>().substr(1))));
  }

  std::optional<Types> types(const json& unfollowed) const {
    const json& schema = followed(unfollowed);
    std::optional<Types> out;
    if (const auto type = schema.find("type"); type != schema.end()) {
      narrow(out, type->is_array() ? type->get<Types>() : Types{type->get<std::string>()});
    }
    if (const auto value = schema.find("const"); value != schema.end()) {
      narrow(out, Types{type_of(*value)});
    }
    if (const auto values = schema.find("enum"); values != schema.end()) {
      Types named;
      for (const json& value : *values) named.insert(type_of(value));
      narrow(out, named);
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      if (schema.contains(key)) narrow(out, joined(schema.at(key)));
    }
    for (const json& part : schema.value("allOf", json::array())) narrow(out, types(part));
    return out;
  }

  // Calls `use` with each part of a schema that says more of the same value, itself included.
  void each_part(const json& unfollowed, const std::function<void(const json&)>& use) const {
    const json& schema = followed(unfollowed);
    use(schema);
    for (const char* key : {"allOf", "anyOf", "oneOf"}) {
      for (const json& part : schema.value(key, json::array())) each_part(part, use);
    }
  }

 private:
  static void narrow(std::optional<Types>& types, const std::optional<Types>& more) {
    if (!more) return;
    if (!types) {
      types = more;
      return;
    }
    std::erase_if(*types, [&](const std::string& type) { return !more->contains(type); });
  }
  std::optional<Types> joined(const json& choices) const {
    Types out;
    for (const json& choice : choices) {
      const std::optional<Types> more = types(choice);
      if (!more) return std::nullopt;
      out.insert(more->begin(), more->end());
    }
    return out;
  }

  const json document_;
};

// By place, a JSON pointer such as "/messages/0/role"; the first items of lists stand for all.
using Fields = std::map<std::string, std::optional<Types>>;

void add_fields(const Schemas& schemas, const json& schema, const std::string& place, int inner,
                Fields& out) {
  const auto add = [&](const std::string& inner_place, const json& field) {
    const auto types = schemas.types(field);
    const auto [at, first] = out.emplace(inner_place, types);
    if (!first && at->second && types) at->second->insert(types->begin(), types->end());
    if (!types) at->second = std::nullopt;
    if (inner < kMaxInner) add_fields(schemas, field, inner_place, inner + 1, out);
  };
  schemas.each_part(schema, [&](const json& part) {
    const json properties = part.value("properties", json::object());
    for (const auto& field : properties.items()) add(place + "/" + field.key(), field.value());
    if (part.contains("items") && !place.empty()) add(place + "/0", part.at("items"));
  });
}

// `body` with `value` at the place; what stands in its way is replaced.
json with(json body, const std::string& place, const json& value) {
  json* at = &body;
  for (size_t begin = 1, end = 0; end != std::string::npos; begin = end + 1) {
    end = place.find('/', begin);
    const std::string name = place.substr(begin, end - begin);
    if (name == "0") {
      if (!at->is_array() || at->empty()) *at = json::array({nullptr});
      at = &at->front();
    } else {
      if (!at->is_object()) *at = json::object();
      at = &(*at)[name];
    }
  }
  *at = value;
  return body;
}

struct Body {
  const char* path;
  std::function<void(std::string_view)> parse;
  std::vector<json> bodies;        // valid ones
  std::set<std::string> own = {};  // its outermost fields; empty: all that are documented
};

std::string outermost(const std::string& place) {
  return place.substr(1, place.find('/', 1) - 1);
}

// Whether an error is about the outermost field of this place.
bool names(const InvalidBody& refusal, const std::string& place) {
  const std::string field = outermost(place);
  return std::ranges::any_of(refusal.errors(), [&](const FieldError& error) {
    return error.field == field || error.field.starts_with(field + ".") ||
           error.field.starts_with(field + "[") ||
           error.constraint == cat("exclusive(", field, ")");
  });
}

const std::vector<json>& samples() {
  static const std::vector<json> all = {true, 7.5, "zz", {{7.5}}, {{"zz", json::array()}}};
  return all;
}

bool allowed(const Types& types, const json& value) {
  const std::string type = type_of(value);
  return types.contains(type) || (type == "integer" && types.contains("number"));
}

void expect_refusals(const Schemas& schemas, const Body& body) {
  Fields fields;
  add_fields(schemas, schemas.of(body.path), "", 0, fields);
  for (const json& valid : body.bodies) {
    ASSERT_NO_THROW(body.parse(valid.dump())) << body.path << valid;
    for (const auto& [place, types] : fields) {
      const bool own = body.own.empty() || body.own.contains(outermost(place));
      if (!types || !own) continue;
      for (const json& value : samples()) {
        if (allowed(*types, value)) continue;
        try {
          body.parse(with(valid, place, value).dump());
          ADD_FAILURE() << body.path << ' ' << place << ' ' << value << " is taken beside "
                        << valid;
        } catch (const InvalidBody& refusal) {
          EXPECT_TRUE(names(refusal, place))
              << body.path << ' ' << place << ' ' << value << ": " << refusal.errors()[0].message;
        }
      }
    }
  }
}

// Of one field with several names, two values may not be told apart by their order.
struct Names {
  const char* path;
  std::function<void(std::string_view)> parse;
  json body;
  std::vector<std::string> names;
  json value, other;
};

void expect_one_value(const Names& one) {
  for (const std::string& first : one.names) {
    for (const std::string& second : one.names) {
      if (first == second) continue;
      json body = one.body;
      body[first] = body[second] = one.value;
      EXPECT_NO_THROW(one.parse(body.dump())) << one.path << body;
      body[first] = nullptr;
      EXPECT_NO_THROW(one.parse(body.dump())) << one.path << body;
      body[first] = one.other;
      try {
        one.parse(body.dump());
        ADD_FAILURE() << one.path << body << " is taken";
      } catch (const InvalidBody& refusal) {
        const std::string& message = refusal.errors()[0].message;
        EXPECT_THAT(message, ::testing::HasSubstr(first)) << one.path << body;
        EXPECT_THAT(message, ::testing::HasSubstr(second)) << one.path << body;
        EXPECT_EQ(refusal.errors().size(), 1U) << one.path << body;
      }
    }
  }
}

// Aliases, and fields that are read to be refused: the documents omit them, so their types are not
// known, but none takes a list in a list.
void expect_refusals_of_others(const Schemas& schemas, const Body& body) {
  Fields fields;
  add_fields(schemas, schemas.of(body.path), "", 0, fields);
  for (const json& valid : body.bodies) {
    std::set<std::string> read;
    {
      const NamesRead names;
      body.parse(valid.dump());
      read = names.names();
    }
    for (const std::string& name : read) {
      const bool inner = name.find_first_of(".[") != std::string::npos;
      if (inner || fields.contains("/" + name) || valid.contains(name)) continue;
      const json value = {{7.5}};
      EXPECT_THROW(body.parse(with(valid, "/" + name, value).dump()), InvalidBody)
          << body.path << ' ' << name;
    }
  }
}

const json kMessages = {{{"role", "user"}, {"content", "Hi"}}};
const json kChat = {{"messages", kMessages}};
const json kPrompt = {{"prompt", "Hi"}};
const json kInput = {{"input", "Hi"}};
// Of /tokenize, whose other fields are a chat's.
const std::set<std::string> kOfTexts = {
    "content",       "prompt",      "add_special",      "add_special_tokens",
    "parse_special", "with_pieces", "return_token_strs"};

TEST(WrongTypes, OfChatWorkersAreRefused) {
  const Body all[] = {
      {"/v1/jobs", parse_generate, {kPrompt, kChat}},
      {"/v1/chat/completions", parse_openai_chat, {kChat}},
      {"/v1/completions", parse_openai_completion, {kPrompt}},
      {"/v1/responses", parse_response_request, {kInput}},
      {"/v1/messages", parse_anthropic, {{{"messages", kMessages}, {"max_tokens", 1}}}},
      {"/v1/messages/count_tokens", parse_anthropic_count, {kChat}},
      {"/completion", parse_llama_completion, {kPrompt}},
      {"/infill", parse_llama_infill, {{{"input_prefix", "a"}, {"input_suffix", "b"}}}},
      {"/detokenize", parse_detokenize, {{{"tokens", {1, 2}}}}},
      {"/generate", parse_tgi, {{{"inputs", "Hi"}}}},
      {"/v2/chat", parse_cohere_chat, {{{"model", "m"}, {"messages", kMessages}}}},
      {"/api/generate", parse_ollama_generate, {{{"model", "m"}, {"prompt", "Hi"}}}},
      {"/api/chat", parse_ollama_chat, {{{"model", "m"}, {"messages", kMessages}}}},
      {"/api/show", parse_ollama_show, {{{"model", "m"}}}},
      {"/apply-template", parse_apply_template, {kChat}},
      {"/tokenize", parse_tokenize, {kChat}},
      {"/tokenize", parse_tokenize, {{{"content", "Hi"}}, kPrompt}, kOfTexts},
  };
  const Schemas schemas(chat_api_document());
  for (const Body& body : all) {
    expect_refusals(schemas, body);
    expect_refusals_of_others(schemas, body);
  }
}

TEST(WrongTypes, OfEmbeddingWorkersAreRefused) {
  const json pair = {{"text_1", "a"}, {"text_2", "b"}};
  const Body all[] = {
      {"/v1/embeddings", parse_embeddings, {kInput, kChat}},
      {"/pooling", parse_pooling, {kInput, kChat}},
      {"/embedding", parse_llama_embedding, {{{"content", "Hi"}}, kInput}},
      {"/v2/embed", parse_cohere_embed, {{{"model", "m"}, {"texts", {"Hi"}}}}},
      {"/embed", parse_tei_embed, {{{"inputs", "Hi"}}}},
      {"/api/embed", parse_ollama_embed, {{{"model", "m"}, {"input", "Hi"}}}},
      {"/api/embeddings", parse_ollama_embeddings, {{{"model", "m"}, {"prompt", "Hi"}}}},
      {"/rerank", parse_rerank, {{{"query", "a"}, {"documents", {"b"}}}}},
      {"/score", parse_score, {pair}},
      {"/tokenize", parse_tokenize, {{{"content", "Hi"}}, kPrompt}, kOfTexts},
  };
  const Schemas schemas(embedding_api_files().front().text);
  for (const Body& body : all) {
    expect_refusals(schemas, body);
    expect_refusals_of_others(schemas, body);
  }
}

TEST(WrongTypes, OfPictureWorkersAreRefused) {
  const auto edit = [](std::string_view body) { parse_openai_edit(body); };
  const auto variation = [](std::string_view body) {
    parse_openai_edit(body, OpenAiEdit::variation);
  };
  const char* kPicture = "iVBORw0KGgo=";
  const Body all[] = {
      {"/v1/jobs",
       parse_image_job,
       {{{"operation", "image_generation"}, {"prompt", "a"}},
        {{"operation", "image_inpaint"},
         {"prompt", "a"},
         {"input_image", kPicture},
         {"mask_image", kPicture}}}},
      {"/v1/images/generations", parse_openai_generation, {kPrompt}},
      {"/v1/images/edits", edit, {{{"prompt", "a"}, {"image", kPicture}}}},
      {"/v1/images/variations", variation, {{{"image", kPicture}}}},
      {"/sdapi/v1/txt2img", [](std::string_view body) { parse_sdapi(body, false); }, {kPrompt}},
      {"/sdapi/v1/img2img",
       [](std::string_view body) { parse_sdapi(body, true); },
       {{{"prompt", "a"}, {"init_images", {kPicture}}}}},
      {"/sdapi/v1/options", parse_sdapi_options, {json::object()}},
      {"/sdapi/v1/png-info", parse_png_info, {{{"image", kPicture}}}},
      {"/internal/progress", parse_sdapi_task, {json::object()}},
      {"/sdapi/v1/extra-single-image",
       [](std::string_view body) { parse_sdapi_upscale(body, false); },
       {{{"image", kPicture}}}},
      {"/sdapi/v1/extra-batch-images",
       [](std::string_view body) { parse_sdapi_upscale(body, true); },
       {{{"imageList", {{{"data", kPicture}, {"name", "a"}}}}}}},
  };
  const Schemas schemas(image_api_files().front().text);
  for (const Body& body : all) {
    expect_refusals(schemas, body);
    expect_refusals_of_others(schemas, body);
  }
}

TEST(OtherNames, MayNotDiffer) {
  const auto chat = [](std::string_view body) { parse_openai_chat(body); };
  const auto text = [](std::string_view body) { parse_openai_completion(body); };
  const auto llama = [](std::string_view body) { parse_llama_completion(body); };
  const auto picture = [](std::string_view body) { parse_image_job(body); };
  const auto sdapi = [](std::string_view body) { parse_sdapi(body, false); };
  const json job = {{"operation", "image_generation"}, {"prompt", "a"}};
  json transform = job, inpaint = job;
  transform["operation"] = "image_transform";
  inpaint["operation"] = "image_inpaint";
  inpaint["image"] = "iVBORw0KGgo=";
  const Names all[] = {
      {"chat", chat, kChat, {"n_predict", "max_tokens", "max_completion_tokens"}, 5, 6},
      {"chat", chat, kChat, {"repetition_penalty", "repeat_penalty"}, 1.5, 1.25},
      {"completion", text, kPrompt, {"n_predict", "max_tokens"}, 5, 6},
      {"llama", llama, kPrompt, {"n_predict", "max_tokens"}, 5, -1},
      {"llama", llama, kPrompt, {"repetition_penalty", "repeat_penalty"}, 1.5, 1.25},
      {"picture", picture, job, {"steps", "num_inference_steps"}, 5, 6},
      {"picture", picture, job, {"guidance_scale", "cfg_scale"}, 5, 6.5},
      {"picture", picture, job, {"sampler", "sampler_name"}, "euler", "ddim"},
      {"picture", picture, job, {"schedule", "scheduler"}, "karras", "simple"},
      {"picture", picture, job, {"count", "num_images"}, 1, 2},
      {"picture", picture, job, {"loras", "lora"}, {{{"path", "a"}}}, {{{"path", "b"}}}},
      {"transform", picture, transform, {"input_image", "init_image", "image"}, "aaaa", "bbbb"},
      {"transform", picture, inpaint, {"mask_image", "mask"}, "aaaa", "bbbb"},
      {"sdapi", sdapi, kPrompt, {"strength", "denoising_strength"}, 0.5, 0.25},
      {"show",
       [](std::string_view body) { parse_ollama_show(body); },
       json::object(),
       {"model", "name"},
       "a",
       "b"},
      {"pull",
       [](std::string_view body) { parse_ollama_pull(body); },
       json::object(),
       {"model", "name"},
       "a",
       "b"},
      {"embedding",
       [](std::string_view body) { parse_llama_embedding(body); },
       json::object(),
       {"content", "input"},
       "a",
       "b"},
      {"score",
       [](std::string_view body) { parse_score(body); },
       {{"text_2", "b"}},
       {"text_1", "data_1", "queries"},
       "a",
       "b"},
  };
  for (const Names& one : all) expect_one_value(one);
}

// AUTOMATIC1111's answers repeat its default there, and clients send answers again.
TEST(OtherNames, OfTheSamplerAnIndexComesLast) {
  const auto sampler = [](json body) {
    body["prompt"] = "a";
    return parse_sdapi(body.dump(), false).settings.sampler;
  };
  EXPECT_EQ(sampler({{"sampler_name", "DDIM"}, {"sampler_index", "Euler"}}), "DDIM");
  EXPECT_EQ(sampler({{"sampler_name", ""}, {"sampler_index", "Euler"}}), "Euler");
  EXPECT_EQ(sampler({{"sampler", ""}, {"sampler_name", "DDIM"}}), "DDIM");
}

}  // namespace
}  // namespace rbee::server

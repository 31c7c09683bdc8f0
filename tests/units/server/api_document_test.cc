// OpenAPI documents of the text workers, compared with the fields that their parsers read.

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "rbee/core/cat.h"
#include "server/apis/a1111/request.h"
#include "server/apis/anthropic/request.h"
#include "server/apis/chat_routes.h"
#include "server/apis/cohere/request.h"
#include "server/apis/embeddings/request.h"
#include "server/apis/embeddings/routes.h"
#include "server/apis/image_routes.h"
#include "server/apis/llama/request.h"
#include "server/apis/llama/text_request.h"
#include "server/apis/ollama/request.h"
#include "server/apis/openai/image_request.h"
#include "server/apis/openai/request.h"
#include "server/apis/own/image_request.h"
#include "server/apis/own/request.h"
#include "server/apis/responses/conversation.h"
#include "server/apis/responses/request.h"
#include "server/apis/tgi/request.h"
#include "server/image/page.h"
#include "server/llm/page.h"
#include "server/wire/json_object.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Names = std::set<std::string>;

// For objects that the schema accepts, not for those in their fields.
void collect(const json& document, const json& schema, Names& names) {
  if (const auto ref = schema.find("$ref"); ref != schema.end()) {
    const json::json_pointer place(ref->get<std::string>().substr(1));
    return collect(document, document.at(place), names);
  }
  for (const char* key : {"allOf", "anyOf", "oneOf"}) {
    for (const json& part : schema.value(key, json::array())) collect(document, part, names);
  }
  const json properties = schema.value("properties", json::object());
  for (const auto& field : properties.items()) names.insert(field.key());
}

Names documented(const json& document, const char* path) {
  Names out;
  collect(document,
          document.at("paths")
              .at(path)
              .at("post")
              .at("requestBody")
              .at("content")
              .at("application/json")
              .at("schema"),
          out);
  return out;
}

// The document's own form has no "{+id}". Files of pages are no part of the API.
template <typename Routes>
void expect_documented(const json& document, const Routes& routes) {
  for (const auto& route : routes) {
    std::string path(route.pattern);
    if (path.starts_with("/page/")) continue;
    if (const size_t plus = path.find("{+"); plus != std::string::npos) path.erase(plus + 1, 1);
    std::string method(route.method);
    std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
    const json operations = document.at("paths").value(path, json::object());
    EXPECT_TRUE(operations.contains(method)) << route.method << ' ' << path;
  }
}

TEST(ApiDocument, HoldsEveryRoute) {
  const json chat = json::parse(chat_api_document());
  expect_documented(chat, chat_route_list());
  expect_documented(chat, job_routes());
  const json image = json::parse(image_api_files().front().text);
  expect_documented(image, image_route_list());
  expect_documented(image, job_routes());
  const json embedding = json::parse(embedding_api_files().front().text);
  expect_documented(embedding, embedding_route_list());
  expect_documented(embedding, ranking_route_list());
  expect_documented(embedding, pooling_route_list());
  expect_documented(embedding, job_routes());
}

TEST(ApiDocument, OperationsHaveNamesOfTheirOwn) {
  for (const std::string_view text :
       {chat_api_document(), image_api_files().front().text, embedding_api_files().front().text}) {
    Names names;
    const json document = json::parse(text);
    for (const json& operations : document.at("paths")) {
      for (const json& operation : operations) {
        if (!operation.is_object() || !operation.contains("operationId")) continue;
        const auto name = operation.at("operationId").get<std::string>();
        EXPECT_TRUE(names.insert(name).second) << name;
      }
    }
  }
}

struct Body {
  const char* path;
  std::function<void(std::string_view)> parse;
  std::vector<const char*> bodies = {"{}"};
  Names refused = {};  // read only to be refused
};

Names read_by(const Body& body) {
  const NamesRead read;
  for (const char* text : body.bodies) {
    try {
      body.parse(text);
    } catch (const InvalidBody&) {
      // Missing fields are reported after everything was read.
    }
  }
  Names out;
  for (const std::string& name : read.names()) {
    const bool inner = name.find_first_of(".[") != std::string::npos;
    if (!inner && !body.refused.contains(name)) out.insert(name);
  }
  return out;
}

TEST(ApiDocument, HoldsTheFieldsThatAreRead) {
  const json document = json::parse(chat_api_document());
  const Names vllm = {"chat_template", "documents",           "include_stop_str_in_output",
                      "prompt_embeds", "skip_special_tokens", "use_beam_search"};
  Names openai = {"suffix", "modalities", "audio", "web_search_options", "moderation"};
  openai.insert(vllm.begin(), vllm.end());
  Names responses = {
      "access_programs", "background_options", "context_management", "image", "moderation",
      "prompt",          "include_reasoning"};
  responses.insert(vllm.begin(), vllm.end());
  const Names llama = {"grammar_lazy", "image_data", "n", "n_cmpl"};
  const auto with = [](Names names, std::initializer_list<const char*> more) {
    names.insert(more.begin(), more.end());
    return names;
  };
  const Body all[] = {
      {"/v1/jobs", parse_generate},
      {"/v1/infer", parse_generate},
      {"/v1/chat/completions", parse_openai_chat, {"{}"}, with(openai, {"best_of"})},
      {"/v1/completions",
       parse_openai_completion,
       {"{}"},
       with(openai, {"tools", "functions", "function_call", "include_reasoning"})},
      {"/v1/responses", parse_response_request, {"{}"}, responses},
      {"/v1/conversations", parse_conversation},
      {"/v1/conversations/{conversation_id}", parse_conversation_update},
      {"/v1/conversations/{conversation_id}/items", parse_conversation_items},
      {"/v1/messages", parse_anthropic, {"{}"}, {"container", "mcp_servers"}},
      {"/v1/messages/count_tokens", parse_anthropic_count},
      {"/v1/cancel", parse_cancel},
      {"/completion", parse_llama_completion, {"{}"}, llama},
      {"/infill", parse_llama_infill, {"{}"}, llama},
      {"/detokenize", parse_detokenize},
      {"/generate", parse_tgi},
      {"/v2/chat",
       parse_cohere_chat,
       {"{}"},
       {"stop", "functions", "function_call", "documents", "parallel_tool_calls"}},
      {"/api/generate",
       parse_ollama_generate,
       {"{}"},
       {"_debug_render_only", "template", "context", "width", "height", "steps"}},
      {"/api/chat",
       parse_ollama_chat,
       {"{}"},
       {"_debug_render_only", "functions", "function_call"}},
      {"/api/show", parse_ollama_show},
      {"/apply-template", parse_apply_template, {"{}"}, with(openai, {"best_of"})},
      {"/tokenize",
       parse_tokenize,
       {R"({"content":""})", R"({"prompt":""})", R"({"messages":[]})"},
       with(openai, {"best_of"})},
  };
  for (const Body& body : all) {
    EXPECT_THAT(documented(document, body.path), ::testing::ContainerEq(read_by(body)))
        << body.path;
  }
}

// Features that are not supported.
template <typename Parse>
Names refused(Parse parse, const json& body) {
  Names out;
  try {
    parse(body.dump());
  } catch (const InvalidBody& error) {
    for (const FieldError& field : error.errors()) {
      if (field.constraint == "unsupported") out.insert(field.field);
    }
  }
  return out;
}

// Unsupported fields that would change an answer are refused, not ignored.
TEST(ApiDocument, FieldsThatAreNotDoneAreRefusedByName) {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const json chat = {{"messages", messages},
                     {"audio", json::object()},
                     {"web_search_options", json::object()},
                     {"moderation", json::object()}};
  EXPECT_EQ(refused(parse_openai_chat, chat), (Names{"audio", "web_search_options", "moderation"}));
  EXPECT_EQ(refused(parse_openai_chat, {{"messages", messages}, {"function_call", "auto"}}),
            Names{});
  const json neutral = {{"include_stop_str_in_output", false},
                        {"skip_special_tokens", true},
                        {"documents", json::array()},
                        {"use_beam_search", false},
                        {"best_of", 1},
                        {"structured_outputs", json::object()}};
  const json wrong = {{"include_stop_str_in_output", true},
                      {"skip_special_tokens", false},
                      {"chat_template", "x"},
                      {"documents", {{{"text", "x"}}}},
                      {"use_beam_search", true},
                      {"best_of", 2},
                      {"structured_outputs", {{"structural_tag", "{}"}}}};
  const auto chat_with = [&](json fields) {
    fields["messages"] = messages;
    return fields;
  };
  EXPECT_EQ(refused(parse_openai_chat, chat_with(neutral)), Names{});
  Names all_wrong{"structured_outputs.structural_tag"};
  for (const auto& field : wrong.items()) all_wrong.insert(field.key());
  all_wrong.erase("structured_outputs");
  EXPECT_EQ(refused(parse_openai_chat, chat_with(wrong)), all_wrong);
  const json response = {{"input", "Hi"}, {"chat_template", "x"}, {"include_reasoning", false}};
  EXPECT_EQ(refused(parse_response_request, response),
            (Names{"chat_template", "include_reasoning"}));
  EXPECT_EQ(refused(parse_openai_completion, {{"prompt", "a"}, {"include_reasoning", false}}),
            Names{"include_reasoning"});
}

TEST(ApiDocument, SoAreThoseOfOtherRoutes) {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const json response = {{"input", "Hi"},
                         {"context_management", {json::object()}},
                         {"image", json::object()},
                         {"moderation", json::object()},
                         {"background_options", json::object()},
                         {"access_programs", {"x"}}};
  EXPECT_EQ(refused(parse_response_request, response),
            (Names{"context_management", "image", "moderation", "background_options",
                   "access_programs"}));
  const json completion = {{"prompt", "a"}, {"prompt_embeds", "x"}};
  EXPECT_EQ(refused(parse_openai_completion, completion), Names{"prompt_embeds"});
  const json both = {{"prompt", "a"}, {"best_of", 2}};
  EXPECT_EQ(refused(parse_openai_completion, both), Names{});
  const json several = {
      {"prompt", "a"}, {"n", 2}, {"n_cmpl", 2}, {"grammar_lazy", true}, {"image_data", {"x"}}};
  EXPECT_EQ(refused(parse_llama_completion, several),
            (Names{"n", "n_cmpl", "grammar_lazy", "image_data"}));
  const json one = {
      {"prompt", "a"}, {"n", 1}, {"grammar_lazy", false}, {"image_data", json::array()}};
  EXPECT_EQ(refused(parse_llama_completion, one), Names{});
  json anthropic = {{"messages", messages},
                    {"max_tokens", 5},
                    {"container", "c"},
                    {"mcp_servers", {{{"url", "https://a"}}}}};
  EXPECT_EQ(refused(parse_anthropic, anthropic), (Names{"container", "mcp_servers"}));
  anthropic = {{"messages", messages}, {"max_tokens", 5}, {"mcp_servers", json::array()}};
  EXPECT_EQ(refused(parse_anthropic, anthropic), Names{});
  const json picture = {
      {"prompt", "a"}, {"frame_count", 4}, {"frame_duration_ms", 40}, {"svg", true}};
  EXPECT_EQ(refused(parse_openai_generation, picture),
            (Names{"frame_count", "frame_duration_ms", "svg"}));
  EXPECT_EQ(refused(parse_openai_generation, {{"prompt", "a"}, {"frame_count", 1}}), Names{});
}

TEST(ApiDocument, OfEmbeddingsHoldsTheFieldsThatAreRead) {
  const json document = json::parse(embedding_api_files().front().text);
  const Body all[] = {
      {"/v1/embeddings", parse_embeddings, {R"({"input":""})", R"({"messages":[]})"}},
      {"/pooling", parse_pooling, {R"({"input":""})", R"({"messages":[]})"}},
      {"/embedding", parse_llama_embedding},
      {"/v2/embed", parse_cohere_embed},
      {"/embed", parse_tei_embed},
      {"/api/embed", parse_ollama_embed},
      {"/api/embeddings", parse_ollama_embeddings},
      {"/api/show", parse_ollama_show},
      {"/rerank", parse_rerank},
      {"/score", parse_score},
      {"/v1/cancel", parse_cancel},
      {"/detokenize", parse_detokenize},
      {"/tokenize", parse_tokenize, {R"({"content":""})", R"({"prompt":""})"}},
  };
  for (const Body& body : all) {
    EXPECT_THAT(documented(document, body.path), ::testing::ContainerEq(read_by(body)))
        << body.path;
  }
}

TEST(ApiDocument, NamesAreNotedWithTheirPlace) {
  const NamesRead read;
  parse_openai_chat(R"({"messages":[{"role":"user","content":"a"}],"stream":true,)"
                    R"("stream_options":{"include_usage":true}})");
  EXPECT_TRUE(read.names().contains("stream_options.include_usage"));
  EXPECT_TRUE(read.names().contains("messages[0].role"));
}

}  // namespace
}  // namespace rbee::server

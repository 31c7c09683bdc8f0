// Fields that vLLM's and Cohere's clients send for embeddings and ranking.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "server/apis/embeddings/vector_bytes.h"
#include "tests/server/embedding_worker.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Embeddings, CoheresBitsAreSigns) {
  const EmbeddingWorker worker("bert");
  const json answer = worker.answer(
      "/v2/embed", {{"texts", {"the dog"}}, {"embedding_types", {"float", "binary", "ubinary"}}});
  EXPECT_EQ(answer.at("meta").at("billed_units").at("image_tokens"), 0);
  const json& vectors = answer.at("embeddings");
  const auto numbers = vectors.at("float")[0].get<std::vector<float>>();
  const auto bits = vectors.at("ubinary")[0].get<std::vector<int>>();
  const auto less = vectors.at("binary")[0].get<std::vector<int>>();
  ASSERT_EQ(bits.size() * 8, numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ((bits[i / 8] & 128 >> i % 8) != 0, numbers[i] >= 0) << i;
    EXPECT_EQ(bits[i / 8] - 128, less[i / 8]);
  }
}

TEST(Embeddings, CoheresBytesAreScaled) {
  const EmbeddingWorker worker("bert");
  const json answer = worker.answer(
      "/v2/embed", {{"texts", {"the dog"}}, {"embedding_types", {"float", "int8", "uint8"}}});
  const json& vectors = answer.at("embeddings");
  const auto numbers = vectors.at("float")[0].get<std::vector<double>>();
  const auto bytes = vectors.at("int8")[0].get<std::vector<int>>();
  const auto more = vectors.at("uint8")[0].get<std::vector<int>>();
  double most = 0;
  for (const double x : numbers) most = std::max(most, std::abs(x));
  ASSERT_EQ(bytes.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_NEAR(bytes[i], 127 * numbers[i] / most, 0.501) << i;
    EXPECT_EQ(more[i], bytes[i] + 128);
  }
  const auto size = [](int x) { return std::abs(x); };
  EXPECT_EQ(size(std::ranges::max(bytes, {}, size)), 127);
}

TEST(Embeddings, TextEmbeddingsInferencesForm) {
  const EmbeddingWorker worker("bert");
  const json texts = {worker.golden["texts"][0], worker.golden["texts"][1]};
  for (const char* path : {"/embed", "/"}) {
    const json answer = worker.answer(path, {{"inputs", texts}});
    ASSERT_EQ(answer.size(), 2u);
    expect_vector(answer[1], worker.golden["vectors"][1]);
  }
  std::string longer;
  for (int i = 0; i < 100; ++i) longer += "dog ";
  EXPECT_EQ(worker.post("/embed", {{"inputs", longer}}).status, 400);
  const json cut = {{"inputs", longer}, {"truncate", true}, {"dimensions", 8}};
  EXPECT_EQ(worker.answer("/embed", cut)[0].size(), 8u);
  EXPECT_EQ(worker.wrong("/embed", {{"inputs", "a"}, {"truncation_direction", "up"}}),
            "truncation_direction");
  const EmbeddingWorker ranker("bert_ranker");
  EXPECT_EQ(ranker.answer("/", {{"query", "a"}, {"texts", {"dog"}}}).size(), 1u);
}

TEST(Embeddings, OllamasTextsAreCutUnlessTheClientSaysNo) {
  const EmbeddingWorker worker("bert");
  std::string text = "how do magnets work";
  for (int i = 0; i < 100; ++i) text += " dog";
  json body = {{"model", "hf:tiny"}, {"input", text}};
  const json cut = worker.answer("/api/embed", body);
  body["truncate"] = true;
  EXPECT_EQ(worker.answer("/api/embed", body).at("embeddings"), cut.at("embeddings"));
  body["truncate"] = false;
  const RawResponse refused = worker.post("/api/embed", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(json::parse(refused.body).at("error").is_string()) << refused.body;
  body["input"] = "how do magnets work";
  EXPECT_NE(worker.answer("/api/embed", body).at("embeddings"), cut.at("embeddings"));
  const RawResponse unknown = worker.post("/api/unknown", body);
  EXPECT_EQ(unknown.status, 404);
  EXPECT_TRUE(json::parse(unknown.body).at("error").is_string()) << unknown.body;
}

TEST(Embeddings, AKindOfCoheresTakesTheModelsPrompt) {
  const EmbeddingWorker worker("gemma");
  const json input = worker.golden["texts"][0];
  for (const auto& [type, name] :
       {std::pair{"search_query", "query"}, std::pair{"search_document", "document"},
        std::pair{"query", "query"}}) {
    const json answer = worker.answer("/v2/embed", {{"texts", {input}}, {"input_type", type}});
    expect_vector(answer.at("embeddings").at("float")[0],
                  worker.golden["prompted"][name]["vector"]);
  }
}

TEST(Embeddings, EitherEndOfATextIsKept) {
  const EmbeddingWorker worker("bert");
  std::string text = "how do magnets work ";
  for (int i = 0; i < 100; ++i) text += "dog ";
  text += "why";
  const auto cohere = [&](const char* end) -> json {
    return worker.answer("/v2/embed", {{"texts", {text}}, {"truncate", end}})["embeddings"];
  };
  EXPECT_NE(cohere("START"), cohere("END"));
  EXPECT_EQ(worker.wrong("/v2/embed", {{"texts", {text}}, {"truncate", "NONE"}}), nullptr);
  EXPECT_EQ(worker.wrong("/v2/embed", {{"texts", {text}}, {"truncate", "MIDDLE"}}), "truncate");
  const auto kept = [&](const json& input, const char* side) -> json {
    const json body = {{"input", input}, {"truncate_prompt_tokens", 3}, {"truncation_side", side}};
    const json answer = worker.answer("/v1/embeddings", body);
    EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 3);
    return answer.at("data");
  };
  const json ids = worker.golden["ids"][1];
  const json first(std::vector<json>(ids.begin(), ids.begin() + 3)),
      last(std::vector<json>(ids.end() - 3, ids.end()));
  EXPECT_EQ(kept(ids, "right"), worker.answer("/v1/embeddings", {{"input", first}}).at("data"));
  EXPECT_EQ(kept(ids, "left"), worker.answer("/v1/embeddings", {{"input", last}}).at("data"));
  // A special token at either end stays.
  const json all =
      worker.answer("/tokenize", {{"content", "the lazy dog"}, {"add_special", true}}).at("tokens");
  const json marked = {all.front(), all[all.size() - 2], all.back()};
  EXPECT_EQ(kept("the lazy dog", "left"),
            worker.answer("/v1/embeddings", {{"input", marked}}).at("data"));
}

TEST(Embeddings, ChatsGoThroughTheTemplate) {
  const EmbeddingWorker worker("bert",
                               "{% for m in messages %}{{ m.role }} : {{ m.content }} {% endfor %}"
                               "{% if add_generation_prompt %}why{% endif %}{{ tail }}");
  const json messages = {{{"role", "user"}, {"content", "the dog"}},
                         {{"role", "assistant"}, {"content", "magnets"}}};
  const auto chat = [&](json fields) {
    fields["messages"] = messages;
    return worker.answer("/v1/embeddings", fields);
  };
  const auto text = [&](const char* input, bool special) {
    return worker.answer("/v1/embeddings", {{"input", input}, {"add_special_tokens", special}});
  };
  const auto expect_same = [](const json& a, const json& b) {
    EXPECT_EQ(a.at("data"), b.at("data"));
    EXPECT_EQ(a.at("usage"), b.at("usage"));
  };
  constexpr auto kChat = "user : the dog assistant : magnets ";
  expect_same(chat(json::object()), text(kChat, false));
  expect_same(chat({{"add_special_tokens", true}}), text(kChat, true));
  const std::string more = std::string(kChat) + "why";
  expect_same(chat({{"add_generation_prompt", true}}), text(more.c_str(), false));
  expect_same(chat({{"chat_template_kwargs", {{"tail", "why"}}}}), text(more.c_str(), false));
  EXPECT_EQ(worker.wrong("/v1/embeddings", {{"messages", messages},
                                            {"continue_final_message", true},
                                            {"add_generation_prompt", true}}),
            "continue_final_message");
  EXPECT_EQ(worker.wrong("/v1/embeddings", {{"messages", messages}, {"input", "a"}}), "messages");
  const RawResponse refused = EmbeddingWorker("bert").post("/pooling", {{"messages", messages}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("no chat template"));
}

TEST(Embeddings, BytesAreOfTheTypeAndOrderThatAreAskedFor) {
  using enum server::VectorType;
  const std::vector<float> numbers = {1.0f, -0.1f, 57344.0f, 0x1.8p-16f};
  const auto bytes = [&](server::VectorType type, bool big) {
    return server::vector_bytes(numbers, {.type = type, .big_endian = big});
  };
  EXPECT_EQ(bytes(f8e5m2, false), "\x3c\xae\x7b\x02");
  EXPECT_EQ(bytes(f8e4m3, true).substr(0, 3), "\x38\x9d\x7e");  // 448 is the largest f8e4m3
  EXPECT_EQ(bytes(bf16, true).substr(0, 4), "\x3f\x80\xbd\xcd");
  EXPECT_EQ(bytes(f16, false).substr(2, 2), "\x66\xae");
  EXPECT_EQ(bytes(f32, true).substr(4, 4), "\xbd\xcc\xcc\xcd");
  EXPECT_EQ(server::vector_bytes(std::vector{65536.0f, NAN, 0x1p-17f}, {.type = f8e5m2}),
            std::string("\x7c\x7f\0", 3));

  const EmbeddingWorker worker("bert");
  json body = {{"input", {"the dog", "why"}}};
  const json plain = worker.answer("/v1/embeddings", body).at("data");
  const auto expected = [&](const server::VectorEncoding& how) {
    std::string out;
    for (const json& one : plain) {
      out += server::vector_bytes(one.at("embedding").get<std::vector<float>>(), how);
    }
    return out;
  };
  body.update({{"encoding_format", "bytes"}, {"embed_dtype", "float16"}, {"endianness", "big"}});
  const RawResponse told = worker.post("/v1/embeddings", body);
  EXPECT_EQ(told.headers.at("content-type"), "application/octet-stream");
  EXPECT_EQ(told.body, expected({.type = f16, .big_endian = true}));
  const json places = json::parse(told.headers.at("metadata"));
  EXPECT_EQ(places.at("data")[1], json::parse(R"({"index":1,"embed_dtype":"float16",)"
                                              R"("endianness":"big","start":64,"end":128,)"
                                              R"("shape":[32]})"));
  body.update({{"encoding_format", "bytes_only"}, {"endianness", "native"}});
  const RawResponse alone = worker.post("/pooling", body);
  EXPECT_EQ(alone.body, expected({.type = f16}));
  EXPECT_FALSE(alone.headers.contains("metadata"));
  body["encoding_format"] = "base64";
  EXPECT_EQ(worker.answer("/v1/embeddings", body)["data"][1]["embedding"],
            server::to_base64(expected({.type = f16}).substr(64)));
  for (const char* field : {"encoding_format", "embed_dtype", "endianness"}) {
    EXPECT_EQ(worker.wrong("/v1/embeddings", {{"input", "a"}, {field, "bad"}}), field);
  }
  const std::vector<std::string> many(257, "a");
  EXPECT_EQ(worker.wrong("/v1/embeddings", {{"input", many}, {"encoding_format", "bytes"}}),
            "encoding_format");
}

TEST(Embeddings, PoolingAndInvocationsAreTheSameVectors) {
  const EmbeddingWorker worker("bert");
  const json body = {{"input", "the dog"}, {"task", "embed"}};
  const json vector = worker.answer("/v1/embeddings", body)["data"][0]["embedding"];
  const json pooled = worker.answer("/pooling", body);
  EXPECT_EQ(pooled["data"][0], json({{"index", 0}, {"object", "pooling"}, {"data", vector}}));
  EXPECT_THAT(pooled["id"].get<std::string>(), ::testing::StartsWith("pool-"));
  EXPECT_EQ(worker.answer("/invocations", body)["data"][0]["embedding"], vector);
  EXPECT_EQ(worker.wrong("/invocations", {{"prompt", "the dog"}}), "input");
  EXPECT_EQ(worker.wrong("/pooling", {{"input", "a"}, {"task", "token_embed"}}), "task");
  EXPECT_THAT(worker.post("/classify", {{"input", "a"}}).body, HasSubstr("classifies no texts"));
  EXPECT_NE(worker.answer("/v1/embeddings", {{"input", "the dog"}, {"use_activation", false}}),
            vector);
}

TEST(Ranking, QueriesAndDocumentsAreCutToTheirLimits) {
  const EmbeddingWorker worker("bert_ranker");
  const auto rank = [&](json fields) {
    fields.update({{"query", "why do dogs run"}, {"documents", {"the lazy dog runs", "dog"}}});
    return worker.answer("/rerank", fields).at("usage").at("prompt_tokens").get<int>();
  };
  const int all = rank(json::object());
  EXPECT_EQ(rank({{"max_tokens_per_doc", 0}, {"max_tokens_per_query", 0}}), all);
  EXPECT_EQ(rank({{"max_tokens_per_doc", 100}}), all);
  const int one = rank({{"max_tokens_per_doc", 1}});
  EXPECT_LT(one, all);
  EXPECT_LT(rank({{"max_tokens_per_doc", 1}, {"max_tokens_per_query", 2}}), one);
  EXPECT_THAT(
      worker.post("/rerank", {{"query", "a"}, {"documents", {"b"}}, {"max_tokens_per_doc", -5}})
          .body,
      HasSubstr("max_tokens_per_doc must be a non-negative integer"));
}

TEST(Ranking, ATextByItselfIsClassified) {
  const EmbeddingWorker worker("bert_ranker");
  const json plain = worker.answer("/pooling", {{"input", "the dog"}, {"use_activation", false}});
  const float score = plain["data"][0]["data"][0].get<float>();
  const json answer = worker.answer("/classify", {{"input", "the dog"}});
  EXPECT_EQ(answer["data"][0]["num_classes"], 1);
  EXPECT_NEAR(answer["data"][0]["probs"][0].get<float>(), 1 / (1 + std::exp(-score)), 1e-5f);
  EXPECT_EQ(worker.wrong("/pooling", {{"input", "a"}, {"task", "embed"}}), "task");
  // This model is prompted about pairs in words.
  EXPECT_EQ(EmbeddingWorker("qwen3_ranker").post("/classify", {{"input", "a"}}).status, 400);
}

}  // namespace
}  // namespace rbee::testing

// Workers for embeddings and ranking on loopback, over tiny random models. transformers computed
// their vectors and scores (tools/goldens/make_embedding_goldens.py).

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <regex>
#include <set>

#include "tests/server/embedding_worker.h"
#include "tests/support/sanitized.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Embeddings, TheOpenApiDocumentHasEveryRouteAndNoOther) {
  EmbeddingWorker worker("bert");
  const RawResponse response = ask(worker.server.port(), request("GET", "/openapi.json"));
  ASSERT_EQ(response.status, 200);
  const json paths = json::parse(response.body).at("paths");
  size_t documented = 0, routes = 0;
  for (const auto& [path, methods] : paths.items()) documented += methods.size();
  const std::set<std::string> refused = {
      "/v1/jobs",      "/v1/inference",        "/v1/infer",    "/v1/completions",
      "/v1/responses", "/v1/chat/completions", "/v1/messages", "/chat/completions",
      "/responses",    "/api/generate",        "/api/chat"};
  const server::Router router = server::embedding_routes(worker.service, [] {});
  for (const server::Route& route : router.routes()) {
    if (refused.contains(route.pattern)) continue;
    ++routes;
    const std::string path = std::regex_replace(route.pattern, std::regex(R"(\{\+)"), "{");
    std::string method = route.method;
    std::ranges::transform(method, method.begin(), ::tolower);
    ASSERT_TRUE(paths.contains(path) && paths[path].contains(method)) << method << " " << path;
    const json& operation = paths[path][method];
    EXPECT_EQ(operation.contains("security"), route.access == server::Access::anyone) << path;
    EXPECT_EQ(operation.contains("requestBody"), route.body != server::Body::none) << path;
  }
  EXPECT_EQ(routes, documented);
}

TEST(Embeddings, ChatsAreNotTokenized) {
  const EmbeddingWorker worker("bert");
  const json chat = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  const RawResponse response = worker.post("/tokenize", chat);
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("takes no chats"));
  EXPECT_EQ(json::parse(response.body).at("error").at("type"), "invalid_request_error");
}

TEST(Embeddings, TextsAndTokensGiveTheirVectorsInOrder) {
  const EmbeddingWorker worker("bert");
  const json& golden = worker.golden;
  for (const char* inputs : {"texts", "ids"}) {
    const json answer =
        worker.answer("/v1/embeddings", {{"input", golden[inputs]}, {"model", "x"}});
    EXPECT_EQ(answer.at("object"), "list");
    EXPECT_EQ(answer.at("model"), "hf:tiny");
    size_t tokens = 0;
    for (size_t i = 0; i < golden["ids"].size(); ++i) {
      const json& one = answer.at("data").at(i);
      EXPECT_EQ(one.at("object"), "embedding");
      EXPECT_EQ(one.at("index"), i);
      expect_vector(one.at("embedding"), golden["vectors"][i]);
      tokens += golden["ids"][i].size();
    }
    EXPECT_EQ(answer.at("usage"), json({{"prompt_tokens", tokens}, {"total_tokens", tokens}}));
  }
}

TEST(Embeddings, OneTextOrOneListOfTokens) {
  const EmbeddingWorker worker("bert");
  for (const char* inputs : {"texts", "ids"}) {
    const json answer = worker.answer("/embeddings", {{"input", worker.golden[inputs][1]}});
    ASSERT_EQ(answer.at("data").size(), 1u);
    expect_vector(answer.at("data")[0].at("embedding"), worker.golden["vectors"][1]);
  }
}

TEST(Embeddings, LlamaServersFormsOfTextsAndAnswers) {
  const EmbeddingWorker worker("bert");
  const std::string text = worker.golden["texts"][1];
  const json parts = {{{"type", "text"}, {"text", text.substr(0, 3)}},
                      {{"type", "text"}, {"text", text.substr(3)}}};
  const json several = {{{"prompt_string", text}}, {{"content", parts}}, worker.golden["ids"][1]};
  const json answer = worker.answer("/v1/embeddings", {{"input", several}});
  EXPECT_THAT(answer.at("id").get<std::string>(), ::testing::StartsWith("embd-"));
  EXPECT_GT(answer.at("created").get<int64_t>(), 1'600'000'000);
  for (const json& one : answer.at("data")) {
    expect_vector(one.at("embedding"), worker.golden["vectors"][1]);
  }
  const json own = worker.answer("/embedding", {{"content", text}});
  ASSERT_EQ(own.size(), 1u);
  expect_vector(own[0].at("embedding")[0], worker.golden["vectors"][1]);
  // Texts and tokens in one list are one text.
  json mixed = worker.golden["ids"][1];
  mixed.push_back("the dog");
  EXPECT_EQ(worker.answer("/v1/embeddings", {{"input", mixed}}).at("data").size(), 1u);
  EXPECT_EQ(worker.answer("/v1/embeddings", {{"input", ""}}).at("data").size(), 1u);
  for (const char* wrong :
       {R"({"content":"a"})", R"([[1,{}]])", R"({"content":[{"type":"image_url"}]})"}) {
    const json body = {{"input", json::parse(wrong)}};
    EXPECT_EQ(worker.post("/v1/embeddings", body).status, 400) << wrong;
  }
}

TEST(Embeddings, CoheresForm) {
  const EmbeddingWorker worker("bert");
  const json body = {{"texts", {worker.golden["texts"][0], worker.golden["texts"][1]}},
                     {"model", "x"},
                     {"input_type", "search_query"},
                     {"embedding_types", {"float", "base64"}}};
  const json answer = worker.answer("/v2/embed", body);
  expect_vector(answer.at("embeddings").at("float")[1], worker.golden["vectors"][1]);
  EXPECT_EQ(answer.at("embeddings").at("base64").size(), 2u);
  EXPECT_EQ(answer.at("texts"), body.at("texts"));
  EXPECT_GT(answer.at("meta").at("billed_units").at("input_tokens"), 0);
  EXPECT_EQ(worker.wrong("/v2/embed", {{"texts", {"a"}}, {"embedding_types", {"int4"}}}),
            "embedding_types");
  const json other = {{"texts", {"a"}}, {"input_type", "poems"}};
  EXPECT_EQ(worker.wrong("/v2/embed", other), "input_type");
  EXPECT_THAT(worker.post("/v2/embed", other).body, HasSubstr("Unsupported input_type 'poems'"));
}

TEST(Embeddings, Base64IsTheSameNumbers) {
  const EmbeddingWorker worker("bert");
  json body = {{"input", "the lazy dog"}};
  const auto plain =
      worker.answer("/v1/embeddings", body)["data"][0]["embedding"].get<std::vector<float>>();
  body["encoding_format"] = "base64";
  const std::string text = worker.answer("/v1/embeddings", body)["data"][0]["embedding"];
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    held = held << 6 | static_cast<uint32_t>(kAlphabet.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(held >> bits & 255));
  }
  ASSERT_EQ(bytes.size(), plain.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data(), plain.data(), bytes.size()), 0);
}

TEST(Embeddings, DimensionsAndTruncation) {
  const EmbeddingWorker worker("bert");
  const json few = worker.answer("/v1/embeddings", {{"input", "the dog"}, {"dimensions", 8}});
  EXPECT_EQ(few["data"][0]["embedding"].size(), 8u);
  std::string longer;
  for (int i = 0; i < 100; ++i) longer += "dog ";
  EXPECT_EQ(worker.post("/v1/embeddings", {{"input", longer}}).status, 400);
  const json cut =
      worker.answer("/v1/embeddings", {{"input", longer}, {"truncate_prompt_tokens", -1}});
  EXPECT_EQ(cut["usage"]["prompt_tokens"], 64);
}

TEST(Embeddings, ThePromptOfAKindOfTexts) {
  const EmbeddingWorker worker("gemma");
  const json input = worker.golden["texts"][0];
  for (const auto& [name, made] : worker.golden["prompted"].items()) {
    const json answer = worker.answer("/v1/embeddings", {{"input", input}, {"prompt_name", name}});
    expect_vector(answer.at("data")[0].at("embedding"), made["vector"]);
    EXPECT_EQ(answer.at("usage").at("prompt_tokens"), made["ids"].size());
  }
  const RawResponse wrong =
      worker.post("/v1/embeddings", {{"input", input}, {"prompt_name", "title"}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("wanted one of document, query"));
  EXPECT_EQ(worker.wrong("/v1/embeddings", {{"input", input}, {"prompt_name", 7}}), "prompt_name");
}

TEST(Embeddings, WrongBodiesAreNamed) {
  const EmbeddingWorker worker("bert");
  const auto wrong = [&](const json& body) { return worker.wrong("/v1/embeddings", body); };
  EXPECT_EQ(wrong(json::object()), "input");
  EXPECT_EQ(wrong({{"input", json::array()}}), "input");
  EXPECT_EQ(wrong({{"input", json::array()}}), "input");
  EXPECT_EQ(wrong({{"input", {"a", true}}}), "input[1]");
  EXPECT_EQ(wrong({{"input", {1, -1}}}), nullptr);  // not a token of the model
  EXPECT_EQ(wrong({{"input", std::vector<std::string>(2049, "a")}}), "input");
  EXPECT_EQ(wrong({{"input", "a"}, {"encoding_format", "hex"}}), "encoding_format");
  EXPECT_EQ(wrong({{"input", "a"}, {"dimensions", 0}}), "dimensions");
  EXPECT_EQ(wrong({{"input", "a"}, {"dimensions", 33}}), nullptr);
  EXPECT_EQ(wrong({{"input", {1000000}}}), nullptr);
  EXPECT_THAT(worker.post("/v1/embeddings", {{"input", {-1}}}).body,
              HasSubstr("token -1 is out of vocabulary"));
  EXPECT_THAT(
      worker.post("/v1/embeddings", {{"input", "a"}, {"truncate_prompt_tokens", 8193}}).body,
      HasSubstr("wanted from -1 to 64. Please request a smaller"));
}

TEST(Embeddings, AnswerNoChats) {
  const EmbeddingWorker worker("bert");
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/v1/jobs", "/v1/messages"}) {
    const RawResponse response = worker.post(path, {{"prompt", "Hi"}});
    EXPECT_EQ(response.status, 400) << path;
    EXPECT_THAT(response.body, HasSubstr("makes no text")) << path;
  }
  const RawResponse rerank = worker.post("/v1/rerank", {{"query", "a"}, {"documents", {"b"}}});
  EXPECT_EQ(rerank.status, 400);
  EXPECT_THAT(rerank.body, HasSubstr("ranks no documents"));
}

TEST(Embeddings, StateAndFigures) {
  const EmbeddingWorker worker("bert");
  worker.answer("/v1/embeddings", {{"input", "the lazy dog"}});
  const auto get = [&](const char* path) {
    return ask(worker.server.port(), request("GET", path));
  };
  const json health = json::parse(get("/health").body);
  EXPECT_EQ(health.at("architecture"), "bert");
  EXPECT_EQ(health.at("graphs"),
            json({{"captured", false},
                  {"reason", "a model for embeddings has no steps that come again"}}));
  const json listed = json::parse(get("/v1/models").body).at("data")[0];
  EXPECT_EQ(listed.at("id"), "hf:tiny");
  EXPECT_EQ(listed.at("max_model_len"), health.at("context_length"));
  EXPECT_EQ(json::parse(get("/v1/models/hf:tiny").body).at("id"), "hf:tiny");
  EXPECT_EQ(get("/v1/models/tiny").status, 404);
  EXPECT_THAT(get("/metrics").body, HasSubstr("pooling=\"mean\"} 1"));
  EXPECT_THAT(get("/metrics").body, HasSubstr("rbee_healthy 1"));
  EXPECT_THAT(get("/metrics").body, HasSubstr("\nrbee_graphs_captured 0\n"));
  EXPECT_THAT(get("/metrics").body, HasSubstr("llamacpp:n_decode_total 1\n"));
  const json tokens =
      worker.answer("/tokenize", {{"content", "the lazy dog"}, {"add_special", true}});
  EXPECT_EQ(tokens.at("tokens"), worker.golden["ids"][1]);
}

// The goldens' scores as probabilities.
std::vector<float> probabilities(const json& golden) {
  auto out = golden["scores"].get<std::vector<float>>();
  for (float& score : out) score = 1 / (1 + std::exp(-score));
  return out;
}

// The worker keeps the job for a minute, and its answer includes all documents.
TEST(Embeddings, AJobThatIsOverHoldsNothingOfItsRequest) {
  for (const bool good : {true, false}) {
    auto texts = std::make_shared<std::string>("a long document");
    const std::weak_ptr<std::string> held = texts;
    const auto response = std::make_shared<server::DelayedResponse>(nullptr);
    server::EmbeddingJob job(
        "j", response,
        [texts = std::move(texts)](const engine::EmbeddingResult&) {
          return server::json_response(200, *texts);
        },
        [](const server::WireError&, std::string_view message) { return std::string(message); },
        [](server::Outcome, double) {});
    EXPECT_FALSE(held.expired());
    good ? job.on_embedded({}) : job.on_failed({Code::internal, "no"});
    EXPECT_TRUE(held.expired());
    EXPECT_EQ(response->take()->body == "a long document", good);
  }
}

TEST(Ranking, DocumentsComeBestFirst) {
  const EmbeddingWorker worker("bert_ranker");
  const json& pairs = worker.golden["pairs"];
  const std::vector<float> wanted = probabilities(worker.golden);
  const json documents = {pairs[0][1], {{"text", pairs[1][1]}}};
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank", "/reranking", "/v1/reranking"}) {
    const json answer = worker.answer(path, {{"query", pairs[0][0]}, {"documents", documents}});
    const json& results = answer.at("results");
    ASSERT_EQ(results.size(), 2u);
    EXPECT_GE(results[0].at("relevance_score"), results[1].at("relevance_score"));
    for (const json& result : results) {
      const auto index = result.at("index").get<size_t>();
      EXPECT_NEAR(result.at("relevance_score").get<float>(), wanted[index], 1e-4f);
      EXPECT_EQ(result.at("document").at("text"), pairs[index][1]);
    }
    EXPECT_GT(answer.at("usage").at("total_tokens"), 0);
  }
}

TEST(Ranking, TextEmbeddingsInferencesForm) {
  const EmbeddingWorker worker("bert_ranker");
  const json& pairs = worker.golden["pairs"];
  const json body = {{"query", pairs[0][0]}, {"texts", {pairs[0][1], pairs[1][1]}}};
  const std::vector<float> wanted = probabilities(worker.golden);
  json answer = worker.answer("/rerank", body);
  ASSERT_EQ(answer.size(), 2u);
  for (const json& result : answer) {
    EXPECT_NEAR(result.at("score").get<float>(), wanted[result.at("index").get<size_t>()], 1e-4f);
    EXPECT_FALSE(result.contains("text"));
  }
  json raw = body;
  raw["raw_scores"] = true;
  raw["return_text"] = true;
  answer = worker.answer("/rerank", raw);
  const auto index = answer[0].at("index").get<size_t>();
  EXPECT_NEAR(answer[0].at("score").get<float>(), worker.golden["scores"][index].get<float>(),
              1e-4f);
  EXPECT_EQ(answer[0].at("text"), pairs[index][1]);
}

TEST(Ranking, TheBestAloneWithoutItsText) {
  const EmbeddingWorker worker("xlm_roberta_ranker");
  const json& pairs = worker.golden["pairs"];
  const json answer = worker.answer("/v1/rerank", {{"query", pairs[0][0]},
                                                   {"documents", {pairs[0][1], pairs[1][1]}},
                                                   {"top_n", 1},
                                                   {"return_documents", false},
                                                   {"use_activation", false}});
  ASSERT_EQ(answer.at("results").size(), 1u);
  const json& best = answer.at("results")[0];
  EXPECT_FALSE(best.contains("document"));
  const auto scores = worker.golden["scores"].get<std::vector<float>>();
  EXPECT_EQ(best.at("index"), scores[0] > scores[1] ? 0 : 1);
  EXPECT_NEAR(best.at("relevance_score").get<float>(), std::max(scores[0], scores[1]), 1e-4f);
}

TEST(Ranking, AnInstructionIsPartOfTheQuestion) {
  const EmbeddingWorker worker("qwen3_ranker");
  const json& golden = worker.golden;
  for (size_t i = 0; i < golden["pairs"].size(); ++i) {
    json body = {{"query", golden["pairs"][i][0]},
                 {"documents", {golden["pairs"][i][1]}},
                 {"use_activation", false}};
    if (i > 0) body["instruction"] = golden["instructions"][i];
    const json answer = worker.answer("/v1/rerank", body);
    EXPECT_NEAR(answer["results"][0]["relevance_score"].get<float>(),
                golden["scores"][i].get<float>(), 1e-3f);
    EXPECT_EQ(answer["usage"]["prompt_tokens"], golden["ids"][i].size());
  }
  EXPECT_EQ(worker.wrong("/rerank", {{"query", "a"}, {"documents", {"b"}}, {"instruction", 7}}),
            "instruction");
  const EmbeddingWorker plain("bert_ranker");
  const RawResponse refused =
      plain.post("/rerank", {{"query", "a"}, {"documents", {"b"}}, {"instruction", "c"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("reads none"));
}

TEST(Ranking, ScoresOfPairs) {
  const EmbeddingWorker worker("bert_ranker");
  const json& pairs = worker.golden["pairs"];
  const std::vector<float> wanted = probabilities(worker.golden);
  json first = json::array(), second = json::array();
  for (const json& pair : pairs) {
    first.push_back(pair[0]);
    second.push_back(pair[1]);
  }
  const json answer = worker.answer("/v1/score", {{"text_1", first}, {"text_2", second}});
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(answer.at("data")[i].at("index"), i);
    EXPECT_NEAR(answer.at("data")[i].at("score").get<float>(), wanted[i], 1e-4f);
  }
  const json one =
      worker.answer("/score", {{"text_1", first[0]}, {"text_2", {second[0], second[1]}}});
  EXPECT_NEAR(one.at("data")[1].at("score").get<float>(), wanted[1], 1e-4f);
  const json other = worker.answer("/score", {{"queries", first[0]}, {"documents", second[0]}});
  EXPECT_NEAR(other.at("data")[0].at("score").get<float>(), wanted[0], 1e-4f);
  const json data = worker.answer("/score", {{"data_1", first[0]}, {"data_2", second[0]}});
  EXPECT_EQ(data.at("data"), other.at("data"));
  const json items = {{"queries", first[0]}, {"items", second[0]}};
  EXPECT_EQ(worker.answer("/score", items).at("data"), other.at("data"));
  EXPECT_EQ(worker.answer("/invocations", items).at("data"), other.at("data"));
}

// A body of 16 MiB with 2048 documents would become 16 GiB.
TEST(Ranking, ALongQueryIsNotCopiedForEveryDocument) {
  if (kSanitized) GTEST_SKIP() << "memory that is freed stays for a while";
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const EmbeddingWorker worker("bert_ranker");
  const std::string query(128 * 1024, 'a');  // one word, which is one unknown token
  const std::vector<std::string> documents(1000, "d");
  const auto before = peak();
  EXPECT_EQ(worker.post("/v1/rerank", {{"query", query}, {"documents", documents}}).status, 200);
  EXPECT_LT(peak() - before, 64 * 1024) << "KiB";
}

TEST(Ranking, WrongBodiesAreNamed) {
  const EmbeddingWorker worker("bert_ranker");
  EXPECT_EQ(worker.wrong("/rerank", {{"documents", {"a"}}}), "query");
  EXPECT_EQ(worker.wrong("/rerank", {{"query", "a"}}), "documents");
  EXPECT_EQ(worker.wrong("/rerank", {{"query", "a"}, {"documents", {"b", 1}}}), "documents[1]");
  EXPECT_EQ(worker.wrong("/rerank", {{"query", "a"}, {"documents", {"b"}}, {"top_n", -1}}),
            "top_n");
  EXPECT_EQ(worker.wrong("/score", {{"text_1", {"a", "b"}}, {"text_2", {"c"}}}), "text_1");
  const RawResponse embeddings = worker.post("/v1/embeddings", {{"input", "a"}});
  EXPECT_EQ(embeddings.status, 400);
  EXPECT_THAT(embeddings.body, HasSubstr("makes no embeddings"));
}

}  // namespace
}  // namespace rbee::testing

// OpenAI's API on the chat worker, over an engine that follows a script.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kHello = R"({"messages":[{"role":"user","content":"Hi"}])";

std::string hello(std::string_view more) {
  return cat(kHello, more.empty() ? "" : ",", more, "}");
}

// A body that the route accepts.
std::string body_of(std::string_view path, std::string_view more) {
  if (path == kChat || path == "/v1/messages") return hello(more);
  return cat(path == "/v1/responses" ? R"({"input":"Hi",)" : R"({"prompt":"Hi",)", more, "}");
}

TEST(OpenAi, ModelsListsTheOne) {
  Worker worker;
  const json list = json::parse(worker.get("/v1/models").body);
  EXPECT_EQ(list.at("object"), "list");
  ASSERT_EQ(list.at("data").size(), 1u);
  EXPECT_EQ(list.at("data")[0].at("id"), "hf:fake");
  EXPECT_EQ(list.at("data")[0].at("object"), "model");
  EXPECT_EQ(list.at("data")[0].at("max_model_len"), 2048);
  EXPECT_GT(list.at("data")[0].at("created").get<int64_t>(), 1'600'000'000);
}

TEST(OpenAi, AModelByItsName) {
  Worker worker;
  const json list = json::parse(worker.get("/v1/models").body);
  for (const char* path : {"/v1/models/hf:fake", "/v1/models/hf%3Afake"}) {
    const RawResponse one = worker.get(path);
    EXPECT_EQ(one.status, 200) << path;
    EXPECT_EQ(json::parse(one.body), list.at("data")[0]) << path;
  }
  const RawResponse none = worker.get("/v1/models/no/such");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(json::parse(none.body), json({{"error",
                                           {{"message", "The model 'no/such' does not exist"},
                                            {"type", "invalid_request_error"},
                                            {"param", "model"},
                                            {"code", "model_not_found"}}}}));
}

TEST(OpenAi, AChatsAnswerInOnePiece) {
  Worker worker;
  const RawResponse response = worker.post(kChat, hello(""));
  EXPECT_EQ(response.status, 200);
  const json answer = json::parse(response.body);
  EXPECT_THAT(answer.at("id").get<std::string>(), MatchesRegex("chatcmpl-job-.+"));
  EXPECT_EQ(answer.at("object"), "chat.completion");
  EXPECT_EQ(answer.at("model"), "hf:fake");
  const json wanted = json::parse(R"([{"index":0,"message":{"role":"assistant",
      "content":"Hello, world","refusal":null},"logprobs":null,"finish_reason":"stop",
      "stop_reason":null,"token_ids":null}])");
  EXPECT_EQ(answer.at("choices"), wanted);
  const json usage = {{"prompt_tokens", 5},
                      {"completion_tokens", 3},
                      {"total_tokens", 8},
                      {"prompt_tokens_details", {{"cached_tokens", 2}}},
                      {"completion_tokens_details", {{"reasoning_tokens", 0}}}};
  EXPECT_EQ(answer.at("usage"), usage);
}

TEST(OpenAi, ACompletionsAnswerInOnePiece) {
  Worker worker({.script = {.reason = engine::StopReason::max_tokens}});
  const json answer = json::parse(worker.post(kCompletions, R"({"prompt":["Once"]})").body);
  EXPECT_THAT(answer.at("id").get<std::string>(), MatchesRegex("cmpl-job-.+"));
  EXPECT_EQ(answer.at("object"), "text_completion");
  const json wanted = json::parse(
      R"([{"index":0,"text":"Hello, world","logprobs":null,"finish_reason":"length",
           "stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null}])");
  EXPECT_EQ(answer.at("choices"), wanted);
  EXPECT_EQ(worker.engine.last_request().prompt, "Once");
  EXPECT_EQ(worker.engine.last_request().max_tokens, 16);
}

TEST(OpenAi, AChatsStream) {
  Worker worker;
  const RawResponse response =
      worker.post(kChat, hello(R"("stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  const std::vector<std::string> events = payloads(response.body);
  ASSERT_EQ(events.size(), 7u);
  const auto choice = [&](size_t i) { return json::parse(events[i]).at("choices").at(0); };
  EXPECT_EQ(choice(0).at("delta"), json::parse(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(choice(1).at("delta"), json::parse(R"({"content":"Hello"})"));
  EXPECT_EQ(choice(1).at("finish_reason"), nullptr);
  EXPECT_EQ(choice(3).at("delta").at("content"), "world");
  EXPECT_EQ(choice(4).at("delta"), json::object());
  EXPECT_EQ(choice(4).at("finish_reason"), "stop");
  const json usage = json::parse(events[5]);
  EXPECT_EQ(usage.at("choices"), json::array());
  EXPECT_EQ(usage.at("usage").at("total_tokens"), 8);
  EXPECT_EQ(events[6], "[DONE]");
  for (size_t i = 0; i < 6; ++i) {
    const json event = json::parse(events[i]);
    EXPECT_EQ(event.at("usage").is_null(), i < 5) << event;
    EXPECT_EQ(event.at("object"), "chat.completion.chunk");
    EXPECT_EQ(event.at("id"), json::parse(events[0]).at("id"));
  }
}

TEST(OpenAi, ACompletionsStreamWithoutUsage) {
  Worker worker;
  const std::vector<std::string> events =
      payloads(worker.post(kCompletions, R"({"prompt":"Once","stream":true})").body);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(json::parse(events[0]).at("choices").at(0).at("text"), "Hello");
  EXPECT_FALSE(json::parse(events[0]).contains("usage"));
  EXPECT_EQ(json::parse(events[3]).at("choices").at(0).at("text"), "");
  EXPECT_EQ(json::parse(events[3]).at("choices").at(0).at("finish_reason"), "stop");
  EXPECT_EQ(events[4], "[DONE]");
}

// The fingerprint is the same for all requests of a worker, and for all chunks.
TEST(OpenAi, AnswersNameWhatMadeThem) {
  Worker worker;
  const std::string name =
      json::parse(worker.post(kChat, hello("")).body).at("system_fingerprint").get<std::string>();
  EXPECT_THAT(name, MatchesRegex("fp_[0-9a-f]{10}"));
  EXPECT_EQ(json::parse(worker.post("/chat/completions", hello("")).body).at("system_fingerprint"),
            name);
  const auto events = payloads(worker.post(kCompletions, R"({"prompt":"x","stream":true})").body);
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_EQ(json::parse(events[i]).at("system_fingerprint"), name);
  }
}

// llama-server's spelling.
TEST(OpenAi, ALimitOfMinusOneIsNone) {
  Worker worker;
  for (const char* path : {kChat, kCompletions, "/v1/jobs", "/v1/infer"}) {
    EXPECT_EQ(worker.post(path, body_of(path, R"("max_tokens":-1)")).status, 200) << path;
    EXPECT_EQ(worker.engine.last_request().max_tokens, INT32_MAX) << path;
    EXPECT_EQ(worker.post(path, body_of(path, R"("max_tokens":-2)")).status, 400) << path;
    EXPECT_EQ(worker.post(path, body_of(path, R"("max_tokens":0)")).status, 400) << path;
  }
  EXPECT_EQ(worker.post(kChat, hello(R"("max_completion_tokens":-1)")).status, 200);
}

TEST(OpenAi, LlamaServersNameOfTheLimitIsTaken) {
  Worker worker;
  for (const char* path : {kChat, kCompletions}) {
    for (const char* others : {"", R"("max_tokens":7,)", R"("max_completion_tokens":7,)"}) {
      const std::string body = body_of(path, cat(others, R"("n_predict":7)"));
      EXPECT_EQ(worker.post(path, body).status, 200) << body;
      EXPECT_EQ(worker.engine.last_request().max_tokens, 7) << path << body;
    }
    const RawResponse two = worker.post(path, body_of(path, R"("n_predict":7,"max_tokens":9)"));
    EXPECT_EQ(two.status, 400) << path;
    EXPECT_THAT(two.body, HasSubstr("max_tokens must be the same as n_predict")) << path;
    EXPECT_EQ(worker.post(path, body_of(path, R"("n_predict":-1)")).status, 200) << path;
    EXPECT_EQ(worker.engine.last_request().max_tokens, INT32_MAX) << path;
    const RawResponse refused = worker.post(path, body_of(path, R"("n_predict":0)"));
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_THAT(refused.body, HasSubstr("n_predict must be from 1 to 2147483647")) << path;
  }
}

TEST(OpenAi, EveryFieldReachesTheEngine) {
  Worker worker;
  const RawResponse response = worker.post(kChat, R"({"messages":[
      {"role":"developer","content":"Be brief"},
      {"role":"user","content":[{"type":"text","text":"Hi "},{"type":"text","text":"you"}]}],
      "max_completion_tokens":11,"temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,
      "repetition_penalty":1.5,"frequency_penalty":-1,"presence_penalty":2,"seed":9,
      "stop":"###","user":"somebody","priority":4,"n":1,"tools":[],"logit_bias":{"5":-100},
      "response_format":{"type":"text"},"logprobs":false,"unknown":[1]})");
  EXPECT_EQ(response.status, 200) << response.body;
  const engine::TextRequest request = worker.engine.last_request();
  ASSERT_EQ(request.messages.size(), 2u);
  EXPECT_EQ(request.messages[0].role, "system");
  EXPECT_EQ(request.messages[1].content, "Hi \nyou");
  EXPECT_EQ(request.max_tokens, 11);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.min_p, 0.125f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(request.sampling.frequency_penalty, -1);
  EXPECT_EQ(request.sampling.presence_penalty, 2);
  EXPECT_EQ(request.sampling.seed, 9u);
  ASSERT_EQ(request.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(request.sampling.logit_bias[0].id, 5);
  EXPECT_EQ(request.sampling.logit_bias[0].bias, -100);
  EXPECT_EQ(request.stop, std::vector<std::string>{"###"});
  EXPECT_EQ(request.client, "127.0.0.1");
  EXPECT_EQ(request.user, "somebody");
  EXPECT_EQ(request.priority, 4);
}

TEST(OpenAi, DefaultsAreOpenAis) {
  Worker worker;
  worker.post(kChat, hello(""));
  const engine::TextRequest request = worker.engine.last_request();
  EXPECT_EQ(request.sampling.temperature, 1);
  EXPECT_EQ(request.sampling.top_p, 1);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.max_tokens, INT32_MAX);  // the context's length ends it
  EXPECT_EQ(request.client, "127.0.0.1");
}

TEST(OpenAi, WhereARequestSaysNothingTheModelsSamplingCounts) {
  Worker worker({.script = {.sampling = {.temperature = 0.5f,
                                         .top_p = 0.75f,
                                         .min_p = 0.125f,
                                         .repetition_penalty = 1.25f,
                                         .top_k = 20}}});
  for (const char* path : {kChat, kCompletions, "/v1/responses", "/v1/messages"}) {
    EXPECT_EQ(worker.post(path, body_of(path, R"("max_tokens":5)")).status, 200) << path;
    const engine::SamplingParams sampling = worker.engine.last_request().sampling;
    EXPECT_EQ(sampling.temperature, 0.5f) << path;
    EXPECT_EQ(sampling.top_p, 0.75f) << path;
    EXPECT_EQ(sampling.min_p, 0.125f) << path;
    EXPECT_EQ(sampling.repetition_penalty, 1.25f) << path;
    EXPECT_EQ(sampling.top_k, 20) << path;
  }
  worker.post(kChat, hello(R"("temperature":0,"top_p":1,"min_p":0,"top_k":-1)"));
  const engine::SamplingParams asked = worker.engine.last_request().sampling;
  EXPECT_EQ(asked.temperature, 0);
  EXPECT_EQ(asked.top_p, 1);
  EXPECT_EQ(asked.min_p, 0);
  EXPECT_EQ(asked.top_k, 0);
  worker.post("/v1/jobs", R"({"prompt":"Hi"})");
  EXPECT_EQ(worker.engine.last_request().sampling.temperature, 0.8f);
}

// On every route of OpenAI's and Anthropic's APIs; other routes count as llama-server does.
TEST(OpenAi, PenaltiesCountTheAnswerUnlessAWindowIsNamed) {
  Worker worker;
  const auto sampling = [&](const char* path, std::string_view more) {
    EXPECT_EQ(worker.post(path, body_of(path, more)).status / 100, 2) << path;
    return worker.engine.last_request().sampling;
  };
  for (const char* path : {kChat, kCompletions, "/v1/responses", "/v1/messages"}) {
    const auto whole = sampling(path, R"("max_tokens":5)");
    EXPECT_FALSE(whole.penalise_prompt) << path;
    EXPECT_EQ(whole.repeat_last_n, 0) << path;
  }
  const auto windowed = sampling(kChat, R"("repeat_last_n":30)");
  EXPECT_TRUE(windowed.penalise_prompt);
  EXPECT_EQ(windowed.repeat_last_n, 30);
  for (const char* path : {"/v1/jobs", "/v1/infer", "/completion"}) {
    const auto usual = sampling(path, R"("max_tokens":5)");
    EXPECT_TRUE(usual.penalise_prompt) << path;
    EXPECT_EQ(usual.repeat_last_n, 64) << path;
  }
}

TEST(OpenAi, TheFormOfAnAnswerReachesTheEngine) {
  using Kind = engine::Constraint::Kind;
  Worker worker;
  const auto asked = [&](const char* path, const std::string& body) {
    EXPECT_EQ(worker.post(path, body).status, 200) << body;
    return worker.engine.last_request().constraint;
  };
  EXPECT_EQ(asked(kChat, hello("")).kind, Kind::none);
  EXPECT_EQ(asked(kChat, hello(R"("response_format":{"type":"json_object"})")).kind,
            Kind::json_object);
  const engine::Constraint schema =
      asked(kChat, hello(R"("response_format":{"type":"json_schema","json_schema":{"schema":
          {"properties":{"z":true,"a":true}}}})"));
  EXPECT_EQ(schema.kind, Kind::json_schema);
  EXPECT_EQ(schema.text, R"({"properties":{"z":true,"a":true}})");
  EXPECT_EQ(asked(kCompletions, R"({"prompt":"x","guided_regex":"a+"})").kind, Kind::regex);
  EXPECT_EQ(asked("/v1/infer", R"({"prompt":"x","grammar":"root ::= \"a\""})").kind, Kind::grammar);
  EXPECT_THAT(asked("/v1/infer", R"({"prompt":"x","guided_choice":["a","b"]})").choices,
              ::testing::ElementsAre("a", "b"));
}

TEST(OpenAi, WhatIsWrongIsNamedInOpenAisForm) {
  Worker worker;
  for (const auto& [body, param] : std::vector<std::pair<std::string, std::string>>{
           {hello(R"("temperature":101)"), "temperature"},
           {hello(R"("n":0)"), "n"},
           {hello(R"("n":33)"), "n"},
           {hello(R"("logprobs":3)"), "logprobs"},
           {hello(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs"},
           {hello(R"("top_logprobs":2)"), "top_logprobs"},
           {hello(R"("response_format":{"type":"xml"})"), "response_format.type"},
           {hello(R"("logit_bias":{"5":200})"), "logit_bias.5"},
           {hello(R"("stream_options":7)"), "stream_options"},
           {hello(R"("stream_options":{"include_usage":7})"), "stream_options.include_usage"},
           {hello(R"("model":7)"), "model"},
           {hello(R"("max_completion_tokens":0)"), "max_completion_tokens"},
           {R"({"messages":[]})", "messages"},
           {R"({"prompt":"x"})", "messages"},
           {R"({"messages":["x"]})", "messages[0]"},
           {R"({"messages":[{"content":"x"}]})", "messages[0].role"},
           {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
           {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
            "messages[0].content[0].image_url.url"},
           {R"({"messages":[{"role":"user","content":{"type":7}}]})", "messages[0].content"},
           {"[]", "body"},
       }) {
    const RawResponse response = worker.post(kChat, body);
    EXPECT_EQ(response.status, 400) << body;
    const json error = json::parse(response.body).at("error");
    EXPECT_EQ(error.at("param"), param) << response.body;
    EXPECT_EQ(error.at("type"), "invalid_request_error");
    EXPECT_EQ(error.at("code"), "INVALID_REQUEST");
    EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr(param));
  }
  for (const auto& [field, param] : std::vector<std::pair<std::string, std::string>>{
           {R"("logprobs":21)", "logprobs"},
           {R"("n":3,"best_of":2)", "best_of"},
           {R"("best_of":2,"stream":true)", "best_of"},
           {R"("best_of":33)", "best_of"},
       }) {
    const RawResponse response = worker.post(kCompletions, cat(R"({"prompt":"x",)", field, "}"));
    EXPECT_EQ(response.status, 400) << field;
    EXPECT_EQ(json::parse(response.body).at("error").at("param"), param) << response.body;
  }
  for (const char* body : {R"({})", R"({"prompt":""})", R"({"prompt":{"a":"b"}})"}) {
    const RawResponse response = worker.post(kCompletions, body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(json::parse(response.body).at("error").at("param"), "prompt") << body;
  }
}

TEST(OpenAi, APromptBeyondTheContextIsAnErrorBeforeAStreamBegins) {
  Worker worker;
  worker.engine.set_context(4096);
  for (const size_t bytes : {size_t{5000}, size_t{9000}}) {  // on both sides of kLongText
    const std::string many(bytes, 'a');
    for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
             {kChat, cat(R"({"messages":[{"role":"user","content":")", many, R"("}],)")},
             {kCompletions, cat(R"({"prompt":")", many, R"(",)")},
             {kCompletions, cat(R"({"prompt":["a",")", many, R"("],)")},
             {"/v1/responses", cat(R"({"input":")", many, R"(",)")}}) {
      for (const char* stream : {"true", "false"}) {
        const RawResponse response = worker.post(path, cat(body, R"("stream":)", stream, "}"));
        EXPECT_EQ(response.status, 400) << path << response.body;
        const json error = json::parse(response.body).at("error");
        EXPECT_EQ(error.at("code"), "context_length_exceeded");
        EXPECT_EQ(error.at("type"), "invalid_request_error");
        EXPECT_THAT(error.at("message").get<std::string>(),
                    HasSubstr("maximum context length is 4096 tokens"));
      }
    }
  }
}

TEST(OpenAi, AnAnswerGoesOnFromTheLastMessage) {
  Worker worker;
  const std::string begun =
      R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Well"}])";
  EXPECT_EQ(worker.post(kChat, begun + "}").status, 200);
  EXPECT_FALSE(worker.engine.last_request().chat.continue_last);
  EXPECT_EQ(worker
                .post(kChat, begun + R"(,"continue_final_message":true,
                                            "add_generation_prompt":false})")
                .status,
            200);
  EXPECT_TRUE(worker.engine.last_request().chat.continue_last);
  for (const std::string& body :
       {hello(R"("continue_final_message":true)"),
        begun + R"(,"continue_final_message":true,"add_generation_prompt":true})"}) {
    const RawResponse response = worker.post(kChat, body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(json::parse(response.body).at("error").at("param"), "continue_final_message");
  }
}

engine::ScoredChoice scored(std::string text, float logprob) {
  return {{1, text, logprob}, {{2, "top", -0.25f}, {1, std::move(text), logprob}}};
}

TEST(OpenAi, LogProbabilitiesOfAChat) {
  // A character of two bytes, split into two tokens.
  const std::vector<std::vector<engine::ScoredChoice>> tokens = {
      {scored("Hel", -0.5f), scored("lo", -1)},
      {},
      {scored("\xc3", -2), scored("\xa9", -INFINITY)}};
  Worker worker({.script = {.pieces = {"Hello", ", ", "\xc3\xa9"}, .tokens = tokens}});
  const json answer =
      json::parse(worker.post(kChat, hello(R"("logprobs":true,"top_logprobs":2)")).body);
  EXPECT_EQ(worker.engine.last_request().logprobs, 2);
  const json content = answer.at("choices")[0].at("logprobs").at("content");
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[0], json::parse(R"({"token":"Hel","logprob":-0.5,"bytes":[72,101,108],
      "top_logprobs":[{"token":"top","logprob":-0.25,"bytes":[116,111,112]},
                      {"token":"Hel","logprob":-0.5,"bytes":[72,101,108]}]})"));
  EXPECT_EQ(content[2].at("token"), "\xef\xbf\xbd");
  EXPECT_EQ(content[2].at("bytes"), json::parse("[195]"));
  EXPECT_EQ(content[3].at("logprob"), -9999);

  const std::vector<std::string> events =
      payloads(worker.post(kChat, hello(R"("logprobs":true,"stream":true)")).body);
  EXPECT_EQ(worker.engine.last_request().logprobs, 0);
  const auto pieces = [&](size_t i) { return json::parse(events[i]).at("choices")[0]; };
  EXPECT_EQ(pieces(1).at("logprobs").at("content").size(), 2u);
  EXPECT_EQ(pieces(2).at("logprobs"), nullptr);
  EXPECT_EQ(pieces(3).at("logprobs").at("content").size(), 2u);
}

TEST(OpenAi, LogProbabilitiesOfACompletion) {
  const std::vector<std::vector<engine::ScoredChoice>> tokens = {{scored("\xc3\xa9t", -0.5f)},
                                                                 {scored("e", -1)}};
  Worker worker({.script = {.pieces = {"\xc3\xa9t", "e"}, .tokens = tokens}});
  const std::string body = R"({"prompt":"x","logprobs":2)";
  const json answer = json::parse(worker.post(kCompletions, body + "}").body);
  const json wanted = json::parse(R"({"tokens":["\u00e9t","e"],"token_logprobs":[-0.5,-1.0],
      "top_logprobs":[{"top":-0.25,"\u00e9t":-0.5},{"top":-0.25,"e":-1.0}],"text_offset":[0,2]})");
  EXPECT_EQ(answer.at("choices")[0].at("logprobs"), wanted);
  const std::vector<std::string> events =
      payloads(worker.post(kCompletions, body + R"(,"stream":true})").body);
  EXPECT_EQ(json::parse(events[1]).at("choices")[0].at("logprobs").at("text_offset"),
            json::parse("[2]"));
}

// OpenAI: "up to logprobs+1 elements".
TEST(OpenAi, TheChosenTokenIsAmongNoLikeliestOnes) {
  engine::ScoredChoice alone = scored("e", -1);
  alone.top.clear();
  Worker worker({.script = {.pieces = {"e"}, .tokens = {{alone}}}});
  const json answer = json::parse(worker.post(kCompletions, R"({"prompt":"x","logprobs":0})").body);
  EXPECT_EQ(answer.at("choices")[0].at("logprobs").at("top_logprobs"),
            json::parse(R"([{"e":-1.0}])"));
}

TEST(OpenAi, ChatsTellLlamaServersTimings) {
  Worker worker;
  const json whole = json::parse(worker.post(kChat, hello("")).body);
  EXPECT_EQ(whole.at("timings").at("predicted_n"), whole.at("usage").at("completion_tokens"));
  EXPECT_TRUE(whole.at("timings").contains("prompt_per_second"));
  const std::vector<std::string> events =
      payloads(worker.post(kChat, hello(R"("stream":true)")).body);
  size_t told = 0;
  for (const std::string& event : events) {
    const json piece = json::parse(event, nullptr, false);
    if (!piece.is_object() || !piece.contains("timings")) continue;
    EXPECT_EQ(piece.at("choices")[0].at("finish_reason"), "stop");
    ++told;
  }
  EXPECT_EQ(told, 1u);
}

TEST(OpenAi, SpeakersAndPartsReachTheTemplate) {
  Worker worker;
  const char* body = R"({"messages":[{"role":"user","name":"Ann","content":[
      {"type":"text","text":"a"},{"type":"text","text":"b"}]}],"add_generation_prompt":false})";
  EXPECT_EQ(worker.post(kChat, body).status, 200);
  const engine::TextRequest asked = worker.engine.last_request();
  EXPECT_EQ(asked.messages[0].name, "Ann");
  EXPECT_EQ(asked.messages[0].content, "a\nb");
  EXPECT_FALSE(asked.chat.add_generation_prompt);
}

TEST(OpenAi, HalfCharactersAreToldApartInACompletion) {
  engine::ScoredChoice half = scored("\xf0\x9f", -0.5f);
  half.top = {{2, " \xf0\x9f", -0.25f}, {1, "\xf0\x9f", -0.5f}, {3, "\xe2\x80", -2}};
  Worker worker({.script = {.pieces = {"\xf0\x9f\x98\x80"}, .tokens = {{half}}}});
  const json answer = json::parse(worker.post(kCompletions, R"({"prompt":"x","logprobs":3})").body);
  const json shown = answer.at("choices")[0].at("logprobs");
  EXPECT_EQ(shown.at("tokens"), json::parse(R"(["bytes:\\xf0\\x9f"])"));
  EXPECT_EQ(shown.at("top_logprobs")[0],
            json::parse(R"({"bytes:\\x20\\xf0\\x9f":-0.25,"bytes:\\xf0\\x9f":-0.5,
                            "bytes:\\xe2\\x80":-2.0})"));
}

TEST(OpenAi, LogprobsOfAnEmptyAnswerAreEmptyLists) {
  Worker worker({.script = {.pieces = {}}});
  const json chat = json::parse(worker.post(kChat, hello(R"("logprobs":true)")).body);
  EXPECT_EQ(chat.at("choices")[0].at("logprobs"), json::parse(R"({"content":[],"refusal":null})"));
  const json text =
      json::parse(worker.post("/v1/completions", R"({"prompt":"x","logprobs":1})").body);
  EXPECT_EQ(text.at("choices")[0].at("logprobs"),
            json::parse(R"({"tokens":[],"token_logprobs":[],"top_logprobs":[],"text_offset":[]})"));
}

TEST(OpenAi, SeveralChoicesAreOneAnswer) {
  Worker worker;
  const json answer = json::parse(worker.post(kChat, hello(R"("n":3,"seed":5)")).body);
  ASSERT_EQ(answer.at("choices").size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answer.at("choices")[i].at("index"), i);
    EXPECT_EQ(answer.at("choices")[i].at("message").at("content"), "Hello, world");
  }
  const json usage = {{"prompt_tokens", 5},
                      {"completion_tokens", 9},
                      {"total_tokens", 14},
                      {"prompt_tokens_details", {{"cached_tokens", 2}}},
                      {"completion_tokens_details", {{"reasoning_tokens", 0}}}};
  EXPECT_EQ(answer.at("usage"), usage);
  const engine::TextRequest last = worker.engine.last_request();
  EXPECT_EQ(last.sampling.seed, 7u);
  EXPECT_EQ(cat(last.follows, "-2"), last.job_id);

  const std::vector<std::string> events = payloads(
      worker.post(kChat, hello(R"("n":2,"stream":true,"stream_options":{"include_usage":true})"))
          .body);
  std::map<int, std::string> texts;
  int reasons = 0;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const json choice = json::parse(events[i]).at("choices").at(0);
    texts[choice.at("index")] += choice.at("delta").value("content", "");
    reasons += choice.at("finish_reason") == "stop";
  }
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "Hello, world"}, {1, "Hello, world"}}));
  EXPECT_EQ(reasons, 2);
  EXPECT_EQ(json::parse(events[events.size() - 2]).at("usage").at("completion_tokens"), 6);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(OpenAi, TheBestOfSeveralIsGiven) {
  Worker worker({.script = {.tokens = {{scored("Hello", -1)}, {}, {}}}});
  const json answer =
      json::parse(worker.post(kCompletions, R"({"prompt":"x","n":2,"best_of":4})").body);
  ASSERT_EQ(answer.at("choices").size(), 2u);
  EXPECT_EQ(answer.at("choices")[1].at("index"), 1);
  EXPECT_EQ(answer.at("choices")[0].at("logprobs"), nullptr);
  EXPECT_EQ(answer.at("usage").at("completion_tokens"), 12);
  EXPECT_EQ(worker.engine.last_request().logprobs, 0);
}

TEST(OpenAi, AFailureOfOneChoiceEndsTheAnswer) {
  const engine::Failed failure{.code = Code::internal, .message = "it broke"};
  Worker broken({.script = {.failure = failure}});
  EXPECT_EQ(broken.post(kChat, hello(R"("n":3)")).status, 500);
  const std::vector<std::string> events =
      payloads(broken.post(kChat, hello(R"("n":3,"stream":true)")).body);
  EXPECT_EQ(std::ranges::count(events, "[DONE]"), 1);
}

// Not 429: the queue never has room for all of them.
TEST(OpenAi, MoreAnswersThanCanWaitAreRefused) {
  Worker worker;
  const auto ask = [&](size_t prompts, int choices) {
    const json body = {{"prompt", std::vector<std::string>(prompts, "x")}, {"n", choices}};
    return worker.post(kCompletions, body.dump());
  };
  EXPECT_EQ(ask(128, 2).status, 200);
  const RawResponse refused = ask(86, 3);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("258 answers is more than the 256"));
}

TEST(OpenAi, RefusalsAndFailuresHaveTheirStatus) {
  Worker full;
  full.engine.refuse_with(Code::out_of_memory);
  const RawResponse refused = full.post(kChat, hello(R"("stream":true)"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(json::parse(refused.body).at("error").at("type"), "rate_limit_error");
  EXPECT_EQ(json::parse(refused.body).at("error").at("param"), nullptr);

  const engine::Failed failure{.code = Code::internal, .message = "it broke"};
  Worker broken({.script = {.failure = failure}});
  const RawResponse failed = broken.post(kChat, hello(""));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(json::parse(failed.body).at("error").at("type"), "server_error");
  const std::vector<std::string> events =
      payloads(broken.post(kChat, hello(R"("stream":true)")).body);
  ASSERT_GE(events.size(), 2u);
  EXPECT_THAT(json::parse(events[events.size() - 2]).at("error").at("message").get<std::string>(),
              HasSubstr("it broke"));
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(OpenAi, AClientThatLeavesCancels) {
  Worker worker({.script = {.hold_after = true}});
  for (const char* stream : {"true", "false"}) {
    RawClient client(worker.port());
    client.send(request("POST", kChat, hello(cat("\"stream\":", stream))));
    EXPECT_TRUE(worker.engine.wait_texts_sent(stream == std::string("true") ? 1 : 2));
    client.close();
  }
  EXPECT_TRUE(worker.engine.wait_ended(2));
  EXPECT_EQ(worker.engine.cancelled(), 2);
}

}  // namespace
}  // namespace rbee::testing

// Fields and routes of vLLM and llama-server beyond OpenAI's own.

#include <gmock/gmock.h>

#include <cmath>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletions = "/v1/completions";

engine::ScoredChoice token(int32_t id, const std::string& text, float logprob = -1) {
  return {.chosen = {id, text, logprob}, .top = {{9, "top", -0.25f}}};
}

// Three pieces of one token each.
Script three() {
  return {.pieces = {"a", "b", "c"}, .tokens = {{token(1, "a")}, {token(2, "b")}, {token(3, "c")}}};
}

json answer(const Worker& worker, const char* path, json body) {
  if (path == std::string_view(kChat)) {
    body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
  } else if (!body.contains("prompt")) {
    body["prompt"] = "Hi";
  }
  const RawResponse response = worker.post(path, body.dump());
  if (!body.value("stream", false)) {
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  json pieces = json::array();
  for (const std::string& event : payloads(response.body)) {
    if (event != "[DONE]") pieces.push_back(json::parse(event));
  }
  return pieces;
}

TEST(PeerFields, IdsOfTokens) {
  Worker worker({.script = three()});
  const json prompt = {1, 2, 3, 4, 5}, ids = {1, 2, 3};
  const json completion = answer(worker, kCompletions, {{"return_token_ids", true}});
  EXPECT_EQ(completion.at("choices")[0].at("token_ids"), ids);
  EXPECT_EQ(completion.at("choices")[0].at("prompt_token_ids"), prompt);
  EXPECT_EQ(completion.at("choices")[0].at("logprobs"), nullptr);
  const json chat = answer(worker, kChat, {{"return_token_ids", true}});
  EXPECT_EQ(chat.at("choices")[0].at("token_ids"), ids);
  EXPECT_EQ(chat.at("prompt_token_ids"), prompt);
  for (const char* path : {kChat, kCompletions}) {
    json told = json::array();
    size_t prompts = 0;
    for (const json& piece : answer(worker, path, {{"return_token_ids", true}, {"stream", true}})) {
      const json& choice = piece.at("choices")[0];
      for (const json& id : choice.at("token_ids")) told.push_back(id);
      const json& holder = path == kChat ? piece : choice;
      prompts += holder.value("prompt_token_ids", json()) == prompt ? 1 : 0;
      EXPECT_EQ(choice.at("logprobs"), nullptr);
    }
    EXPECT_EQ(told, ids) << path;
    EXPECT_EQ(prompts, 1u) << path;
  }
  const json none = answer(worker, kChat, json::object());
  EXPECT_EQ(none.at("prompt_token_ids"), nullptr);
  EXPECT_EQ(none.at("choices")[0].at("token_ids"), nullptr);
  EXPECT_EQ(none.at("choices")[0].at("stop_reason"), nullptr);
  Worker stopped({.script = {.reason = engine::StopReason::stop_sequence, .stop_sequence = "."}});
  EXPECT_EQ(answer(stopped, kChat, json::object()).at("choices")[0].at("stop_reason"), ".");
}

TEST(PeerFields, IdsHoldTheTokenOfTheEnd) {
  Script script = three();
  script.end_id = 7;
  Worker worker({.script = script});
  const json ids = {1, 2, 3, 7};
  for (const char* path : {kChat, kCompletions}) {
    const json whole = answer(worker, path, {{"return_token_ids", true}});
    EXPECT_EQ(whole.at("choices")[0].at("token_ids"), ids) << path;
    json told = json::array();
    for (const json& piece : answer(worker, path, {{"return_token_ids", true}, {"stream", true}})) {
      for (const json& id : piece.at("choices")[0].at("token_ids")) told.push_back(id);
    }
    EXPECT_EQ(told, ids) << path;
  }
}

TEST(PeerFields, LogProbabilitiesOfNamedTokens) {
  Worker worker({.script = three()});
  const json named = {5, 6};
  answer(worker, kCompletions, {{"logprobs", 2}, {"logprob_token_ids", named}});
  EXPECT_EQ(worker.engine.last_request().logprob_ids, (std::vector<int32_t>{5, 6}));
  answer(worker, kChat, {{"logprobs", true}, {"logprob_token_ids", named}});
  EXPECT_EQ(worker.engine.last_request().logprob_ids, (std::vector<int32_t>{5, 6}));
  for (const json& wrong :
       {json{{"logprob_token_ids", named}},
        json{{"logprobs", 1}, {"logprob_token_ids", json::array()}},
        json{{"logprobs", 1}, {"logprob_token_ids", {-1}}},
        json{{"logprobs", 1}, {"logprob_token_ids", std::vector(129, 1)}},
        json{{"logprobs", 1}, {"logprob_token_ids", std::vector(21, 1)}, {"n", 32}}}) {
    json body = wrong;
    body["prompt"] = "x";
    const RawResponse refused = worker.post(kCompletions, body.dump());
    EXPECT_EQ(refused.status, 400) << wrong;
    EXPECT_THAT(refused.body, HasSubstr("logprob_token_ids"));
  }
}

// vLLM's value for the whole vocabulary.
TEST(PeerFields, LogProbabilitiesOfAllTokensAreRefused) {
  Worker worker({.script = three()});
  const auto refused = [&](std::string_view path, json body) {
    body[path == kChat ? "messages" : "prompt"] =
        path == kChat ? json{{{"role", "user"}, {"content", "x"}}} : json("x");
    const RawResponse answer = worker.post(path, body.dump());
    EXPECT_EQ(answer.status, 400) << body;
    return json::parse(answer.body).at("error").at("param");
  };
  EXPECT_EQ(refused(kCompletions, {{"logprobs", -1}}), "logprobs");
  EXPECT_EQ(refused(kCompletions, {{"prompt_logprobs", -1}}), "prompt_logprobs");
  EXPECT_EQ(refused(kChat, {{"logprobs", true}, {"top_logprobs", -1}}), "top_logprobs");
}

TEST(PeerFields, LogProbabilitiesMayNameIds) {
  Worker worker({.script = three()});
  const json body = {{"logprobs", 1}, {"return_tokens_as_token_ids", true}};
  const json figures = answer(worker, kCompletions, body).at("choices")[0].at("logprobs");
  EXPECT_EQ(figures.at("tokens"), (json{"token_id:1", "token_id:2", "token_id:3"}));
  EXPECT_TRUE(figures.at("top_logprobs")[0].contains("token_id:9"));
  const json chat = {{"logprobs", true}, {"top_logprobs", 1}, {"return_tokens_as_token_ids", true}};
  const json content = answer(worker, kChat, chat).at("choices")[0].at("logprobs").at("content");
  EXPECT_EQ(content[1].at("token"), "token_id:2");
  EXPECT_EQ(content[1].at("top_logprobs")[0].at("token"), "token_id:9");
}

TEST(PeerFields, VllmsFieldsReachTheEngine) {
  Worker worker;
  answer(worker, kCompletions,
         {{"truncate_prompt_tokens", 4},
          {"truncation_side", "right"},
          {"allowed_token_ids", {7, 8}},
          {"add_special_tokens", false}});
  const engine::TextRequest request = worker.engine.last_request();
  EXPECT_EQ(request.kept_tokens, 4);
  EXPECT_TRUE(request.keeps_first);
  EXPECT_EQ(request.allowed_ids, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(request.prompt_ids, (std::vector<int32_t>{1072, 1105}));  // without a begin mark
  for (const auto& [field, wrong] :
       std::vector<std::pair<const char*, json>>{{"truncate_prompt_tokens", 0},
                                                 {"truncation_side", "middle"},
                                                 {"allowed_token_ids", json::array()}}) {
    const RawResponse refused =
        worker.post(kCompletions, json{{"prompt", "x"}, {field, wrong}}.dump());
    EXPECT_EQ(refused.status, 400) << field;
    EXPECT_THAT(refused.body, HasSubstr(field));
  }
}

TEST(PeerFields, AChatsEchoIsWhatItGoesOnFrom) {
  Worker worker;
  json body = {
      {"messages",
       {{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "So"}}}},
      {"continue_final_message", true},
      {"add_generation_prompt", false},
      {"echo", true}};
  const json whole = json::parse(worker.post(kChat, body.dump()).body);
  EXPECT_EQ(whole.at("choices")[0].at("message").at("content"), "SoHello, world");
  body["stream"] = true;
  std::string text;
  for (const std::string& event : payloads(worker.post(kChat, body.dump()).body)) {
    if (event == "[DONE]") continue;
    text += json::parse(event).at("choices")[0].at("delta").value("content", "");
  }
  EXPECT_EQ(text, "SoHello, world");
}

TEST(PeerFields, ReasoningMayStayInTheText) {
  text::OutputFormat format;
  format.reasoning = text::ReasoningFormat::think;
  Worker worker({.script = {.pieces = {"<think>", "hm", "</think>", "So"}, .format = format}});
  const auto message = [&](json body) {
    return answer(worker, kChat, std::move(body)).at("choices")[0].at("message");
  };
  EXPECT_EQ(message({{"reasoning_format", "auto"}}).at("reasoning_content"), "hm");
  const json whole = message({{"reasoning_format", "none"}});
  EXPECT_EQ(whole.at("content"), "<think>hm</think>So");
  EXPECT_FALSE(whole.contains("reasoning_content"));
  EXPECT_EQ(worker
                .post(kChat, R"({"messages":[{"role":"user","content":"a"}],
                                   "reasoning_format":"raw"})")
                .status,
            400);
}

TEST(PeerFields, ReasoningMayBeLeftOut) {
  text::OutputFormat format;
  format.reasoning = text::ReasoningFormat::think;
  Script script{.pieces = {"<think>", "hm", "so", "</think>", "So"}, .format = format};
  for (int32_t i = 0; i < 5; ++i) {
    script.tokens.push_back({token(i + 1, script.pieces[static_cast<size_t>(i)])});
  }
  Worker worker({.script = script});
  json body = {{"include_reasoning", false}, {"logprobs", true}};
  const json whole = answer(worker, kChat, body);
  const json& choice = whole.at("choices")[0];
  EXPECT_EQ(choice.at("message").at("content"), "So");
  EXPECT_FALSE(choice.at("message").contains("reasoning"));
  EXPECT_FALSE(choice.at("message").contains("reasoning_content"));
  EXPECT_EQ(choice.at("logprobs").at("content").back().at("token"), "So");
  EXPECT_THAT(choice.at("logprobs").dump(), ::testing::Not(HasSubstr("hm")));
  EXPECT_GT(whole.at("usage").at("completion_tokens_details").at("reasoning_tokens"), 0);
  EXPECT_EQ(whole.at("usage").at("completion_tokens"), 5);
  body["stream"] = true;
  const std::string pieces = answer(worker, kChat, body).dump();
  EXPECT_THAT(pieces, ::testing::Not(HasSubstr("hm")));
  EXPECT_THAT(pieces, HasSubstr("\"So\""));
  EXPECT_THAT(answer(worker, kChat, {{"stream", true}}).dump(), HasSubstr("hm"));
  EXPECT_EQ(worker.post(kCompletions, R"({"prompt":"a","include_reasoning":false})").status, 400);
}

TEST(PeerFields, ChatsTellTheirTimesAsVllmDoes) {
  Worker worker({.script = three()});
  const json whole = answer(worker, kChat, json::object()).at("metrics");
  for (const char* name : {"time_to_first_token_ms", "generation_time_ms", "queue_time_ms",
                           "mean_itl_ms", "tokens_per_second"}) {
    EXPECT_GE(whole.at(name).get<double>(), 0) << name;
  }
  const json pieces =
      answer(worker, kChat,
             {{"stream", true}, {"max_tokens", 1}, {"stream_options", {{"include_usage", true}}}});
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].contains("metrics"), i + 1 == pieces.size()) << i;
  }
  EXPECT_FALSE(pieces.back().at("metrics").contains("mean_itl_ms"));
  // They describe one answer.
  EXPECT_FALSE(answer(worker, kChat, {{"n", 2}}).contains("metrics"));
}

TEST(PeerFields, EveryPieceMayCountTokens) {
  Worker worker({.script = three()});
  const json options = {{"include_usage", true}, {"continuous_usage_stats", true}};
  for (const char* path : {kChat, kCompletions}) {
    int64_t last = 0;
    for (const json& piece :
         answer(worker, path, {{"stream", true}, {"stream_options", options}})) {
      EXPECT_EQ(piece.at("usage").at("prompt_tokens"), 5) << path;
      EXPECT_GE(piece.at("usage").at("completion_tokens"), last) << path;
      last = piece.at("usage").at("completion_tokens");
    }
    EXPECT_EQ(last, 3) << path;
  }
  const json body = {{"prompt", "x"}, {"stream_options", options}};
  EXPECT_EQ(worker.post(kCompletions, body.dump()).status, 400);  // not a stream
}

TEST(PeerFields, TheWayThroughAPromptIsTold) {
  Worker worker({.script = three()});
  for (const char* path : {kChat, kCompletions, "/completion"}) {
    std::vector<json> told;
    bool timed = false;
    for (const json& piece :
         answer(worker, path,
                {{"stream", true}, {"return_progress", true}, {"timings_per_token", true}})) {
      if (!piece.contains("prompt_progress")) {
        timed |= piece.contains("timings") && piece.at("timings").at("predicted_n") == 2;
        continue;
      }
      told.push_back(piece.at("prompt_progress"));
      EXPECT_EQ(piece.at("timings").at("predicted_n"), 0);
    }
    ASSERT_EQ(told.size(), 3u) << path;
    EXPECT_EQ(told[0], json::parse(R"({"total":5,"cache":2,"processed":2,"time_ms":0})")) << path;
    EXPECT_EQ(told[2].at("processed"), 5) << path;
    EXPECT_TRUE(timed) << path;
  }
  EXPECT_FALSE(worker.engine.last_request().messages.size() > 0);
}

TEST(PeerFields, SoIsItInStreamsOfResponses) {
  Worker worker({.script = three()});
  const json body = {
      {"input", "Hi"}, {"stream", true}, {"return_progress", true}, {"timings_per_token", true}};
  size_t told = 0, timed = 0;
  for (const std::string& event : payloads(worker.post("/v1/responses", body.dump()).body)) {
    const json piece = json::parse(event);
    if (piece.contains("prompt_progress")) {
      ++told;
      EXPECT_EQ(piece.at("type"), "response.in_progress");
    }
    if (piece.at("type") == "response.output_text.delta") {
      EXPECT_EQ(piece.at("timings").at("predicted_n"), ++timed);
      EXPECT_EQ(piece.at("logprobs"), json::array());  // not requested
    }
    EXPECT_EQ(piece.contains("timings") && piece.at("type") == "response.completed",
              piece.at("type") == "response.completed");
  }
  EXPECT_EQ(told, 3u);
  EXPECT_EQ(timed, 3u);
}

// The prompt's step yields the first token.
TEST(PeerFields, SpeedCountsTheStepsBehindTheFirstToken) {
  Worker worker({.script = three()});
  const json timings = answer(worker, "/completion", {{"prompt", "x"}}).at("timings");
  EXPECT_EQ(timings.at("predicted_n"), 3);
  EXPECT_DOUBLE_EQ(timings.at("predicted_per_token_ms"), 5.0);  // 10 ms
  EXPECT_DOUBLE_EQ(timings.at("predicted_per_second"), 200.0);
  const json one = answer(worker, "/completion", {{"n_predict", 1}}).at("timings");
  EXPECT_EQ(one.at("predicted_per_second"), 0);
}

TEST(PeerFields, ProbabilitiesMayBeThoseOfTheDraw) {
  Worker worker({.script = {.pieces = {"a"}, .tokens = {{token(1, "a", std::log(0.5f))}}}});
  const json body = {{"n_probs", 4}, {"post_sampling_probs", true}};
  const json told = answer(worker, "/completion", body).at("completion_probabilities");
  EXPECT_FLOAT_EQ(told[0].at("prob").get<float>(), 0.5f);
  EXPECT_FLOAT_EQ(told[0].at("top_probs")[0].at("prob").get<float>(), std::exp(-0.25f));
  EXPECT_FALSE(told[0].contains("logprob"));
  EXPECT_EQ(worker.engine.last_request().drawn_logprobs, 4);
  EXPECT_FALSE(worker.engine.last_request().logprobs);
}

TEST(PeerFields, APromptThatIsTooLongIsTold) {
  Worker worker;
  worker.engine.set_context(3);
  const json body = {{"prompt", "Hello"}};
  const json error = json::parse(worker.post(kCompletions, body.dump()).body).at("error");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  EXPECT_EQ(error.at("n_prompt_tokens"), 5);
  EXPECT_EQ(error.at("n_ctx"), 3);
  EXPECT_THAT(error.at("message"), HasSubstr("exceeds the available context size"));
}

TEST(PeerFields, DefaultsOfTheWorkerFillInWhatIsNotSaid) {
  Worker worker({.defaults = {.temperature = 0.25f, .seed = 11, .max_tokens = 20}});
  answer(worker, "/completion", json::object());
  EXPECT_FLOAT_EQ(worker.engine.last_request().sampling.temperature, 0.25f);
  EXPECT_EQ(worker.engine.last_request().sampling.seed, 11u);
  EXPECT_EQ(worker.engine.last_request().max_tokens, 20);
  answer(worker, kChat, {{"temperature", 1}, {"seed", 3}, {"max_tokens", 7}});
  EXPECT_FLOAT_EQ(worker.engine.last_request().sampling.temperature, 1.0f);
  EXPECT_EQ(worker.engine.last_request().sampling.seed, 3u);
  EXPECT_EQ(worker.engine.last_request().max_tokens, 7);
  answer(worker, kChat, json::object());
  EXPECT_EQ(worker.engine.last_request().max_tokens, 20);
  const json settings = json::parse(worker.get("/props").body).at("default_generation_settings");
  EXPECT_EQ(settings.at("params").at("seed"), 11);
  EXPECT_EQ(settings.at("params").at("n_predict"), 20);
  EXPECT_EQ(settings.at("params").at("temperature"), 0.25);
}

TEST(PeerRoutes, InvocationsAreChatsOrCompletions) {
  Worker worker;
  const auto object = [&](const char* body) {
    return json::parse(worker.post("/invocations", body).body).at("object");
  };
  EXPECT_EQ(object(R"({"messages":[{"role":"user","content":"Hi"}]})"), "chat.completion");
  EXPECT_EQ(object(R"({"prompt":"Hi"})"), "text_completion");
  EXPECT_EQ(worker.post("/invocations", "{}").status, 400);
}

TEST(PeerRoutes, StateUnderOthersNames) {
  Worker worker({.token = "secret"});
  EXPECT_EQ(worker.get("/ping").status, 200);
  EXPECT_EQ(ask(worker.port(), request("POST", "/ping", "")).status, 200);
  EXPECT_EQ(worker.get("/load").status, 401);
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(worker.get("/load", key).body, R"({"server_load":0})");
  const json tokenizer = json::parse(worker.get("/tokenizer_info", key).body);
  EXPECT_EQ(tokenizer.at("tokenizer_class"), "gguf-bpe");
  EXPECT_EQ(tokenizer.at("chat_template"), "{{ messages }}");
  EXPECT_EQ(tokenizer.at("eos_token"), "</s>");
  const RawResponse metrics = worker.get("/metrics", key);
  EXPECT_GT(std::stoll(metrics.headers.at("process-start-time-unix")), 1'600'000'000);
  EXPECT_THAT(metrics.body, HasSubstr("# TYPE llamacpp:n_busy_slots_per_decode gauge"));
  EXPECT_THAT(metrics.body, HasSubstr("llamacpp:spec_decode_num_drafts_total"));
}

TEST(PeerRoutes, ModelsTellTheirOtherNames) {
  FakeEngine engine;
  server::LlmService service(engine, {.worker_id = "w",
                                      .model_id = "one",
                                      .implementation = "test",
                                      .version = "1",
                                      .aliases = {"one", "two"},
                                      .tags = {"small"}});
  server::Server server({}, server::chat_routes(service, {}, {}), server::ApiKeys(""));
  const auto get = [&](const char* path) {
    return json::parse(ask(server.port(), request("GET", path)).body);
  };
  const json model = get("/v1/models").at("data")[0];
  EXPECT_EQ(model.at("aliases"), (json{"one", "two"}));
  EXPECT_EQ(model.at("tags"), json{"small"});
  EXPECT_EQ(model.at("root"), "one");
  EXPECT_EQ(model.at("parent"), nullptr);
  EXPECT_EQ(model.at("type"), "base");  // Mistral's field
  EXPECT_EQ(model.at("capabilities"), json::object());
  EXPECT_EQ(get("/v1/models/two"), model);
}

}  // namespace
}  // namespace rbee::testing

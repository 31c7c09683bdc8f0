// llama-server's own routes: /completion, /infill, /props, /slots.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json asked(const Worker& worker, std::string_view path, const json& body) {
  const RawResponse response = worker.post(path, body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

TEST(LlamaRoutes, CompletionInOnePiece) {
  Worker worker;
  const json body = {{"prompt", "Hi"}, {"n_predict", 7}, {"seed", 5}, {"cache_prompt", true}};
  const json answer = asked(worker, "/completion", body);
  EXPECT_EQ(answer.at("content"), "Hello, world");
  EXPECT_EQ(answer.at("stop"), true);
  EXPECT_EQ(answer.at("stop_type"), "eos");
  EXPECT_EQ(answer.at("model"), "hf:fake");
  EXPECT_EQ(answer.at("truncated"), false);
  EXPECT_EQ(answer.at("generation_settings").at("n_predict"), 7);
  EXPECT_EQ(answer.at("generation_settings").at("seed"), 5);
  EXPECT_EQ(answer.at("generation_settings").at("min_p"), 0.05);
  EXPECT_EQ(answer.at("tokens"), json::array());
  EXPECT_FALSE(answer.contains("completion_probabilities"));
  const json& timings = answer.at("timings");
  EXPECT_EQ(timings.at("predicted_n"), answer.at("tokens_predicted"));
  EXPECT_EQ(timings.at("prompt_n").get<int>() + timings.at("cache_n").get<int>(),
            answer.at("tokens_evaluated").get<int>());
  const engine::TextRequest request = worker.engine.last_request();
  EXPECT_EQ(request.prompt, "Hi");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_FLOAT_EQ(request.sampling.min_p, 0.05f);
  EXPECT_EQ(asked(worker, "/completions", body).at("content"), "Hello, world");
}

TEST(LlamaRoutes, WithoutNPredictTheContextEndsTheAnswer) {
  Worker worker;
  const json answer = asked(worker, "/completion", {{"prompt", "Hi"}, {"n_predict", -1}});
  EXPECT_EQ(answer.at("generation_settings").at("n_predict"), -1);
  EXPECT_EQ(worker.engine.last_request().max_tokens, INT32_MAX);
}

TEST(LlamaRoutes, CompletionAsStream) {
  const std::vector<engine::ScoredChoice> one(1);
  Worker worker({.script = {.tokens = {one, one, one}}});
  const RawResponse response = worker.post("/completion", R"({"prompt":[1072,"i"],"stream":true})");
  const std::vector<std::string> events = payloads(response.body);
  ASSERT_EQ(events.size(), 4U);
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    const json piece = json::parse(events[i]);
    EXPECT_EQ(piece.at("stop"), false);
    EXPECT_EQ(piece.at("tokens_predicted"), i + 1);
    text += piece.at("content");
  }
  EXPECT_EQ(text, "Hello, world");
  const json last = json::parse(events[3]);
  EXPECT_EQ(last.at("stop"), true);
  EXPECT_EQ(last.at("content"), "");
  EXPECT_EQ(worker.engine.last_request().prompt_ids, (std::vector<int32_t>{1072, 1105}));
}

TEST(LlamaRoutes, SeveralPromptsAreAnsweredInTheirOrder) {
  Worker worker({.script = {.echo = true}});
  const json prompts = {"one", {1116, "wo"}, {1051}};
  const json answers = asked(worker, "/completion", {{"prompt", prompts}});
  ASSERT_EQ(answers.size(), 3U);
  const std::vector<std::string> texts = {"one", "two", "3"};
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(answers[i].at("index"), i);
    EXPECT_EQ(answers[i].at("content"), texts[i]);
    EXPECT_EQ(answers[i].at("stop"), true);
  }
  EXPECT_EQ(asked(worker, "/completion", {{"prompt", {"one"}}}).at("content"), "one");
  const json named = {{"prompt_string", "one"}, {"multimodal_data", json::array()}};
  EXPECT_EQ(asked(worker, "/completion", {{"prompt", named}}).at("content"), "one");
  EXPECT_EQ(asked(worker, "/completion", {{"prompt", {named, "two"}}}).size(), 2U);
  const json seen = {{"prompt_string", "one"}, {"multimodal_data", {"aGk="}}};
  EXPECT_EQ(worker.post("/completion", json({{"prompt", seen}}).dump()).status, 400);
  const json body = {{"prompt", prompts}, {"stream", true}};
  std::vector<std::string> told(3);
  int ends = 0;
  for (const std::string& event : payloads(worker.post("/completion", body.dump()).body)) {
    const json piece = json::parse(event);
    told.at(piece.at("index").get<size_t>()) += piece.at("content");
    ends += piece.at("stop") == true ? 1 : 0;
    EXPECT_TRUE(piece.at("tokens_predicted").is_number_integer()) << event;
    EXPECT_TRUE(piece.at("tokens_evaluated").is_number_integer()) << event;
  }
  EXPECT_EQ(told, texts);
  EXPECT_EQ(ends, 3);
}

TEST(LlamaRoutes, OneFailureOfSeveralIsTheAnswer) {
  for (const bool stream : {false, true}) {
    Worker worker({.script = {.failure = engine::Failed{Code::out_of_memory, "no room"}}});
    const json body = {{"prompt", {"a", "b"}}, {"stream", stream}};
    const RawResponse response = worker.post("/completion", body.dump());
    EXPECT_EQ(response.status, stream ? 200 : 503);
    const std::string text = stream ? payloads(response.body).back() : response.body;
    EXPECT_THAT(json::parse(text).at("error").at("message"), HasSubstr("no room"));
  }
}

TEST(LlamaRoutes, SettingsAreWhole) {
  Worker worker;
  const json answer =
      asked(worker, "/completion", {{"prompt", "Hi"}, {"logit_bias", {{7, 1.5}, {"x", false}}}});
  EXPECT_EQ(answer.at("prompt"), "Hi");
  const json& settings = answer.at("generation_settings");
  EXPECT_EQ(settings.at("n_ctx"), 2048);
  EXPECT_EQ(settings.at("model"), "hf:fake");
  const engine::SamplingParams defaults;
  EXPECT_FLOAT_EQ(settings.at("temperature").get<float>(), defaults.temperature);
  EXPECT_EQ(settings.at("top_k"), defaults.top_k);
  EXPECT_FLOAT_EQ(settings.at("top_p").get<float>(), defaults.top_p);
  EXPECT_EQ(settings.at("repeat_penalty"), 1);
  EXPECT_EQ(settings.at("dry_sequence_breakers"), json({"\n", ":", "\"", "*"}));
  EXPECT_EQ(settings.at("samplers")[0], "penalties");
  EXPECT_EQ(settings.at("samplers").size(), 9U);
  EXPECT_EQ(settings.at("logit_bias"),
            json::parse(R"([{"token":7,"bias":1.5},{"text":"x","bias":false}])"));
  for (const char* name : {"dynatemp_range",
                           "dynatemp_exponent",
                           "min_p",
                           "xtc_probability",
                           "xtc_threshold",
                           "typical_p",
                           "repeat_last_n",
                           "presence_penalty",
                           "frequency_penalty",
                           "dry_multiplier",
                           "dry_base",
                           "dry_allowed_length",
                           "dry_penalty_last_n",
                           "mirostat",
                           "mirostat_tau",
                           "mirostat_eta",
                           "ignore_eos",
                           "max_tokens",
                           "n_probs",
                           "grammar",
                           "stop",
                           "stream"}) {
    EXPECT_TRUE(settings.contains(name)) << name;
  }
  EXPECT_EQ(asked(worker, "/completion", {{"prompt", {1072, 1105}}}).at("prompt"), "Hi");
}

TEST(LlamaRoutes, StreamsTellTokens) {
  const engine::ScoredChoice hello = {.chosen = {.id = 9, .text = "Hello", .logprob = 0},
                                      .top = {}};
  Worker worker({.script = {.pieces = {"Hello"}, .tokens = {{hello}}}});
  const std::vector<std::string> events =
      payloads(worker.post("/completion", R"({"prompt":"Hi","stream":true})").body);
  EXPECT_EQ(json::parse(events.at(0)).at("tokens"), json({9}));
  EXPECT_FALSE(json::parse(events.at(0)).contains("completion_probabilities"));
  EXPECT_TRUE(worker.engine.last_request().token_ids);
  EXPECT_FALSE(worker.engine.last_request().logprobs);
  (void)asked(worker, "/completion", {{"prompt", "Hi"}});
  EXPECT_FALSE(worker.engine.last_request().token_ids);
}

TEST(LlamaRoutes, EmptyStopTextsStopNothing) {
  Worker worker;
  const json body = {{"prompt", "Hi"}, {"stop", {"", "x"}}, {"temperature", 5}, {"n_probs", 50}};
  (void)asked(worker, "/completion", body);
  EXPECT_EQ(worker.engine.last_request().stop, std::vector<std::string>{"x"});
  EXPECT_FLOAT_EQ(worker.engine.last_request().sampling.temperature, 5);
}

TEST(LlamaRoutes, TokensAndProbabilities) {
  const engine::ScoredChoice hello = {.chosen = {.id = 9, .text = "Hello", .logprob = -0.5f},
                                      .top = {{.id = 9, .text = "Hello", .logprob = -0.5f}}};
  Worker worker({.script = {.pieces = {"Hello"}, .tokens = {{hello}}}});
  const json answer =
      asked(worker, "/completion", {{"prompt", "Hi"}, {"n_probs", 1}, {"return_tokens", true}});
  EXPECT_EQ(answer.at("tokens"), json({9}));
  const json& token = answer.at("completion_probabilities").at(0);
  EXPECT_EQ(token.at("id"), 9);
  EXPECT_EQ(token.at("bytes"), json({72, 101, 108, 108, 111}));
  EXPECT_FLOAT_EQ(token.at("logprob"), -0.5f);
  EXPECT_EQ(token.at("top_logprobs").size(), 1U);
  EXPECT_EQ(worker.engine.last_request().logprobs, 1);
}

TEST(LlamaRoutes, ResponseFieldsAreChosen) {
  Worker worker;
  const json answer = asked(
      worker, "/completion",
      {{"prompt", "Hi"}, {"response_fields", {"content", "timings/predicted_n", "timings/none"}}});
  EXPECT_EQ(answer.size(), 2U);
  EXPECT_EQ(answer.at("content"), "Hello, world");
  EXPECT_TRUE(answer.at("timings/predicted_n").is_number());
}

TEST(LlamaRoutes, StopsAndLimitsAreTold) {
  Worker words({.script = {.reason = engine::StopReason::stop_sequence, .stop_sequence = "\n"}});
  json answer = asked(words, "/completion", {{"prompt", "Hi"}, {"stop", {"\n"}}});
  EXPECT_EQ(answer.at("stop_type"), "word");
  EXPECT_EQ(answer.at("stopping_word"), "\n");
  Worker full({.script = {.reason = engine::StopReason::context_full}});
  answer = asked(full, "/completion", {{"prompt", "Hi"}});
  EXPECT_EQ(answer.at("stop_type"), "limit");
  EXPECT_EQ(answer.at("truncated"), true);
}

// The special tokens are 2 to 6, a byte's token is the byte plus 1000, and 1 begins a text.
TEST(LlamaRoutes, InfillPutsTheTextsBetweenMarks) {
  Worker worker({.script = {.fills_in = true}});
  const json body = {{"input_prefix", "ab"},
                     {"prompt", "c"},
                     {"input_suffix", "z"},
                     {"input_extra", {{{"filename", "f"}, {"text", "t"}}}},
                     {"samplers", {"top_k", "top_p", "infill"}},
                     {"t_max_predict_ms", 500}};
  EXPECT_EQ(asked(worker, "/infill", body).at("content"), "Hello, world");
  const std::vector<int32_t>& ids = worker.engine.last_request().prompt_ids;
  EXPECT_EQ(worker.engine.detokenize({ids.begin() + 2, ids.begin() + 13}), "repository\n");
  EXPECT_EQ((std::vector<int32_t>{ids[0], ids[1]}), (std::vector<int32_t>{1, 6}));
  const std::vector<int32_t> files(ids.begin() + 13, ids.begin() + 18);
  EXPECT_EQ(files, (std::vector<int32_t>{5, 1102, 1010, 1116, 5}));
  const std::vector<int32_t> around(ids.end() - 7, ids.end());
  EXPECT_EQ(around, (std::vector<int32_t>{2, 1097, 1098, 1099, 3, 1122, 4}));
}

TEST(LlamaRoutes, InfillKeepsWhatIsNear) {
  Worker worker({.script = {.fills_in = true}});
  const json body = {{"input_prefix", std::string(3000, 'a') + "b"},
                     {"input_suffix", "y" + std::string(3000, 'z')},
                     {"input_extra", {{{"text", "far"}}}},
                     {"n_predict", 100}};
  asked(worker, "/infill", body);
  const std::vector<int32_t>& ids = worker.engine.last_request().prompt_ids;
  EXPECT_LE(ids.size(), 2048U - 100);
  EXPECT_GT(ids.size(), 1900U);
  const auto middle = std::ranges::find(ids, 3);
  ASSERT_NE(middle, ids.end());
  EXPECT_EQ(middle[-1], 1000 + 'b');
  EXPECT_EQ(middle[1], 1000 + 'y');
  EXPECT_EQ(ids.back(), 4);
  EXPECT_GT(middle - ids.begin(), 1300);
}

TEST(LlamaRoutes, WithoutMarksInfillIsRefused) {
  Worker worker;
  const RawResponse response = worker.post("/infill", R"({"input_prefix":"a","input_suffix":"b"})");
  EXPECT_EQ(response.status, 422);
  EXPECT_THAT(json::parse(response.body).at("error").at("message"), HasSubstr("fill in"));
}

TEST(LlamaRoutes, BadBodiesNameTheField) {
  Worker worker;
  const auto param = [&](const char* path, const json& body) {
    const RawResponse response = worker.post(path, body.dump());
    EXPECT_EQ(response.status, 400) << response.body;
    return json::parse(response.body).at("error").at("param").get<std::string>();
  };
  EXPECT_EQ(param("/completion", json::object()), "prompt");
  EXPECT_EQ(param("/completion", {{"prompt", {"a", ""}}}), "prompt[1]");
  EXPECT_EQ(param("/completion", {{"prompt", {"a", json::array()}}}), "prompt[1]");
  EXPECT_EQ(param("/completion", {{"prompt", json(129, "a")}}), "prompt");
  EXPECT_EQ(param("/completion", {{"prompt", json::array()}}), "prompt");
  EXPECT_EQ(param("/completion", {{"prompt", {1, true}}}), "prompt[1][0]");
  EXPECT_EQ(param("/completion", {{"prompt", "a"}, {"n_predict", -2}}), "n_predict");
  EXPECT_EQ(param("/completion", {{"prompt", ""}}), "prompt");
  EXPECT_EQ(param("/completion", {{"prompt", {""}}}), "prompt[0]");
  EXPECT_EQ(param("/completion", {{"prompt", "a"}, {"n_probs", 101}}), "n_probs");
  EXPECT_EQ(param("/completion", {{"prompt", "a"}, {"response_fields", "x"}}), "response_fields");
  EXPECT_EQ(param("/infill", {{"input_suffix", "b"}}), "input_prefix");
  EXPECT_EQ(param("/infill", {{"input_prefix", "a"}, {"input_suffix", "b"}, {"input_extra", {1}}}),
            "input_extra[0]");
}

TEST(LlamaRoutes, PropsAndSlots) {
  Worker worker({.script = {.hold_after = true}});
  const json props = json::parse(worker.get("/props").body);
  EXPECT_EQ(props.at("total_slots"), 1);
  EXPECT_EQ(props.at("default_generation_settings").at("n_ctx"), 2048);
  EXPECT_EQ(props.at("default_generation_settings").at("params").at("min_p"), 0.05);
  EXPECT_EQ(props.at("model_alias"), "hf:fake");
  EXPECT_EQ(props.at("chat_template"), "{{ messages }}");
  EXPECT_EQ(props.at("bos_token"), "<s>");
  EXPECT_EQ(props.at("modalities").at("vision"), false);
  const json idle = json::parse(worker.get("/slots").body);
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_EQ(idle[0].at("is_processing"), false);
  EXPECT_EQ(worker.get("/slots?fail_on_no_slot=1").status, 200);

  RawClient client(worker.port());
  client.send(request("POST", "/completion", R"({"prompt":"Hi","stream":true})"));
  ASSERT_TRUE(worker.engine.wait_texts_sent(1));
  EXPECT_EQ(json::parse(worker.get("/slots").body)[0].at("is_processing"), true);
  EXPECT_EQ(worker.get("/slots").status, 200);
  const RawResponse full = worker.get("/slots?fail_on_no_slot=1");
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(json::parse(full.body).at("error").at("type"), "server_error");
  worker.engine.release();
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(LlamaRoutes, NewLinesAreSeenInStreamsToo) {
  for (const bool stream : {false, true}) {
    Worker worker({.script = {.pieces = {"a\n", "b"}}});
    const json body = {{"prompt", "Hi"}, {"stream", stream}};
    const std::string text = worker.post("/completion", body.dump()).body;
    const json last = json::parse(stream ? payloads(text).back() : text);
    EXPECT_EQ(last.at("has_new_line"), true) << stream;
    const Worker plain;
    const std::string other = plain.post("/completion", body.dump()).body;
    EXPECT_EQ(json::parse(stream ? payloads(other).back() : other).at("has_new_line"), false);
  }
}

}  // namespace
}  // namespace rbee::testing

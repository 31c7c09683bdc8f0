// Ollama's API over an engine that follows a script.

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "server/apis/ollama/names.h"
#include "server/apis/ollama/request.h"
#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The pieces of a stream.
std::vector<json> lines(const std::string& body) {
  std::vector<json> out;
  size_t at = 0;
  while (at < body.size()) {
    const size_t end = body.find('\n', at);
    EXPECT_NE(end, std::string::npos) << "the last line has no end";
    out.push_back(json::parse(body.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// Removes the fields that hold times, after checking their form.
json timeless(json answer) {
  EXPECT_THAT(answer.at("created_at").get<std::string>(),
              ::testing::MatchesRegex("20..-..-..T..:..:..\\....Z"));
  answer.erase("created_at");
  for (const char* name :
       {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"}) {
    if (!answer.contains(name)) continue;
    EXPECT_TRUE(answer.at(name).is_number_integer()) << name;
    answer.erase(name);
  }
  return answer;
}

json answer_of(const Worker& worker, std::string_view path, json body) {
  body["stream"] = false;
  if (!body.contains("model")) body["model"] = "hf:fake";
  const RawResponse response = worker.post(path, body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  return timeless(json::parse(response.body));
}

std::string error_of(const Worker& worker, std::string_view path, json body, int status = 400) {
  if (!body.contains("model")) body["model"] = "hf:fake";
  const RawResponse response = worker.post(path, body.dump());
  EXPECT_EQ(response.status, status) << body.dump();
  const json answer = json::parse(response.body);
  EXPECT_EQ(answer.size(), 1U) << response.body;
  return answer.at("error");
}

int head_status(const Worker& worker, std::string_view path) {
  RawClient client(worker.port());
  client.send(request("HEAD", path));
  return client.read_response(false).status;
}

const json kHi = {{{"role", "user"}, {"content", "Hi"}}};
const json kLook = {
    {{"type", "function"},
     {"function",
      {{"name", "look"}, {"parameters", {{"type", "object"}, {"properties", json::object()}}}}}}};

Script calling() {
  return {.pieces = {"<think>Hm</think>", R"(<tool_call>{"name": "look", "arguments": )",
                     R"({"z": 1, "a": {"b": [2]}}}</tool_call>)"},
          .format = {text::ToolFormat::hermes, text::ReasoningFormat::think}};
}

TEST(Ollama, GenerateStreamsLinesUnlessItIsToldNotTo) {
  Worker worker;
  const RawResponse response = worker.post("/api/generate", R"({"model":"hf:fake","prompt":"Hi"})");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.headers.at("content-type"), "application/x-ndjson");
  const std::vector<json> pieces = lines(response.body);
  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(timeless(pieces[0]),
            json::parse(R"({"model":"hf:fake","response":"Hello","done":false})"));
  EXPECT_EQ(timeless(pieces[2]),
            json::parse(R"({"model":"hf:fake","response":"world","done":false})"));
  EXPECT_TRUE(pieces[3].contains("total_duration"));
  EXPECT_EQ(timeless(pieces[3]), json::parse(R"({"model":"hf:fake","response":"","done":true,
      "done_reason":"stop","prompt_eval_count":5,"eval_count":3})"));
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 1U);
  EXPECT_EQ(asked.messages[0].content, "Hi");
}

TEST(Ollama, GenerateInOnePiece) {
  Worker worker;
  EXPECT_EQ(answer_of(worker, "/api/generate", {{"prompt", "Hi"}, {"system", "Be brief."}}),
            json::parse(R"({"model":"hf:fake","response":"Hello, world","done":true,
      "done_reason":"stop","prompt_eval_count":5,"eval_count":3})"));
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 2U);
  EXPECT_EQ(asked.messages[0].role, "system");
  EXPECT_EQ(asked.messages[0].content, "Be brief.");
  EXPECT_EQ(asked.max_tokens, INT32_MAX);
}

TEST(Ollama, ARawPromptIsTheWholeText) {
  Worker worker;
  answer_of(worker, "/api/generate", {{"prompt", "[INST]Hi"}, {"raw", true}});
  const engine::TextRequest asked = worker.engine.last_request();
  EXPECT_EQ(asked.prompt, "[INST]Hi");
  EXPECT_TRUE(asked.messages.empty());
  for (const char* name : {"system", "suffix"}) {
    EXPECT_THAT(error_of(worker, "/api/generate", {{"prompt", "Hi"}, {"raw", true}, {name, "x"}}),
                HasSubstr(cat(name, " cannot be given together with raw")));
  }
}

TEST(Ollama, ASuffixNeedsTokensToFillInWith) {
  {
    Worker worker({.script = {.fills_in = true}});
    answer_of(worker, "/api/generate", {{"prompt", "def f("}, {"suffix", "return 1"}});
    const std::string prompt = worker.engine.detokenize(worker.engine.last_request().prompt_ids);
    EXPECT_THAT(prompt, HasSubstr("def f("));
    EXPECT_LT(prompt.find("def f("), prompt.find("return 1"));
  }
  Worker worker;
  EXPECT_EQ(error_of(worker, "/api/generate", {{"prompt", "def f("}, {"suffix", "return 1"}}),
            "\"hf:fake\" does not support insert");
}

TEST(Ollama, WithoutAPromptNothingIsGenerated) {
  Worker worker;
  EXPECT_EQ(answer_of(worker, "/api/generate", json::object()),
            json::parse(R"({"model":"hf:fake","response":"","done":true,"done_reason":"load"})"));
  EXPECT_EQ(answer_of(worker, "/api/chat", {{"messages", json::array()}, {"keep_alive", "5m"}}),
            json::parse(R"({"model":"hf:fake","message":{"role":"assistant","content":""},
      "done":true,"done_reason":"load"})"));
}

TEST(Ollama, AChat) {
  Worker worker;
  EXPECT_EQ(answer_of(worker, "/api/chat", {{"messages", kHi}}), json::parse(R"({"model":"hf:fake",
      "message":{"role":"assistant","content":"Hello, world"},"done":true,"done_reason":"stop",
      "prompt_eval_count":5,"eval_count":3})"));
  const std::vector<json> pieces =
      lines(worker.post("/api/chat", json{{"model", "hf:fake"}, {"messages", kHi}}.dump()).body);
  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(timeless(pieces[0]), json::parse(R"({"model":"hf:fake",
      "message":{"role":"assistant","content":"Hello"},"done":false})"));
  EXPECT_EQ(pieces[3].at("message"), json::parse(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(pieces[3].at("done_reason"), "stop");
}

TEST(Ollama, CallsAreToldWhole) {
  Worker worker({.script = calling()});
  const json body = {{"model", "hf:fake"}, {"messages", kHi}, {"tools", kLook}, {"think", true}};
  EXPECT_EQ(answer_of(worker, "/api/chat", body).at("message"), json::parse(R"({"role":"assistant",
      "content":"","thinking":"Hm","tool_calls":[{"id":"call_0","function":{"index":0,
      "name":"look","arguments":{"z":1,"a":{"b":[2]}}}}]})"));
  const std::vector<json> pieces = lines(worker.post("/api/chat", body.dump()).body);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].at("message"),
            json::parse(R"({"role":"assistant","content":"","thinking":"Hm"})"));
  const std::string text = worker.post("/api/chat", body.dump()).body;
  EXPECT_THAT(text, HasSubstr(R"("arguments":{"z":1,"a":{"b":[2]}})")) << "in the model's order";
  EXPECT_EQ(pieces[1].at("done"), false);
  EXPECT_EQ(pieces[2].at("done_reason"), "stop");
  EXPECT_FALSE(pieces[2].at("message").contains("tool_calls"));
}

TEST(Ollama, MessagesReachTheEngine) {
  Worker worker({.script = {.max_pictures = 2}});
  const std::string pixel = "iVBORw0KGgo=";
  answer_of(worker, "/api/chat",
            json::parse(cat(R"({"messages":[
      {"role":"user","content":"Look","images":[")",
                            pixel, R"("]},
      {"role":"assistant","content":"","thinking":"Hm","tool_calls":[{"id":"c1",
       "function":{"name":"look","arguments":{"z":1,"a":2}}}]},
      {"role":"tool","content":"7","tool_name":"look","tool_call_id":"c1"},
      {"role":"assistant","content":"It is"}]})")));
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 4U);
  ASSERT_EQ(asked.messages[0].pictures.size(), 1U);
  EXPECT_EQ(asked.messages[0].pictures[0].at, 0U);
  EXPECT_EQ(asked.messages[0].pictures[0].field, "messages[0].images[0]");
  EXPECT_EQ(asked.messages[1].reasoning, "Hm");
  EXPECT_EQ(asked.messages[1].tool_calls.at(0).name, "look");
  EXPECT_EQ(asked.messages[2].name, "look");
  EXPECT_EQ(asked.messages[2].tool_call_id, "c1");
  EXPECT_TRUE(asked.chat.continue_last);
}

// json sorts names; the server keeps the client's own order.
TEST(Ollama, ArgumentsOfEarlierCallsKeepTheirOrder) {
  const server::OllamaRequest request = server::parse_ollama_chat(R"({"messages":[
      {"role":"assistant","tool_calls":[{"function":{"name":"look",
       "arguments":{"z":1,"a":12345678901234567890}}}]}]})");
  EXPECT_EQ(request.generate.messages.at(0).tool_calls.at(0).arguments,
            R"({"z":1,"a":12345678901234567890})");
}

TEST(Ollama, OptionsReachTheEngine) {
  Worker worker;
  answer_of(worker, "/api/chat",
            {{"messages", kHi},
             {"options",
              {{"temperature", 0.5},
               {"top_k", 7.0},
               {"top_p", 0.25},
               {"min_p", 0.125},
               {"typical_p", 0.75},
               {"repeat_last_n", -1},
               {"repeat_penalty", 1.5},
               {"presence_penalty", 0.5},
               {"frequency_penalty", 0.25},
               {"mirostat", 2},
               {"mirostat_tau", 4},
               {"mirostat_eta", 0.5},
               {"seed", 42},
               {"num_predict", 9},
               {"stop", {"END"}},
               {"num_ctx", 4096},
               {"num_keep", 5},
               {"num_gpu", 99}}}});
  const engine::TextRequest asked = worker.engine.last_request();
  const engine::SamplingParams& sampling = asked.sampling;
  EXPECT_EQ(sampling.temperature, 0.5F);
  EXPECT_EQ(sampling.top_k, 7);
  EXPECT_EQ(sampling.top_p, 0.25F);
  EXPECT_EQ(sampling.min_p, 0.125F);
  EXPECT_EQ(sampling.typical_p, 0.75F);
  EXPECT_EQ(sampling.repeat_last_n, 0) << "all";
  EXPECT_EQ(sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(sampling.presence_penalty, 0.5F);
  EXPECT_EQ(sampling.frequency_penalty, 0.25F);
  EXPECT_EQ(sampling.mirostat, 2);
  EXPECT_EQ(sampling.mirostat_tau, 4.0F);
  EXPECT_EQ(sampling.mirostat_eta, 0.5F);
  EXPECT_EQ(sampling.seed, 42U);
  EXPECT_EQ(asked.max_tokens, 9);
  EXPECT_THAT(asked.stop, ElementsAre("END"));
}

TEST(Ollama, DefaultsAreOllamasAndTheModelsOwn) {
  {
    Worker worker;
    answer_of(worker, "/api/chat", {{"messages", kHi}});
    const engine::SamplingParams sampling = worker.engine.last_request().sampling;
    EXPECT_EQ(sampling.temperature, 0.8F);
    EXPECT_EQ(sampling.top_k, 40);
    EXPECT_EQ(sampling.top_p, 0.9F);
    EXPECT_EQ(sampling.repetition_penalty, 1.0F);
    EXPECT_EQ(sampling.repeat_last_n, 64);
  }
  Worker worker({.script = {.sampling = {.temperature = 0.6F,
                                         .top_p = {},
                                         .min_p = {},
                                         .repetition_penalty = 1.25F,
                                         .top_k = 20}}});
  answer_of(worker, "/api/chat", {{"messages", kHi}, {"options", {{"top_k", 5}}}});
  const engine::SamplingParams sampling = worker.engine.last_request().sampling;
  EXPECT_EQ(sampling.temperature, 0.6F);
  EXPECT_EQ(sampling.repetition_penalty, 1.25F);
  EXPECT_EQ(sampling.top_k, 5);
}

// In Ollama, a window of 0 turns the penalties off; here it means the whole text.
TEST(Ollama, AWindowOfNothingTurnsPenaltiesOff) {
  Worker worker;
  answer_of(
      worker, "/api/chat",
      {{"messages", kHi},
       {"options", {{"repeat_last_n", 0}, {"repeat_penalty", 1.5}, {"presence_penalty", 1}}}});
  const engine::SamplingParams sampling = worker.engine.last_request().sampling;
  EXPECT_EQ(sampling.repetition_penalty, 1.0F);
  EXPECT_EQ(sampling.presence_penalty, 0.0F);
}

TEST(Ollama, FormatsAndThinking) {
  Worker worker({.script = calling()});
  answer_of(worker, "/api/chat", {{"messages", kHi}, {"format", "json"}, {"think", false}});
  engine::TextRequest asked = worker.engine.last_request();
  EXPECT_EQ(asked.constraint.kind, engine::Constraint::Kind::json_object);
  EXPECT_EQ(asked.chat.reasoning_budget, 0);
  EXPECT_TRUE(asked.chat.split);
  const RawResponse response = worker.post("/api/generate", R"({"model":"hf:fake","prompt":"Hi",
      "think":"high","format":{"type":"object","properties":{"z":{},"a":{}}}})");
  EXPECT_EQ(response.status, 200) << response.body;
  asked = worker.engine.last_request();
  EXPECT_EQ(asked.constraint.kind, engine::Constraint::Kind::json_schema);
  EXPECT_EQ(asked.constraint.text, R"({"type":"object","properties":{"z":{},"a":{}}})");
  const json variables = json::parse(asked.chat.template_variables);
  EXPECT_EQ(variables.at("reasoning_effort"), "high");
  EXPECT_EQ(variables.at("enable_thinking"), true);
}

TEST(Ollama, AModelThatDoesNotThinkSaysSo) {
  Worker worker;
  EXPECT_EQ(error_of(worker, "/api/chat", {{"messages", kHi}, {"think", true}}),
            "\"hf:fake\" does not support thinking");
  answer_of(worker, "/api/chat", {{"messages", kHi}, {"think", false}});
}

TEST(Ollama, LogProbabilities) {
  const auto token = [](int32_t id, const char* text, float logprob) {
    return engine::ScoredToken{.id = id, .text = text, .logprob = logprob};
  };
  Worker worker({.script = {.pieces = {"A"},
                            .tokens = {{{.chosen = token(1, "A", -0.5F),
                                         .top = {token(1, "A", -0.5F), token(2, "B", -1)}}}}}});
  const json answer = answer_of(worker, "/api/generate",
                                {{"prompt", "Hi"}, {"logprobs", true}, {"top_logprobs", 2}});
  EXPECT_EQ(worker.engine.last_request().logprobs, 2);
  EXPECT_EQ(answer.at("logprobs"), json::parse(R"([{"token":"A","logprob":-0.5,"bytes":[65],
      "top_logprobs":[{"token":"A","logprob":-0.5,"bytes":[65]},
                      {"token":"B","logprob":-1.0,"bytes":[66]}]}])"));
}

TEST(Ollama, WhyAnAnswerEnds) {
  const auto reason = [](engine::StopReason why) {
    Worker worker({.script = {.reason = why}});
    return answer_of(worker, "/api/chat", {{"messages", kHi}}).at("done_reason");
  };
  EXPECT_EQ(reason(engine::StopReason::stop_sequence), "stop");
  EXPECT_EQ(reason(engine::StopReason::max_tokens), "length");
  EXPECT_EQ(reason(engine::StopReason::context_full), "length");
}

TEST(Ollama, ErrorsOfAStreamAreALine) {
  Worker worker({.script = {.failure = engine::Failed{Code::internal, "no number"}}});
  const std::vector<json> pieces =
      lines(worker.post("/api/generate", R"({"model":"hf:fake","prompt":"Hi"})").body);
  EXPECT_EQ(pieces.back(), json::parse(R"({"error":"no number","status":500})"));
  EXPECT_EQ(error_of(worker, "/api/generate", {{"prompt", "Hi"}, {"stream", false}}, 500),
            "no number");
}

TEST(Ollama, ModelsHaveTheNamesThatOllamaGivesThem) {
  using server::same_model_name;
  EXPECT_TRUE(same_model_name("llama3.2", "llama3.2:latest"));
  EXPECT_TRUE(same_model_name("registry.ollama.ai/library/Llama3.2", "llama3.2"));
  EXPECT_TRUE(same_model_name("hf.co/org/repo:Q4_K_M", "hf:org/repo:q4_k_m"));
  EXPECT_TRUE(same_model_name("huggingface.co/org/repo", "hf:org/repo"));
  EXPECT_FALSE(same_model_name("llama3.2:3b", "llama3.2"));
  Worker worker;
  EXPECT_EQ(
      answer_of(worker, "/api/chat", {{"model", "HF:fake:latest"}, {"messages", kHi}}).at("model"),
      "HF:fake:latest");
  EXPECT_EQ(error_of(worker, "/api/chat", {{"model", "other"}, {"messages", kHi}}, 404),
            "model 'other' not found");
  EXPECT_EQ(error_of(worker, "/api/show", {{"model", "other"}}, 404), "model 'other' not found");
  EXPECT_EQ(error_of(worker, "/api/generate", {{"model", ""}, {"prompt", "Hi"}}),
            "model is required");
}

TEST(Ollama, WhatIsWrongIsNamed) {
  Worker worker;
  const std::pair<json, const char*> wrong[] = {
      {{{"options", {{"temperature", -1}}}}, "options.temperature"},
      {{{"options", {{"repeat_penalty", 0}}}}, "options.repeat_penalty"},
      {{{"options", {{"repetition_penalty", 0}}}}, nullptr},
      {{{"options", 7}}, "options"},
      {{{"format", "xml"}}, "format"},
      {{{"think", "a lot"}}, "think"},
      {{{"top_logprobs", 21}}, "top_logprobs"},
      {{{"messages", {{{"content", "x"}}}}}, "messages[0].role"},
      {{{"messages", {{{"role", "user"}, {"content", "x"}, {"images", {7}}}}}}, "images[0]"},
      {{{"messages", {{{"role", "system"}, {"images", {"eA=="}}}}}}, "images"}};
  for (auto [body, field] : wrong) {
    if (!body.contains("messages")) body["messages"] = kHi;
    if (field == nullptr) {
      answer_of(worker, "/api/chat", body);
    } else {
      EXPECT_THAT(error_of(worker, "/api/chat", body), HasSubstr(field));
    }
  }
  for (const json& body :
       {json{{"template", "{{ .Prompt }}"}}, json{{"context", {1, 2}}}, json{{"width", 64}}}) {
    json asked = body;
    asked["prompt"] = "Hi";
    EXPECT_THAT(error_of(worker, "/api/generate", asked), HasSubstr(body.begin().key()));
  }
  answer_of(worker, "/api/generate", {{"prompt", "Hi"}, {"width", 0}, {"steps", nullptr}});
  const RawResponse broken = worker.post("/api/chat", "{");
  EXPECT_EQ(broken.status, 400);
  EXPECT_TRUE(json::parse(broken.body).at("error").is_string()) << broken.body;
}

// Ollama's own examples use curl, which labels the body as a form.
TEST(Ollama, BodiesNeedNoContentType) {
  Worker worker;
  const std::string body = R"({"model":"hf:fake","prompt":"Hi","stream":false})";
  const std::string sent =
      cat("POST /api/generate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
          "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ", body.size(),
          "\r\n\r\n", body);
  EXPECT_EQ(ask(worker.port(), sent).status, 200);
}

TEST(Ollama, TellsOfItsModel) {
  Worker worker({.script = {.max_pictures = 1,
                            .sampling = {.temperature = 0.6F,
                                         .top_p = {},
                                         .min_p = {},
                                         .repetition_penalty = {},
                                         .top_k = 20},
                            .fills_in = true}});
  const json details = json::parse(R"({"parent_model":"","format":"safetensors","family":"llama",
      "families":["llama"],"parameter_size":"135","quantization_level":"Q4_1"})");
  json tags = json::parse(worker.get("/api/tags").body).at("models");
  ASSERT_EQ(tags.size(), 1U);
  EXPECT_EQ(tags[0].at("digest").get<std::string>().size(), 64U);
  EXPECT_EQ(tags[0].at("name"), "hf:fake");
  EXPECT_EQ(tags[0].at("model"), "hf:fake");
  EXPECT_EQ(tags[0].at("size"), 1000);
  EXPECT_EQ(tags[0].at("details"), details);
  const json running = json::parse(worker.get("/api/ps").body).at("models").at(0);
  EXPECT_EQ(running.at("size"), 1024);
  EXPECT_EQ(running.at("size_vram"), 0);
  EXPECT_EQ(running.at("context_length"), 2048);
  EXPECT_EQ(running.at("expires_at"), "9999-12-31T23:59:59Z");
  for (const char* name : {"model", "name"}) {
    const RawResponse shown = worker.post("/api/show", json{{name, "hf:fake"}}.dump());
    ASSERT_EQ(shown.status, 200) << shown.body;
    const json model = json::parse(shown.body);
    EXPECT_EQ(model.at("capabilities"), json({"completion", "vision", "insert"}));
    EXPECT_EQ(model.at("details"), details);
    EXPECT_EQ(model.at("template"), "{{ messages }}");
    EXPECT_EQ(model.at("parameters"),
              "temperature                    0.6\ntop_k                          20");
    EXPECT_EQ(model.at("model_info").at("llama.context_length"), 2048);
  }
  const RawResponse version = worker.get("/api/version");
  EXPECT_EQ(version.status, 200);
  EXPECT_EQ(version.body, R"({"version":"0.33.0"})");
  EXPECT_EQ(head_status(worker, "/"), 200);
}

TEST(Ollama, FilesOfModelsAreNotForAWorker) {
  Worker worker;
  const std::pair<const char*, const char*> routes[] = {
      {"POST", "/api/pull"},          {"POST", "/api/push"},     {"POST", "/api/create"},
      {"POST", "/api/copy"},          {"DELETE", "/api/delete"}, {"POST", "/api/blobs/sha256:00"},
      {"GET", "/api/blobs/sha256:00"}};
  for (const auto& [method, path] : routes) {
    const RawResponse response = ask(worker.port(), request(method, path, R"({"model":"a"})"));
    EXPECT_EQ(response.status, 501) << path;
    EXPECT_EQ(json::parse(response.body),
              (json{{"error", cat(method, " ", path,
                                  " is not supported: this server serves the models that it was "
                                  "started with")}}));
  }
  EXPECT_EQ(head_status(worker, "/api/blobs/sha256:00"), 501);
  EXPECT_THAT(error_of(worker, "/api/embed", {{"input", "a"}}),
              HasSubstr("does not support embeddings"));
}

TEST(Ollama, TheServersOwnErrorsHaveItsForm) {
  Worker worker({.token = "secret"});
  const RawResponse response = worker.get("/api/tags");
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(response.body, R"({"error":"Missing API key"})");
  for (const char* path : {"/api/unknown", "/api/tags/more", "/api/"}) {
    const RawResponse unknown = worker.get(path, "Authorization: Bearer secret\r\n");
    EXPECT_EQ(unknown.status, 404) << path;
    EXPECT_TRUE(json::parse(unknown.body).at("error").is_string()) << unknown.body;
  }
  // Paths that share their first word with several APIs have OpenAI's form.
  const RawResponse other = worker.get("/v1/unknown", "Authorization: Bearer secret\r\n");
  EXPECT_EQ(json::parse(other.body).at("error").at("code"), "NOT_FOUND");
}

// Ollama's command line asks so whether a server is there.
TEST(Ollama, TheRootAnswersHead) {
  Worker worker;
  EXPECT_EQ(head_status(worker, "/"), 200);
}

}  // namespace
}  // namespace rbee::testing

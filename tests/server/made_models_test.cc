// What clients make of models: the bodies, what is kept, and how it changes requests.

#include <gmock/gmock.h>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/engine/api/fields.h"
#include "server/apis/ollama/record.h"
#include "server/wire/generate_request.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using server::OllamaRecord;
using server::Operation;

OllamaRecord record_of(const json& fields) {
  json body = {{"model", "mario"}, {"from", "base"}};
  body.update(fields);
  return server::parse_ollama_create(body.dump()).record;
}

json changed(const OllamaRecord& record, Operation operation, const json& body) {
  return json::parse(server::with_record(record, operation, body.dump()).value());
}

const json kUser = {{"role", "user"}, {"content", "Hi"}};

TEST(MadeModels, MessagesComeBeforeThoseOfAChat) {
  const json earlier = {{"role", "assistant"}, {"content", "It's me."}};
  const OllamaRecord record =
      record_of({{"system", "Be Mario."}, {"messages", json::array({earlier})}});
  const json system = {{"role", "system"}, {"content", "Be Mario."}};
  for (const Operation operation : {Operation::ollama_chat, Operation::openai_chat}) {
    EXPECT_EQ(changed(record, operation, {{"messages", json::array({kUser})}}).at("messages"),
              json::array({system, earlier, kUser}));
    const json own = {{"role", "system"}, {"content", "Be brief."}};
    EXPECT_EQ(changed(record, operation, {{"messages", json::array({own, own, kUser, own})}}),
              json({{"messages", json::array({own, own, earlier, kUser, own})}}));
    // It only loads the model.
    EXPECT_EQ(changed(record, operation, {{"messages", json::array()}}),
              json({{"messages", json::array()}}));
  }
  const json newer = {{"role", "developer"}, {"content", "Be brief."}};
  EXPECT_EQ(changed(record, Operation::openai_chat, {{"messages", json::array({newer, kUser})}}),
            json({{"messages", json::array({newer, earlier, kUser})}}));
}

// The worker's error names the message by its place in what the client sent.
TEST(MadeModels, InvalidMessagesStayWhereTheyAre) {
  const OllamaRecord record = record_of({{"system", "Be Mario."}, {"parameters", {{"seed", 1}}}});
  for (const Operation operation : {Operation::ollama_chat, Operation::openai_chat}) {
    for (const json& wrong : {json({{"role", "user"}, {"content", 1}}), json({{"content", "a"}}),
                              json("a"), json(nullptr)}) {
      const json body = {{"messages", json::array({wrong})}};
      EXPECT_EQ(changed(record, operation, body), body);
    }
    const json none = {{"messages", 1}};
    EXPECT_EQ(changed(record, operation, none), none);
  }
}

TEST(MadeModels, AGeneratedTextHasTheSystem) {
  const OllamaRecord record = record_of({{"system", "Be Mario."}});
  const auto system = [&](json more) -> json {
    more["prompt"] = "Hi";
    return changed(record, Operation::ollama_generate, more).value("system", json());
  };
  EXPECT_EQ(system(json::object()), "Be Mario.");
  EXPECT_EQ(system({{"system", ""}}), "Be Mario.");
  EXPECT_EQ(system({{"system", "Z"}}), "Z");
  EXPECT_EQ(system({{"raw", true}}), json());
  EXPECT_EQ(system({{"suffix", "end"}}), json());
}

TEST(MadeModels, ARequestsOwnParametersGoFirst) {
  const OllamaRecord record = record_of(
      {{"parameters",
        {{"temperature", 0.5}, {"num_predict", 9}, {"repeat_penalty", 1.1}, {"num_ctx", 64}}}});
  EXPECT_EQ(
      changed(record, Operation::ollama_chat, json::object()).at("options"),
      json::parse(R"({"temperature":0.5,"num_predict":9,"repeat_penalty":1.1,"num_ctx":64})"));
  const json own = {{"options", {{"temperature", 0}, {"top_k", 1}, {"num_predict", nullptr}}}};
  EXPECT_EQ(changed(record, Operation::ollama_generate, own).at("options"),
            json::parse(R"({"temperature":0,"top_k":1,"num_predict":9,"repeat_penalty":1.1,
                            "num_ctx":64})"));
  EXPECT_EQ(changed(record, Operation::openai_chat, {{"temperature", 1}}),
            json::parse(R"({"temperature":1,"max_tokens":9,"repetition_penalty":1.1})"));
  for (const char* limit : {"max_completion_tokens", "n_predict"}) {
    EXPECT_EQ(changed(record, Operation::openai_chat, {{limit, 3}}),
              json({{"temperature", 0.5}, {limit, 3}, {"repetition_penalty", 1.1}}));
  }
}

// Whatever a record may hold reaches OpenAI's route too, under the name that it has there.
TEST(MadeModels, OpenaisRouteGetsEachParameter) {
  for (const engine::SamplingField& field : engine::sampling_fields()) {
    const std::string ollamas(field.in(engine::SamplingApi::ollama).name), openais(field.name);
    if (ollamas.empty()) continue;
    const OllamaRecord record = record_of({{"parameters", {{ollamas, 1}}}});
    EXPECT_EQ(changed(record, Operation::openai_chat, json::object()), json({{openais, 1}}));
    for (const std::string& own : {openais, std::string(field.alias)}) {
      if (own.empty()) continue;
      EXPECT_EQ(changed(record, Operation::openai_chat, {{own, 0.5}}), json({{own, 0.5}}));
    }
  }
  const json stop = {{"stop", {"x"}}};
  EXPECT_EQ(changed(record_of({{"parameters", stop}}), Operation::openai_chat, json::object()),
            stop);
}

// Ollama's 0 switches the penalties off, and its -1 looks at everything: OpenAI's 0.
TEST(MadeModels, OpenaisRouteMeansTheSameWindow) {
  const auto sent = [](int window) {
    return changed(
        record_of({{"parameters", {{"repeat_last_n", window}, {"repeat_penalty", 1.5}}}}),
        Operation::openai_chat, json::object());
  };
  EXPECT_EQ(sent(-1), json::parse(R"({"repeat_last_n":0,"repetition_penalty":1.5})"));
  EXPECT_EQ(sent(9), json::parse(R"({"repeat_last_n":9,"repetition_penalty":1.5})"));
  EXPECT_EQ(sent(0), json::parse(R"({"repeat_last_n":0,"repetition_penalty":1.0,
                                     "frequency_penalty":0.0,"presence_penalty":0.0})"));
}

TEST(MadeModels, OtherOperationsTakeNoSettings) {
  const OllamaRecord record = record_of({{"system", "a"}});
  EXPECT_EQ(server::with_record(record, Operation::other, "{}"), std::nullopt);
  EXPECT_EQ(server::with_record(record_of(json::object()), Operation::other, "{}"), "{}");
  // The worker says what is wrong; nothing is parsed into a tree before it was checked.
  for (const std::string& text : {std::string("{"), std::string("[]"), std::string(100'000, '[')}) {
    EXPECT_EQ(server::with_record(record, Operation::ollama_chat, text), text);
  }
  // Numbers that no double holds, and the order of names, stay.
  EXPECT_EQ(server::with_record(record, Operation::ollama_chat,
                                R"({"z":18446744073709551616,"a":[{"y":1,"b":2}]})"),
            R"({"z":18446744073709551616,"a":[{"y":1,"b":2}]})");
}

TEST(MadeModels, OneOfAnotherKeepsItsSettings) {
  OllamaRecord mario = record_of({{"system", "Be Mario."},
                                  {"parameters", {{"top_k", 3}, {"seed", 1}}},
                                  {"license", "MIT"},
                                  {"messages", json::array({kUser})}});
  mario.from = "hf:org/tiny";
  const std::string body =
      R"({"model":"luigi","from":"mario","system":"Be Luigi.","parameters":{"seed":2}})";
  const OllamaRecord luigi = server::parse_ollama_create(body).made_of(mario);
  EXPECT_EQ(luigi.name, "luigi");
  EXPECT_EQ(luigi.from, "hf:org/tiny");
  EXPECT_EQ(luigi.system, "Be Luigi.");
  EXPECT_EQ(luigi.parameters.dump(), R"({"seed":2,"top_k":3})");
  EXPECT_EQ(json(luigi.license), json::array({"MIT"}));
  EXPECT_EQ(luigi.messages.size(), 1U);
  const std::string none = R"({"model":"x","from":"mario","messages":[]})";
  EXPECT_TRUE(server::parse_ollama_create(none).made_of(mario).messages.empty());
}

TEST(MadeModels, WhatIsKeptIsReadAgain) {
  OllamaRecord record = record_of({{"system", "a\n\"b\""},
                                   {"template", "{{ messages }}"},
                                   {"parameters", {{"stop", {"x"}}}},
                                   {"messages", json::array({kUser})},
                                   {"adapters", {{"a.gguf", "sha256-" + std::string(64, 'F')}}},
                                   {"license", {"a", "b"}}});
  EXPECT_EQ(record.adapters.at("a.gguf"), std::string(64, 'f'));
  record.created = 981173106;
  const std::string text = server::record_to_json(record);
  const OllamaRecord again = server::record_from_json(text);
  EXPECT_EQ(server::record_to_json(again), text);
  EXPECT_EQ(again.created, 981173106);
  EXPECT_EQ(again.chat_template, "{{ messages }}");
  for (const std::string& broken : {std::string(), std::string("{"), std::string("{}"),
                                    text.substr(0, text.size() - 1), std::string("[]")}) {
    EXPECT_THROW((void)server::record_from_json(broken), Error) << broken;
  }
}

TEST(MadeModels, WhatCannotBeMadeIsNamed) {
  const auto field = [](const json& fields) -> std::string {
    try {
      (void)record_of(fields);
    } catch (const server::InvalidBody& invalid) {
      return invalid.errors().front().field;
    }
    return "none";
  };
  for (const char* name : {"files", "adapters"}) EXPECT_EQ(field({{name, {{"a", "b"}}}}), name);
  for (const char* name : {"modelfile", "renderer", "parser", "remote_host"}) {
    EXPECT_EQ(field({{name, "x"}}), name);
  }
  EXPECT_EQ(field({{"name", "luigi"}}), "name");
  EXPECT_EQ(field({{"quantize", "q8_0"}, {"quantization", "q4_0"}}), "quantization");
  const std::string digest = "sha256:" + std::string(64, '0');
  for (const char* name : {"../a", "/a", "a/../b", "a//b", "a/", ".a", "", "a\\b", "a\nb"}) {
    EXPECT_EQ(field({{"adapters", {{name, digest}}}}), "adapters") << name;
  }
  EXPECT_EQ(field({{"adapters", {{"a/b.gguf", digest}}}}), "none");
  EXPECT_EQ(field({{"files", {{"a", digest}}}}), "files");  // it has "from"
  EXPECT_EQ(field({{"files", {{"a", digest}}}, {"from", ""}}), "none");
  EXPECT_EQ(field({{"files", json::object()}, {"quantize", ""}}), "none");
  EXPECT_EQ(field({{"from", ""}}), "from");
  EXPECT_EQ(field({{"from", 1}}), "from");
  EXPECT_EQ(field({{"parameters", {{"top_p", 7}}}}), "parameters.top_p");
  EXPECT_EQ(field({{"messages", {{{"content", "a"}}}}}), "messages[0].role");
  EXPECT_EQ(field({{"license", json::array({1})}}), "license");
}

TEST(MadeModels, ShowTellsTheSettings) {
  OllamaRecord record =
      record_of({{"system", "Be Mario."}, {"parameters", {{"stop", {"x", "y"}}}}});
  record.messages = OllamaRecord::Json::parse(R"([{"role":"user","content":null}])");
  record.created = 981173106;
  const json shown = json::parse(server::shown_of_record(
      record, R"({"template":"t","details":{"parent_model":"","family":"llama"}})"));
  EXPECT_EQ(shown.at("system"), "Be Mario.");
  EXPECT_EQ(shown.at("template"), "t");
  EXPECT_EQ(shown.at("details"), json({{"parent_model", "base"}, {"family", "llama"}}));
  EXPECT_EQ(shown.at("modified_at"), "2001-02-03T04:05:06.000Z");
  EXPECT_EQ(shown.at("modelfile"),
            "FROM base\nSYSTEM \"\"\"Be Mario.\"\"\"\nPARAMETER stop \"x\"\nPARAMETER stop \"y\"\n"
            "MESSAGE user \"\"\"\"\"\"\n");
}

}  // namespace
}  // namespace rbee::testing

// Fields that constrain the answer's form, in every API's spelling.
#include <gmock/gmock.h>

#include "rbee/core/cat.h"
#include "server/apis/openai/request.h"
#include "server/apis/own/request.h"
#include "server/wire/generate_request.h"

namespace rbee::server {
namespace {

ConstraintFields of_job(const std::string& fields) {
  return parse_generate(cat(R"({"prompt":"x",)", fields, "}")).constraint;
}

ConstraintFields of_chat(const std::string& fields) {
  return parse_openai_chat(cat(R"({"messages":[{"role":"user","content":"x"}],)", fields, "}"))
      .generate.constraint;
}

TEST(ConstraintFields, EverySpellingIsRead) {
  const std::string schema = R"({"type":"object","properties":{"z":{},"a":{}}})";
  struct Case {
    std::string fields, kind, text;
  };
  const std::vector<Case> cases = {
      {R"("seed":1)", "", ""},
      {R"("response_format":{"type":"text"})", "", ""},
      {R"("response_format":null,"guided_json":null)", "", ""},
      {R"("response_format":{"type":"json_object"})", "json_object", ""},
      {cat(R"("response_format":{"type":"json_object","schema":)", schema, "}"), "json_schema",
       schema},
      {cat(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,)",
           R"("schema":)", schema, "}}"),
       "json_schema", schema},
      {cat(R"("response_format":{"type":"json_schema","schema":)", schema, "}"), "json_schema",
       schema},
      {cat(R"("json_schema":)", schema), "json_schema", schema},
      {cat(R"("guided_json":)", schema), "json_schema", schema},
      {R"("guided_json":"{\"type\":\"null\"}")", "json_schema", R"({"type":"null"})"},
      {R"("guided_regex":"[a-z]+")", "regex", "[a-z]+"},
      {R"("guided_grammar":"root ::= \"a\"")", "grammar", "root ::= \"a\""},
      {R"("grammar":"root ::= \"a\"")", "grammar", "root ::= \"a\""},
      {cat(R"("structured_outputs":{"json":)", schema, "}"), "json_schema", schema},
      {R"("structured_outputs":{"regex":"a"})", "regex", "a"},
      {R"("structured_outputs":{"grammar":"g"})", "grammar", "g"},
      {R"("structured_outputs":{"json_object":true})", "json_object", ""},
      {R"("structured_outputs":{"json_object":false})", "", ""},
  };
  for (const Case& c : cases) {
    for (const ConstraintFields& read : {of_job(c.fields), of_chat(c.fields)}) {
      EXPECT_EQ(read.kind, c.kind) << c.fields;
      EXPECT_EQ(read.text, c.text) << c.fields;
    }
  }
  for (const char* fields :
       {R"("guided_choice":["a","b c"])", R"("structured_outputs":{"choice":["a","b c"]})"}) {
    EXPECT_EQ(of_job(fields).kind, "choice");
    EXPECT_THAT(of_chat(fields).choices, ::testing::ElementsAre("a", "b c"));
  }
}

TEST(ConstraintFields, WrongOnesAreNamed) {
  struct Case {
    const char* fields;
    const char* field;
  };
  const std::vector<Case> cases = {
      {R"("response_format":1)", "response_format"},
      {R"("response_format":{"type":"xml"})", "response_format.type"},
      {R"("response_format":{})", "response_format.type"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":null}})",
       "response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":3}})",
       "response_format.json_schema.schema"},
      {R"("guided_json":[])", "guided_json"},
      {R"("guided_regex":1)", "guided_regex"},
      {R"("guided_choice":[])", "guided_choice"},
      {R"("guided_choice":["a",1])", "guided_choice"},
      {R"("guided_choice":[""])", "guided_choice"},
      {R"("structured_outputs":"x")", "structured_outputs"},
      {R"("structured_outputs":{"regex":{}})", "structured_outputs.regex"},
      {R"("grammar":"a","guided_regex":"b")", "guided_regex"},
      {R"("structured_outputs":{"regex":"a","choice":["b"]})", "structured_outputs.choice"},
  };
  for (const Case& c : cases) {
    try {
      of_job(c.fields);
      FAIL() << c.fields;
    } catch (const InvalidBody& error) {
      EXPECT_EQ(error.errors().front().field, c.field) << c.fields;
    }
    EXPECT_THROW(of_chat(c.fields), InvalidBody) << c.fields;
  }
}

}  // namespace
}  // namespace rbee::server

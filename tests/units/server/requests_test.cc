// Request bodies: accepted ones, and the errors for the others.

#include "server/wire/generate_request.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "server/apis/openai/request.h"
#include "server/apis/own/request.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<FieldError> errors_of(std::string_view body) {
  try {
    parse_generate(body);
  } catch (const InvalidBody& error) {
    return error.errors();
  }
  return {};
}

// The constraint of the only error; if there is not exactly one, their number.
std::string constraint(std::string_view body) {
  const std::vector<FieldError> errors = errors_of(body);
  return errors.size() == 1 ? errors[0].constraint : std::to_string(errors.size());
}

std::string with(const std::string& field) {
  return R"({"prompt":"Hi",)" + field + "}";
}

// Parsed as a tree, they would take 40 MB.
TEST(ParseGenerate, FieldsThatNobodyReadsCostNoTree) {
  std::string body = R"({"prompt":"Hi","a":[)";
  for (int i = 0; i < 500'000; ++i) body += "[],";
  body += R"(1],"max_tokens":7})";
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak();
  const GenerateRequest request = parse_generate(body);
  EXPECT_LT(peak() - before, 16 * 1024) << "KiB";
  EXPECT_EQ(request.prompt, "Hi");
  EXPECT_EQ(request.max_tokens, 7);
}

// Values are found after names and blanks of any form, and names stay as sent.
TEST(ParseGenerate, FieldsAreFoundWhereTheyStand) {
  const GenerateRequest spaced =
      parse_generate("\n{ \"\\u0070rompt\"\t:\r\n \"H:i\" , \"seed\" :5}");
  EXPECT_EQ(spaced.prompt, "H:i");
  EXPECT_EQ(spaced.sampling.seed, 5u);
  const auto variables = parse_openai_chat(
      R"({"messages":[{"role":"user","content":"Hi"}],"x":{"chat_template_kwargs":{"no":1}},)"
      R"("chat_template_kwargs":{"z":[{"y":1,"b":{}},-2],"a":1.5,"m":null}})");
  EXPECT_EQ(variables.generate.chat.template_variables,
            R"({"z":[{"y":1,"b":{}},-2],"a":1.5,"m":null})");
}

TEST(ParseGenerate, Minimal) {
  const GenerateRequest request = parse_generate(R"({"prompt":"Hi"})");
  EXPECT_EQ(request.prompt, "Hi");
  EXPECT_FALSE(request.max_tokens);
  EXPECT_FALSE(request.given.has(&engine::SamplingParams::temperature));
  EXPECT_FALSE(request.sampling.seed);
  EXPECT_FALSE(request.stream);
  EXPECT_TRUE(request.stop.empty());
}

TEST(ParseGenerate, NullIsAbsent) {
  EXPECT_THAT(errors_of(R"({"prompt":"Hi","messages":null,"seed":null,"stop":null,"top_k":null,
                            "stream":null,"temperature":null,"operation":null})"),
              SizeIs(0));
}

// Half a million of them would give an answer of 80 MB.
TEST(ParseGenerate, TheFirstErrorsOfManyAreTold) {
  std::string body = R"({"messages":[)";
  for (int i = 0; i < 100'000; ++i) body += "1,";
  const std::vector<FieldError> errors = errors_of(body + "1]}");
  ASSERT_EQ(errors.size(), 32U);
  EXPECT_EQ(errors[0].field, "messages[0]");
  EXPECT_EQ(errors[31].field, "messages[31]");
}

TEST(ParseGenerate, EdgesOfRangesAreInside) {
  for (const char* field : {R"("temperature":0)",
                            R"("temperature":2)",
                            R"("temperature":2.0)",
                            R"("top_p":0)",
                            R"("top_p":1)",
                            R"("min_p":1)",
                            R"("top_k":0)",
                            R"("top_k":2147483647)",
                            R"("max_tokens":1)",
                            R"("max_tokens":2147483647)",
                            R"("repetition_penalty":2)",
                            R"("repetition_penalty":0.001)",
                            R"("frequency_penalty":-2)",
                            R"("presence_penalty":2)",
                            R"("repeat_last_n":0)",
                            R"("repeat_last_n":1048576)",
                            R"("seed":0)",
                            R"("seed":18446744073709551615)",
                            R"("stop":"x")",
                            R"("user":"x")",
                            R"("cache_salt":"x")",
                            R"("priority":-1000)",
                            R"("priority":1000)",
                            R"("stop":[])",
                            R"("operation":"infer")"}) {
    EXPECT_THAT(errors_of(with(field)), SizeIs(0)) << field;
  }
}

// As clients of vLLM and llama-server, and clients without integers, send them.
TEST(ParseGenerate, OtherSpellings) {
  const GenerateRequest request = parse_generate(
      R"({"prompt":"Hi","max_tokens":64.0,"top_k":-1,"seed":-1,"repeat_penalty":1.5,
          "stop_token_ids":[7,2147483647]})");
  EXPECT_EQ(request.max_tokens, 64);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_FALSE(request.sampling.seed);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5f);
  EXPECT_THAT(request.stop_ids, ::testing::ElementsAre(7, 2147483647));
  EXPECT_EQ(parse_generate(R"({"prompt":"Hi","seed":42.0})").sampling.seed, 42u);
  EXPECT_FALSE(parse_generate(R"({"prompt":"Hi","seed":-1e30})").sampling.seed);
}

TEST(ParseGenerate, OutsideOfRanges) {
  std::string many_stops = R"("stop":["x")";
  for (int i = 0; i < 64; ++i) many_stops += R"(,"x")";
  many_stops += ']';
  for (const auto& [field, wanted] : std::vector<std::pair<const char*, const char*>>{
           {R"("temperature":-0.1)", "range(0..=100)"},
           {R"("temperature":100.1)", "range(0..=100)"},
           {R"("temperature":1e300)", "range(0..=100)"},
           {R"("top_p":1.1)", "range(0..=1)"},
           {R"("min_p":-1)", "range(0..=1)"},
           {R"("top_k":-2)", "range(-1..=2147483647)"},
           {R"("top_k":2147483648)", "range(-1..=2147483647)"},
           {R"("max_tokens":0)", "range(1..=2147483647)"},
           {R"("max_tokens":-9223372036854775808)", "range(1..=2147483647)"},
           {R"("max_tokens":18446744073709551615)", "range(1..=2147483647)"},
           {R"("max_tokens":18446744073709551616)", "range(1..=2147483647)"},
           {R"("max_tokens":1e300)", "range(1..=2147483647)"},
           {R"("max_tokens":1.5)", "type(integer)"},
           {R"("stop_token_ids":7)", "type(array), max_count(128)"},
           {R"("stop_token_ids":[2,-1])", "range(0..=2147483647)"},
           {R"("stop_token_ids":["a"])", "range(0..=2147483647)"},
           {R"("repetition_penalty":0)", "range(0<..=2)"},
           {R"("repetition_penalty":1e-60)", "range(0<..=2)"},
           {R"("repeat_penalty":2.5)", "range(0<..=2)"},
           {R"("frequency_penalty":-2.1)", "range(-2..=2)"},
           {R"("presence_penalty":3)", "range(-2..=2)"},
           {R"("repeat_last_n":1048577)", "range(0..=1048576)"},
           {R"("user":"")", "non_empty"},
           {R"("user":7)", "type(string)"},
           {R"("cache_salt":"")", "non_empty"},
           {R"("cache_salt":7)", "type(string)"},
           {R"("priority":-1001)", "range(-1000..=1000)"},
           {R"("priority":1001)", "range(-1000..=1000)"},
           {R"("seed":"1")", "type(u64)"},
           {R"("seed":1.5)", "type(u64)"},
           {R"("seed":18446744073709551616)", "type(u64)"},
           {R"("stop":7)", "type(string)"},
           {R"("stop":["a",7])", "type(string)"},
           {many_stops.c_str(), "max_count(64)"},
           {R"("stream":"yes")", "type(boolean)"},
           {R"("operation":"image_generation")", "one_of(infer)"},
           {R"("operation":7)", "type(string)"},
           {R"("temperature":true)", "type(number)"},
           {R"("max_tokens":"3")", "type(integer)"},
       }) {
    EXPECT_EQ(constraint(with(field)), wanted) << field;
  }
  EXPECT_EQ(constraint(with(R"("stop":")" + std::string(513, 'x') + '"')), "max_length(512)");
  EXPECT_EQ(constraint(with(R"("stop":")" + std::string(512, 'x') + '"')), "0");
}

TEST(ParseGenerate, EdgesOfSamplersAreInside) {
  for (const char* field : {R"("typical_p":0)",
                            R"("typical_p":1)",
                            R"("top_n_sigma":-1)",
                            R"("xtc_probability":1)",
                            R"("xtc_threshold":0.5)",
                            R"("dry_multiplier":0)",
                            R"("dry_base":1)",
                            R"("dry_allowed_length":1)",
                            R"("dry_penalty_last_n":-1)",
                            R"("dry_sequence_breakers":[])",
                            R"("dynatemp_range":2)",
                            R"("dynatemp_exponent":10)",
                            R"("mirostat":2)",
                            R"("mirostat_tau":100)",
                            R"("mirostat_eta":1)",
                            R"("min_tokens":0)",
                            R"("ignore_eos":true)",
                            R"("bad_words":["x"])",
                            R"("logit_bias":{"0":-100,"2147483647":100})",
                            R"("logit_bias":[[5,false],["word",1.5]])",
                            R"("samplers":["dry","penalties","xtc","top_k","typical_p"])",
                            R"("samplers":[])"}) {
    EXPECT_THAT(errors_of(with(field)), SizeIs(0)) << field;
  }
}

TEST(ParseGenerate, SamplersOutsideOfRanges) {
  for (const auto& [field, wanted] : std::vector<std::pair<const char*, const char*>>{
           {R"("typical_p":1.1)", "range(0..=1)"},
           {R"("top_n_sigma":101)", "range(-1..=100)"},
           {R"("xtc_probability":-0.1)", "range(0..=1)"},
           {R"("xtc_threshold":2)", "range(0..=1)"},
           {R"("dry_multiplier":-1)", "range(0..=100)"},
           {R"("dry_base":0.9)", "range(1..=100)"},
           {R"("dry_allowed_length":0)", "range(1..=1048576)"},
           {R"("dry_penalty_last_n":-2)", "range(-1..=1048576)"},
           {R"("dry_sequence_breakers":"x")", "type(array)"},
           {R"("dry_sequence_breakers":[7])", "type(string)"},
           {R"("dry_sequence_breakers":[""])", "non_empty"},
           {R"("dynatemp_range":100.5)", "range(0..=100)"},
           {R"("dynatemp_exponent":-1)", "range(0..=10)"},
           {R"("mirostat":3)", "range(0..=2)"},
           {R"("mirostat_tau":101)", "range(0..=100)"},
           {R"("mirostat_eta":1.5)", "range(0..=1)"},
           {R"("min_tokens":-1)", "range(0..=2147483647)"},
           {R"("ignore_eos":1)", "type(boolean)"},
           {R"("speculative":"ngram")", "type(boolean)"},
           {R"("bad_words":[""])", "non_empty"},
           {R"("logit_bias":7)", "type(object)"},
           {R"("logit_bias":{"x":1})", "type(token)"},
           {R"("logit_bias":{"-5":1})", "type(token)"},
           {R"("logit_bias":{"5":101})", "range(-100..=100)"},
           {R"("logit_bias":{"5":true})", "range(-100..=100)"},
           {R"("logit_bias":[5])", "type(array)"},
           {R"("logit_bias":[["",1]])", "type(array)"},
           {R"("logit_bias":[[-1,1]])", "type(array)"},
           {R"("samplers":["top_k","top_k"])", "unique"},
           {R"("samplers":["top_k","dry"])", "order"},
           {R"("samplers":"top_k")", "type(array)"},
       }) {
    EXPECT_EQ(constraint(with(field)), wanted) << field;
  }
  EXPECT_THAT(constraint(with(R"("samplers":["best"])")), HasSubstr("one_of(penalties"));
}

TEST(ParseGenerate, MessagesNameTheFieldAndWhatItTakes) {
  const auto message = [](std::string_view body) {
    const std::vector<FieldError> errors = errors_of(body);
    return errors.size() == 1 ? errors[0].message : "";
  };
  EXPECT_EQ(message(with(R"("max_tokens":"3")")),
            "max_tokens must be an integer from 1 to 2147483647");
  EXPECT_EQ(message(with(R"("max_tokens":-3)")), "max_tokens must be from 1 to 2147483647");
  EXPECT_EQ(message(with(R"("top_p":"x")")), "top_p must be a number from 0 to 1");
  EXPECT_EQ(message(with(R"("repetition_penalty":[])")),
            "repetition_penalty must be a number above 0 and at most 2");
  EXPECT_EQ(message(with(R"("stop":{})")), "stop must be a string or an array of strings");
  EXPECT_EQ(message(R"({"messages":[]})"), "messages must be an array of at least one message");
  EXPECT_THAT(message(""), HasSubstr("the body is empty"));
  EXPECT_THAT(message(with(R"("temperature":1e999)")),
              HasSubstr(R"(out of range at "temperature")"));
  EXPECT_THAT(message("1e999"), HasSubstr("a number is out of range"));
}

TEST(ParseGenerate, PromptOrMessages) {
  EXPECT_EQ(constraint("{}"), "required");
  EXPECT_EQ(constraint(R"({"prompt":null})"), "required");
  EXPECT_EQ(constraint(R"({"prompt":""})"), "non_empty");
  EXPECT_EQ(constraint(R"({"prompt":["Hi"]})"), "type(string)");
  EXPECT_EQ(constraint(R"({"messages":[]})"), "type(array), non_empty");
  EXPECT_EQ(constraint(R"({"messages":"Hi"})"), "type(array), non_empty");
  EXPECT_EQ(constraint(R"({"messages":["Hi"]})"), "type(object)");
  EXPECT_EQ(constraint(with(R"("messages":[{"role":"user","content":"Hi"}])")),
            "exclusive(prompt)");
  const GenerateRequest request = parse_generate(R"({"messages":[{"role":"system","content":""},
                                      {"role":"user","content":"Hi","name":"x"}]})");
  ASSERT_THAT(request.messages, SizeIs(2));
  EXPECT_EQ(request.messages[1].role, "user");
  EXPECT_EQ(request.messages[1].content, "Hi");
}

TEST(ParseGenerate, ErrorsNameTheMessage) {
  const std::vector<FieldError> errors = errors_of(
      R"({"messages":[{"role":"user","content":"Hi"},{"role":"","content":7},{"content":null}]})");
  ASSERT_THAT(errors, SizeIs(4));
  EXPECT_EQ(errors[0].field, "messages[1].content");
  EXPECT_EQ(errors[0].value, "7");
  EXPECT_EQ(errors[1].field, "messages[1].role");
  EXPECT_EQ(errors[2].field, "messages[2].role");
  EXPECT_EQ(errors[3].field, "messages[2].content");
  EXPECT_EQ(errors[3].message, "messages[2].content is missing");
}

TEST(ParseGenerate, ShownValuesAreShort) {
  const std::vector<FieldError> errors =
      errors_of(R"({"prompt":"Hi","seed":")" + std::string(10'000, 'x') + R"("})");
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_LT(errors[0].value.size(), 110u);
}

TEST(ParseGenerate, BodiesThatAreNoObject) {
  for (const char* body :
       {"", " ", "null", "[]", "\"x\"", "7", "{", "{\"prompt\":\"Hi\"}}", "{\"prompt\":\"\xc3(\"}",
        "{\"prompt\":\"\\ud800\"}", "{'prompt':'Hi'}", "{\"prompt\":\"a\nb\"}", "{\"a\":NaN}",
        "{\"a\":1e999}", "{\"a\":01}", "\xef\xbb\xbf"}) {
    const std::vector<FieldError> errors = errors_of(body);
    ASSERT_THAT(errors, SizeIs(1)) << body;
    EXPECT_EQ(errors[0].field, "body") << body;
  }
  using namespace std::string_view_literals;
  EXPECT_THAT(errors_of("{\"prompt\":\"a\0b\"}"sv), SizeIs(1));
}

TEST(ParseGenerate, DepthIsBounded) {
  const auto nested = [](int levels) {
    return R"({"prompt":"Hi","x":)" + std::string(static_cast<size_t>(levels), '[') +
           std::string(static_cast<size_t>(levels), ']') + "}";
  };
  EXPECT_THAT(errors_of(nested(31)), SizeIs(0));
  EXPECT_EQ(constraint(nested(32)), "max_depth(32)");
}

TEST(ParseGenerate, NamesAreUniqueInEachObject) {
  EXPECT_EQ(constraint(R"({"prompt":"Hi","prompt":"Ho"})"), "unique_names");
  EXPECT_EQ(constraint(R"({"prompt":"Hi","x":[{"a":1,"a":2}]})"), "unique_names");
  EXPECT_EQ(constraint(R"({"prompt":"Hi","x":{"prompt":1},"y":{"prompt":2}})"), "0");
}

TEST(ParseCancel, NeedsAnId) {
  EXPECT_EQ(parse_cancel(R"({"job_id":"job-1","x":2})"), "job-1");
  for (const char* body :
       {"{}", R"({"job_id":""})", R"({"job_id":7})", R"({"job_id":null})", "7"}) {
    EXPECT_THROW(parse_cancel(body), InvalidBody) << body;
  }
}

}  // namespace
}  // namespace rbee::server

// The table of sampling fields (rbee/engine/api/fields.cc), compared with the OpenAPI document,
// docs/reference/fields.md and the page.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>
#include <variant>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/engine/api/fields.h"
#include "server/apis/own/request.h"
#include "server/http/page_file.h"
#include "server/llm/page.h"

namespace rbee::server {

namespace {

using engine::SamplingField;
using engine::SamplingParams;
using nlohmann::json;

constexpr const char* kPrint =
    ": RBEE_WRITE_FIELDS=1 server_units_test writes defaults into fields.md, openapi.json and the "
    "page";

// A number as JSON writes it: 0.95, not 0.949999988.
json number(double value) {
  if (value == std::floor(value)) return static_cast<int64_t>(value);
  return std::stod(cat(static_cast<float>(value)));
}

json default_of(const SamplingField& field) {
  const SamplingParams defaults;
  return std::visit(
      [&]<typename T>(T SamplingParams::* member) -> json {
        const T& value = defaults.*member;
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int32_t>) {
          return number(value);
        } else if constexpr (std::is_same_v<T, std::vector<engine::SamplerKind>>) {
          json names = json::array();
          for (const engine::SamplerKind kind : value) names.push_back(engine::sampler_name(kind));
          return names;
        } else if constexpr (std::is_same_v<T, bool> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          return value;
        } else {
          return nullptr;  // neither a seed nor biases
        }
      },
      field.member);
}

const char* type_of(const SamplingField& field) {
  return std::visit(
      []<typename T>(T SamplingParams::*) {
        if constexpr (std::is_same_v<T, float>) return "number";
        if constexpr (std::is_same_v<T, bool>) return "boolean";
        if constexpr (std::is_same_v<T, std::vector<std::string>>) return "array of strings";
        if constexpr (std::is_same_v<T, std::vector<engine::SamplerKind>>) return "array of names";
        if constexpr (std::is_same_v<T, std::vector<engine::LogitBias>>) {
          return "object by token id, or array of [token id or text, bias]";
        }
        return "integer";
      },
      field.member);
}

bool is_number(const SamplingField& field) {
  return std::holds_alternative<float SamplingParams::*>(field.member) ||
         std::holds_alternative<int32_t SamplingParams::*>(field.member);
}

std::string range_of(const SamplingField& field) {
  if (is_number(field)) {
    return cat(field.above_low ? "above " : "", number(field.low).dump(), " to ",
               number(field.high).dump());
  }
  return field.high > 0 ? cat("at most ", number(field.high).dump()) : "";
}

std::string other_names(const SamplingField& field) {
  std::string out;
  if (!field.alias.empty()) out = cat("llama-server: `", field.alias, "`");
  for (const auto& [api, in] :
       {std::pair{"Anthropic", field.anthropic}, std::pair{"Cohere", field.cohere},
        std::pair{"Ollama", field.ollama}}) {
    if (in.name.empty()) continue;
    out += cat(out.empty() ? "" : "; ", api, ": `", in.name, "`");
    if (in.low || in.high) {
      out += cat(", ", number(in.low.value_or(field.low)).dump(), " to ",
                 number(in.high.value_or(field.high)).dump());
    }
  }
  return out;
}

std::string document() {
  std::string out = R"(# Fields that choose tokens

The chat worker's own routes, OpenAI's, llama-server's and text-generation-inference's take all of
these fields; [http-api.md](http-api.md) has the rest of each body. The last column has the names of
APIs that have others, and the part of the range that they allow. The worker's own routes and
llama-server's use the defaults below (llama-server's `min_p` is 0.05). The other APIs use the
model's `generation_config.json`, or a GGUF file's `general.sampling` keys, and truncate nothing if
it says nothing, except Ollama's, which then uses the defaults below with 0.9 as `top_p`. `rbee run`
has each field as an option (`--top-k`).

This page is printed from `rbee/engine/api/fields.cc` and the defaults in `sampling.h`; a test
compares them.

| Field | Type | Range | Default | What it does | Other names |
|---|---|---|---|---|---|
)";
  for (const SamplingField& field : engine::sampling_fields()) {
    const json value = default_of(field);
    out += cat("| `", field.name, "` | ", type_of(field), " | ", range_of(field), " | ",
               value.is_null()    ? "none"
               : value.is_array() ? value.empty() ? "none" : cat("`", value.dump(), "`")
                                  : value.dump(),
               " | ", field.words, " | ", other_names(field), " |\n");
  }
  return out;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Where a file repeats a field's default: behind `key`, which comes after `begin` and before `end`.
struct Place {
  std::string begin, key, end;
};

void put_default(std::string& text, size_t from, const Place& place, const json& value) {
  const size_t begin = text.find(place.begin, from);
  const size_t key = text.find(place.key, begin);
  if (begin == std::string::npos || key > text.find(place.end, begin)) return;
  const size_t at = key + place.key.size();
  text.replace(at, text.find_first_not_of("+-.0123456789e", at) - at, value.dump());
}

// Of all number fields, into a file of server/llm.
void write_defaults(const char* file, const char* from,
                    Place (*place_of)(const std::string& name)) {
  const std::string path = cat(CHAT_FOLDER "/", file);
  std::string text = text_of(path);
  for (const SamplingField& field : engine::sampling_fields()) {
    if (!is_number(field)) continue;
    put_default(text, text.find(from), place_of(std::string(field.name)), default_of(field));
  }
  std::ofstream(path, std::ios::binary) << text;
}

// With RBEE_WRITE_FIELDS=1 it writes the document and all defaults; a build takes them in.
TEST(Fields, ThePageIsPrintedFromTheTable) {
  const std::string path = FIELDS_PAGE;
  if (std::getenv("RBEE_WRITE_FIELDS") != nullptr) {
    std::ofstream(path) << document();
    write_defaults("openapi.json", "\"Sampling\": {", [](const std::string& name) {
      return Place{cat('"', name, "\": {"), "\"default\": ", "}"};
    });
    write_defaults("page/page.html", "<dialog id=\"settings\"", [](const std::string& name) {
      return Place{cat("id=\"s-", name, '"'), "placeholder=\"", ">"};
    });
    write_defaults("page/worker.js", "const usual", [](const std::string& name) {
      return Place{"const usual = {", cat(name, ": "), "}"};
    });
  }
  EXPECT_EQ(text_of(path), document()) << kPrint;
}

TEST(Fields, TheOpenApiDocumentHasTheirRangesAndDefaults) {
  const json schemas = json::parse(chat_api_document()).at("components").at("schemas");
  const json& properties = schemas.at("Sampling").at("properties");
  for (const SamplingField& field : engine::sampling_fields()) {
    SCOPED_TRACE(field.name);
    const json& schema = properties.at(std::string(field.name));
    const json value = default_of(field);
    EXPECT_EQ(schema.value("default", json()), value.is_array() && value.empty() ? json() : value)
        << kPrint;
    if (!is_number(field)) continue;
    EXPECT_EQ(schema.at(field.above_low ? "exclusiveMinimum" : "minimum"), number(field.low));
    EXPECT_EQ(schema.at("maximum"), number(field.high));
  }
}

TEST(Fields, TheOpenApiDocumentHasTheSamplersNames) {
  const json document = json::parse(chat_api_document());
  const json names =
      document.at("/components/schemas/Sampling/properties/samplers/items/enum"_json_pointer);
  for (const json& name : names) {
    EXPECT_TRUE(engine::parse_sampler(name.get<std::string>())) << name;
  }
  for (const engine::SamplerKind kind : SamplingParams().samplers) {
    EXPECT_THAT(names, ::testing::Contains(json(engine::sampler_name(kind))));
  }
}

// Each bound is in the parser's range, and the next value is not; the engine must agree.
TEST(Fields, ParserAndEngineKeepTheirRanges) {
  const auto reads = [](const SamplingField& field, double value) {
    try {
      parse_generate(json{{"prompt", "x"}, {field.name, number(value)}}.dump());
      return true;
    } catch (const InvalidBody&) {
      return false;
    }
  };
  const auto takes = [](const SamplingField& field, double value) {
    SamplingParams params;
    std::visit(
        [&]<typename T>(T SamplingParams::* member) {
          if constexpr (std::is_arithmetic_v<T>) params.*member = static_cast<T>(value);
        },
        field.member);
    try {
      engine::validate(params);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (const SamplingField& field : engine::sampling_fields()) {
    if (!is_number(field)) continue;
    SCOPED_TRACE(field.name);
    const double step = std::holds_alternative<int32_t SamplingParams::*>(field.member) ? 1 : 0.001;
    EXPECT_EQ(reads(field, field.low), !field.above_low);
    EXPECT_EQ(takes(field, field.low), !field.above_low);
    EXPECT_FALSE(reads(field, field.low - step));
    EXPECT_FALSE(takes(field, field.low - step));
    EXPECT_TRUE(reads(field, field.high));
    EXPECT_TRUE(takes(field, field.high));
    EXPECT_FALSE(reads(field, field.high + step));
    if (field.high < INT32_MAX) {
      EXPECT_FALSE(takes(field, field.high + step));
    }
  }
}

// The page's values unless the user changes them.
TEST(Fields, ThePageTakesTheirDefaults) {
  std::string script;
  for (const PageFile& file : chat_page_files()) {
    if (file.name == "worker.js") script = file.text;
  }
  const size_t at = script.find("const usual = {");
  ASSERT_NE(at, std::string::npos);
  const std::string usual = script.substr(at, script.find('}', at) - at);
  size_t compared = 0;
  for (const SamplingField& field : engine::sampling_fields()) {
    const std::string name = cat(field.name, ": ");
    const size_t place = usual.find(name);
    if (place == std::string::npos) continue;
    ++compared;
    EXPECT_EQ(std::stod(usual.substr(place + name.size())), default_of(field).get<double>())
        << field.name << kPrint;
  }
  EXPECT_EQ(compared, 3u);
}

// The meaning of an empty input.
TEST(Fields, ThePageShowsTheirDefaults) {
  size_t compared = 0;
  for (const SamplingField& field : engine::sampling_fields()) {
    const size_t input = kChatPage.find(cat("id=\"s-", field.name, "\""));
    if (input == std::string_view::npos || !is_number(field)) continue;
    constexpr std::string_view kShown = "placeholder=\"";
    const size_t shown = kChatPage.find(kShown, input) + kShown.size();
    ++compared;
    EXPECT_EQ(std::stod(std::string(kChatPage.substr(shown, 16))), default_of(field).get<double>())
        << field.name << kPrint;
  }
  EXPECT_GE(compared, 5u);
}

}  // namespace
}  // namespace rbee::server

// The table of a picture request's fields (rbee/engine/api/image_fields.cc), compared with the
// OpenAPI document, docs/reference/picture-fields.md and the page.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/engine/api/image_fields.h"
#include "server/apis/a1111/request.h"
#include "server/apis/openai/image_request.h"
#include "server/apis/own/image_request.h"
#include "server/image/page.h"
#include "server/wire/json_object.h"

namespace rbee::server {
namespace {

using engine::ImageField;
using nlohmann::json;

// A number as JSON writes it: 0.8, not 0.800000012.
json number(double value) {
  if (value == std::floor(value)) return static_cast<int64_t>(value);
  return std::stod(cat(static_cast<float>(value)));
}

// Calls use(field, default) for each field of a request, a second pass, an adapter and a control.
template <typename Use>
void for_each_default(const Use& use) {
  const engine::ImageRequest request;
  const engine::HiresFix hires;
  const engine::LoraUse lora;
  const engine::ControlUse control;
  engine::for_each_image_field(request, use);
  engine::for_each_image_field(hires, use);
  engine::for_each_image_field(lora, use);
  engine::for_each_image_field(control, use);
}

// Null: the model's own, or none.
template <typename T>
json default_of(const ImageField& field, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return field.choices[static_cast<size_t>(value)];
  } else if constexpr (std::is_arithmetic_v<T>) {
    return field.zero_is_absent ? json() : number(value);
  } else {
    return nullptr;
  }
}

template <typename T>
const char* type_of(const T&) {
  if constexpr (std::is_same_v<T, bool>) return "boolean";
  if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, std::optional<uint64_t>>) {
    return "integer";
  }
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::optional<float>>) {
    return "number";
  }
  return "string";
}

std::string range_of(const ImageField& field, const char* type) {
  if (!field.choices.empty()) return engine::choices_text(field);
  if (field.high == 0) return "";
  if (type == std::string_view("string")) return cat("at most ", field.high, " bytes");
  std::string out = cat(number(field.low).dump(), " to ", number(field.high).dump());
  if (field.multiple > 1) out += cat(", multiples of ", field.multiple);
  if (field.sent_low < 0) {
    out += cat("; bodies also ", field.sent_low, field.low > 0 ? " and 0" : "", ": none");
  }
  return out;
}

std::string other_names(const ImageField& field) {
  std::string out;
  const auto add = [&](std::string_view api, std::string_view name) {
    if (!name.empty()) out += cat(out.empty() ? "" : "; ", api, "`", name, "`");
  };
  for (const std::string_view alias : field.aliases) add("", alias);
  add("", field.repeated);
  add("OpenAI: ", field.openai);
  add("A1111: ", field.a1111);
  return out;
}

std::string document() {
  std::string out = R"(# Fields of pictures

The picture worker's own jobs, OpenAI's picture routes and AUTOMATIC1111's (A1111) take these
fields; [http-api.md](http-api.md#fields) has the rest of a body, and says more about some of them.
`hires` is an object with the fields named so; `loras` and `control` are lists of such objects. The
last two columns have names that an API also reads, and the option of `rbee imagine`. If the default
is empty, the model decides, or the field is off.

This page is printed from `rbee/engine/api/image_fields.cc` and the defaults in `image.h`; a test
compares them.

| Field | Type | Range | Default | What it does | Other names | Option |
|---|---|---|---|---|---|---|
)";
  for_each_default([&](const ImageField& field, const auto& value) {
    const json preset = default_of(field, value);
    std::string shown = preset.is_null()     ? ""
                        : preset.is_string() ? preset.get<std::string>()
                                             : preset.dump();
    if (!field.other_defaults.empty()) {
      shown += cat(shown.empty() ? "" : "; ", field.other_defaults);
    }
    const std::string option = field.option.empty() ? "" : cat("`", field.option, "`");
    out += cat("| `", field.prefix(), field.name, "` | ", type_of(value), " | ",
               range_of(field, type_of(value)), " | ", shown, " | ", field.words, " | ",
               other_names(field), " | ", option, " |\n");
  });
  return out;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// With RBEE_WRITE_FIELDS=1 it writes the document.
TEST(ImageFields, ThePageOfDocsIsPrintedFromTheTable) {
  const std::string path = PICTURE_FIELDS_PAGE;
  if (std::getenv("RBEE_WRITE_FIELDS") != nullptr) std::ofstream(path) << document();
  EXPECT_EQ(text_of(path), document()) << ": RBEE_WRITE_FIELDS=1 server_units_test prints the page";
}

// Schemas that have the field, by its prefix: all objects of properties with its name.
void collect(const json& node, std::string_view name, std::vector<const json*>& out) {
  if (node.is_object()) {
    const auto properties = node.find("properties");
    if (properties != node.end() && properties->contains(name)) {
      out.push_back(&properties->at(std::string(name)));
    }
  }
  if (!node.is_structured()) return;
  for (const auto& child : node) collect(child, name, out);
}

std::vector<const json*> schemas_of(const json& schemas, const ImageField& field) {
  std::vector<const json*> out;
  if (field.prefix() == "control.") {
    collect(schemas.at("Control"), field.name, out);
  } else if (field.prefix() == "loras.") {
    collect(schemas.at("Picture").at("properties").at("loras"), field.name, out);
  } else if (field.prefix() == "hires.") {
    std::vector<const json*> passes;
    for (const char* body : {"PictureJob", "Generation"}) {
      collect(schemas.at(body), "hires", passes);
    }
    for (const json* pass : passes) collect(*pass, field.name, out);
  } else if (field.everywhere && field.multiple == 1) {
    out.push_back(&schemas.at("Picture").at("properties").at(std::string(field.name)));
  } else {
    for (const json& job : schemas.at("PictureJob").at("oneOf")) {
      out.push_back(&job.at("allOf").at(1).at("properties").at(std::string(field.name)));
    }
  }
  return out;
}

TEST(ImageFields, TheOpenApiDocumentHasTheirRangesAndDefaults) {
  const json document = json::parse(image_api_files().front().text);
  const json& schemas = document.at("components").at("schemas");
  for_each_default([&]<typename T>(const ImageField& field, const T& value) {
    SCOPED_TRACE(cat(field.prefix(), field.name));
    const std::vector<const json*> found = schemas_of(schemas, field);
    EXPECT_FALSE(found.empty());
    for (const json* schema : found) {
      if (schema->contains("default") || field.other_defaults.empty()) {
        EXPECT_EQ(schema->value("default", json()), default_of(field, value));
      }
      constexpr bool kNumber = std::is_same_v<T, int32_t> || std::is_same_v<T, float> ||
                               std::is_same_v<T, std::optional<float>>;
      if (kNumber) {
        EXPECT_EQ(schema->at("minimum"), number(field.sent_low < 0 ? field.sent_low : field.low));
        EXPECT_EQ(schema->at("maximum"), number(field.high));
        EXPECT_EQ(schema->value("multipleOf", 1), field.multiple);
      }
      for (const std::string_view choice : field.choices) {
        EXPECT_THAT(schema->at("enum"), ::testing::Contains(json(choice)));
      }
    }
  });
}

// A body with one field of the table, or of an object in it.
std::string body_of(const ImageField& field, const json& value) {
  json body = {{"operation", "image_generation"}, {"prompt", "x"}};
  if (field.prefix() == "hires.") {
    body["hires"] = {{field.name, value}};
  } else if (field.prefix() == "loras.") {
    body["loras"] = {{{"path", "a"}, {field.name, value}}};
  } else if (field.prefix() == "control.") {
    body["control"] = {{{"image", "eA=="}, {field.name, value}}};
  } else {
    body[std::string(field.name)] = value;
    if (field.name == "seed_resize_from_w") body["seed_resize_from_h"] = 8;
    if (field.name == "seed_resize_from_h") body["seed_resize_from_w"] = 8;
  }
  return body.dump();
}

bool reads(const ImageField& field, double value) {
  try {
    (void)parse_image_job(body_of(field, number(value)));
    return true;
  } catch (const InvalidBody& error) {
    EXPECT_THAT(error.errors().front().field, ::testing::HasSubstr(std::string(field.name)));
    return false;
  }
}

// The same value as the engine gets it.
bool takes(const ImageField& field, double value) {
  engine::ImageRequest request;
  request.seed_width = request.seed_height = 8;
  request.hires.emplace();
  request.loras.push_back({.path = "a"});
  request.controls.push_back({.name = {}, .image = "x"});
  request.controls[0].finish = field.name == "start" ? 1.0f : request.controls[0].finish;
  const auto set = [&]<typename T>(const ImageField&, T& place) {
    if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, float>) {
      place = static_cast<T>(value);
    } else if constexpr (std::is_same_v<T, std::optional<float>>) {
      place = static_cast<float>(value);
    }
  };
  engine::with_image_field(field, request, set);
  engine::with_image_field(field, *request.hires, set);
  engine::with_image_field(field, request.loras[0], set);
  engine::with_image_field(field, request.controls[0], set);
  try {
    engine::validate(request);
    return true;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(cat(field.prefix(), field.name)));
    return false;
  }
}

// Each bound is in the parser's range, and the next value is not; the engine must agree.
TEST(ImageFields, ParserAndEngineKeepTheirRanges) {
  for_each_default([]<typename T>(const ImageField& field, const T&) {
    constexpr bool kWhole = std::is_same_v<T, int32_t>;
    if (!kWhole && !std::is_same_v<T, float> && !std::is_same_v<T, std::optional<float>>) return;
    SCOPED_TRACE(cat(field.prefix(), field.name));
    const double step = kWhole ? field.multiple : 0.001;
    EXPECT_TRUE(reads(field, field.low));
    EXPECT_TRUE(takes(field, field.low));
    EXPECT_TRUE(reads(field, field.high));
    EXPECT_TRUE(takes(field, field.high));
    EXPECT_FALSE(reads(field, field.high + step));
    if (field.high < INT32_MAX) {
      EXPECT_FALSE(takes(field, field.high + step));
    }
    EXPECT_FALSE(reads(field, field.sent_low < 0 ? field.sent_low - 1 : field.low - step));
    EXPECT_EQ(takes(field, field.low - step), field.zero_is_absent && field.low == step);
    if (field.multiple > 1) {
      EXPECT_FALSE(reads(field, field.low + 1));
      EXPECT_FALSE(takes(field, field.low + 1));
    }
  });
}

// What a body says comes to the engine's struct, and nothing else changes.
TEST(ImageFields, AGivenFieldSetsItsMember) {
  const ImageBody body = parse_image_job(R"({"operation":"image_generation","prompt":"x",
      "num_inference_steps":7,"tiling":"x","mask_fill":"nothing","s_noise":0.5,"subseed":9,
      "sampler":"","sampler_name":"euler","clip_skip":-1,"seed_resize_from_w":-1,
      "output_format":"webp","output_compression":40,"loras":[{"path":"a","weight":0.5}],
      "hires":{"scale":3}})")
                             .image;
  const engine::ImageRequest& out = body.settings;
  EXPECT_EQ(out.steps, 7);
  EXPECT_EQ(out.tiling, engine::Tiling::x);
  EXPECT_EQ(out.mask_fill, engine::MaskFill::nothing);
  EXPECT_EQ(out.added_noise.noise, 0.5f);
  EXPECT_EQ(out.variation.seed, 9u);
  EXPECT_EQ(out.sampler, "euler");
  EXPECT_EQ(out.clip_skip, 0);
  EXPECT_EQ(out.seed_width, 0);
  EXPECT_EQ(out.encoding.format, io::ImageFormat::webp);
  EXPECT_EQ(out.encoding.quality, 40);
  EXPECT_EQ(out.loras.at(0).strength, 0.5f);
  EXPECT_EQ(out.hires->scale, 3.0f);
  EXPECT_EQ(out.hires->strength, engine::HiresFix().strength);
  EXPECT_TRUE(body.given.has(&engine::ImageRequest::steps));
  EXPECT_FALSE(body.given.has(&engine::ImageRequest::strength));
}

// The names that a parser looks up, without the places of lists' entries.
std::set<std::string> names_read(const std::function<void()>& parse) {
  const NamesRead read;
  parse();
  std::set<std::string> out;
  for (std::string name : read.names()) {
    while (name.find('[') != std::string::npos) {
      name.erase(name.find('['), name.find(']') + 1 - name.find('['));
    }
    out.insert(name);
  }
  return out;
}

// What an API's messages call a field is a name that its bodies have.
TEST(ImageFields, MessagesHaveNamesThatTheirApiReads) {
  const char* own = R"({"operation":"image_generation","prompt":"x","hires":{},
      "loras":[{"path":"a"}],"control":[{"image":"eA=="}]})";
  const char* sdapi = R"({"enable_hr":true,"loras":[{"path":"a"}],"override_settings":{},
      "alwayson_scripts":{"controlnet":{"args":[{"image":"eA=="}]}}})";
  const char* inpainting = R"({"init_images":["eA=="],"mask":"eA=="})";
  const std::set<std::string> of_own = names_read([&] { (void)parse_image_job(own); });
  const std::set<std::string> of_openai = names_read([&] { (void)parse_openai_generation(own); });
  std::set<std::string> of_a1111 = names_read([&] { (void)parse_sdapi(sdapi, false); });
  of_a1111.merge(names_read([&] { (void)parse_sdapi(inpainting, true); }));
  for (const ImageField& field : engine::image_fields()) {
    const std::string name = cat(field.prefix(), field.name);
    EXPECT_TRUE(of_own.contains(std::string(ImageNames().of(name)))) << name;
    EXPECT_TRUE(of_a1111.contains(std::string(a1111_names().of(name)))) << a1111_names().of(name);
    if (!field.everywhere && field.openai.empty()) continue;
    EXPECT_TRUE(of_openai.contains(std::string(openai_image_names().of(name)))) << name;
  }
  for (const char* name : {"init_image", "mask_image", "hires"}) {
    EXPECT_TRUE(of_a1111.contains(std::string(a1111_names().of(name)))) << name;
  }
}

// The name that the client wrote, of several.
TEST(ImageFields, MessagesHaveTheNameThatWasGiven) {
  const auto op_of = [](const ImageBody& body, const std::string& name) {
    return body.names.renamed(Error(Code::invalid_argument, name, "it is wrong")).op();
  };
  for_each_default([&]<typename T>(const ImageField& field, const T&) {
    if (!field.prefix().empty()) return;
    json value = true;
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::string>) {
      value = field.choices.empty() ? "x" : field.choices.front();
    } else if constexpr (!std::is_same_v<T, bool>) {
      value = std::max(field.low, 0.0);
    }
    std::vector<std::string_view> names = {field.name, field.repeated};
    names.insert(names.end(), field.aliases.begin(), field.aliases.end());
    for (const std::string_view name : names) {
      if (name.empty()) continue;
      json body = {{"operation", "image_generation"}, {"prompt", "x"}};
      if (name == "seed_resize_from_w") body["seed_resize_from_h"] = 8;
      if (name == "seed_resize_from_h") body["seed_resize_from_w"] = 8;
      body[std::string(name)] = value;
      const std::string own(field.name);
      EXPECT_EQ(op_of(parse_image_job(body.dump()).image, own), name);
      if (!field.everywhere) continue;
      EXPECT_EQ(op_of(parse_openai_generation(body.dump()), own), name);
      EXPECT_EQ(op_of(parse_sdapi(body.dump(), false), own), name);
    }
  });
  const ImageBody options =
      parse_sdapi(R"({"override_settings":{"k_sched_type":"x","jpeg_quality":9}})", false);
  EXPECT_EQ(op_of(options, "schedule"), "override_settings.k_sched_type");
  EXPECT_EQ(op_of(options, "output_compression"), "override_settings.jpeg_quality");
}

TEST(ImageFields, MessagesNameTheirPicturesAsTheApiDoes) {
  EXPECT_EQ(a1111_names().renamed("mask_image: it needs init_image and mask_image"),
            "mask: it needs init_images and mask");
  EXPECT_EQ(openai_image_names().renamed("sampler: \"init_image\" is none of init_image, a"),
            "sampler: \"init_image\" is none of image, a");
  EXPECT_EQ(a1111_names().renamed("schedule"), "schedule");
  const Error error = a1111_names().renamed(Error(Code::unsupported, "init_image", "a: b"));
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_EQ(error.what(), std::string("init_images: a: b"));
}

// Bounds of the page's inputs, and what it shows for a field that is left empty.
TEST(ImageFields, ThePageHasTheirBounds) {
  using R = engine::ImageRequest;
  const std::pair<const char*, ImageField::Member> inputs[] = {
      {"width", &R::width},
      {"height", &R::height},
      {"steps", &R::steps},
      {"scale", &R::guidance_scale},
      {"count", &R::count},
      {"strength", &R::strength},
      {"blur", &R::mask_blur},
      {"padding", &R::mask_padding},
      {"larger", &engine::HiresFix::scale},
      {"loraStrength", &engine::LoraUse::strength},
  };
  for (const auto& [id, member] : inputs) {
    SCOPED_TRACE(id);
    const ImageField& field = engine::image_field(member);
    const size_t at = kImagePage.find(cat("<input id=\"", id, '"'));
    ASSERT_NE(at, std::string_view::npos);
    const std::string_view input = kImagePage.substr(at, kImagePage.find('>', at) - at);
    const auto is = [&](const char* name, double value) {
      return input.find(cat(name, "=\"", number(value).dump(), '"')) != std::string_view::npos;
    };
    EXPECT_TRUE(is("min", field.low));
    EXPECT_TRUE(is("max", field.high));
    if (field.multiple > 1) {
      EXPECT_TRUE(is("step", field.multiple));
    }
    if (member == ImageField::Member(&R::mask_padding)) {
      EXPECT_TRUE(is("placeholder", R().mask_padding));
    }
  }
}

}  // namespace
}  // namespace rbee::server

// How other programs describe the making of their pictures.
#include "rbee/engine/infotext/infotext.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rbee/engine/api/image_parameters.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/jpeg.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/webp.h"

namespace rbee::engine {
namespace {

using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string png(const std::vector<io::PngText>& texts) {
  const io::Pixels pixel{.width = 1, .height = 1, .channels = 3, .values = {1, 2, 3}};
  return io::encode_png(pixel, texts);
}

// The request in the text; the reader must use every field of it.
ImageRequest request_of(const std::string& file) {
  const auto text = read_infotext(file);
  EXPECT_TRUE(text.has_value());
  std::vector<std::string> unused;
  ImageRequest out = parse_parameters(text.value_or(""), &unused);
  EXPECT_THAT(unused, IsEmpty());
  return out;
}

// A sampler of two passes; prompts come through a ControlNet and a node that holds a text.
constexpr const char* kGraph = R"json({
"20":{"class_type":"KSampler","inputs":{"seed":1,"steps":9,"cfg":1.5,"sampler_name":"ddim",
  "scheduler":"simple",
  "denoise":0.4,"model":["12",0],"positive":["6",0],"negative":["7",0],"latent_image":["21",0]}},
"21":{"class_type":"LatentUpscale","inputs":{"samples":["3",0],"width":1024,"height":1024}},
"3":{"class_type":"KSampler","inputs":{"seed":["30",0],"steps":23,"cfg":6.5,
  "sampler_name":"euler_ancestral",
  "scheduler":"karras","denoise":1.0,"model":["12",0],"positive":["10",0],"negative":["10",1],
  "latent_image":["5",0]}},
"30":{"class_type":"PrimitiveInt","inputs":{"value":18446744073709551615}},
"10":{"class_type":"ControlNetApplyAdvanced","inputs":{"positive":["6",0],"negative":["7",0],
  "strength":1}},
"6":{"class_type":"CLIPTextEncode","inputs":{"text":["40",0],"clip":["4",1]}},
"40":{"class_type":"PrimitiveString","inputs":{"value":"a fox, (red:1.2)"
}
}
, "7" : {"class_type" : "CLIPTextEncode", "inputs" : {"text" : "blurry", "clip" : [ "4", 1 ]}},
        "5" : {
          "class_type" : "EmptyLatentImage",
          "inputs" : {"width" : 640, "height" : 512, "batch_size" : 1}
        },
              "12"
    : {
      "class_type" : "LoraLoader",
      "inputs" :
          {"lora_name" : "sub\\ink.safetensors", "strength_model" : 0.75, "model" : [ "4", 0 ]}
    },
      "4" : {
  "class_type" : "CheckpointLoaderSimple", "inputs" : {"ckpt_name" : "v1.safetensors"}
}
})json";

TEST(Infotext, ComfyUi) {
  const ImageRequest request = request_of(png({{"prompt", kGraph}, {"workflow", "{}"}}));
  EXPECT_EQ(request.prompt, "a fox, (red:1.2) <lora:ink:0.75>");
  EXPECT_EQ(request.steps, 23);
  EXPECT_EQ(request.sampler, "euler_ancestral");
  EXPECT_EQ(request.schedule, "karras");
  EXPECT_EQ(request.guidance_scale, 6.5f);
  EXPECT_EQ(request.seed, 18446744073709551615u);
  EXPECT_EQ(request.width, 640);
  EXPECT_EQ(request.height, 512);
  EXPECT_EQ(request.noise_source, NoiseSource::torch);
  EXPECT_EQ(request.prompt_rule, PromptRule::comfy);
}

TEST(Infotext, ComfyUiWithNodesForEachPart) {
  const ImageRequest request = request_of(png({{"prompt", R"({
"1":{"class_type":"SamplerCustomAdvanced","inputs":{"noise":["2",0],"guider":["3",0],
  "sampler":["4",0],
  "sigmas":["5",0],"latent_image":["6",0]}},
"2":{"class_type":"RandomNoise","inputs":{"noise_seed":42}},
"3":{"class_type":"BasicGuider","inputs":{"model":["9",0],"conditioning":["7",0]}},
"4":{"class_type":"KSamplerSelect","inputs":{"sampler_name":"euler"}},
"5":{"class_type":"BasicScheduler","inputs":{"scheduler":"simple","steps":4,"denoise":1,
  "model":["9",0]}},
"6":{"class_type":"EmptySD3LatentImage","inputs":{"width":1024,"height":768}},
"7":{"class_type":"FluxGuidance","inputs":{"guidance":3.5,"conditioning":["8",0]}},
"8":{"class_type":"CLIPTextEncodeFlux","inputs":{"clip_l":"short","t5xxl":"a long text"}},
"9":{"class_type":"UNETLoader","inputs":{"unet_name":"flux.safetensors"}}})"}}));
  EXPECT_EQ(request.prompt, "a long text");
  EXPECT_EQ(request.steps, 4);
  EXPECT_EQ(request.guidance_scale, 3.5f);
  EXPECT_EQ(request.seed, 42u);
  EXPECT_EQ(request.width, 1024);
  EXPECT_EQ(request.height, 768);
}

TEST(Infotext, Emphasis) {
  for (const auto& [word, emphasis] :
       {std::pair{"Original", Emphasis::original}, std::pair{"No norm", Emphasis::no_norm},
        std::pair{"Ignore", Emphasis::ignore}}) {
    const ImageRequest request =
        request_of(png({{"parameters", cat("a (fox:1.2)\nSteps: 4, Emphasis: ", word)}}));
    EXPECT_EQ(request.emphasis, emphasis) << word;
    EXPECT_EQ(request.prompt_rule, PromptRule::a1111) << word;
  }
}

// A page of a very large workflow, whose sampler is the last of its nodes.
TEST(Infotext, ComfyUiWithManyNodes) {
  std::string graph = "{";
  for (int i = 0; i < 30'000; ++i) graph += cat("\"", i, R"(":{"inputs":{"a":[1]}},)");
  graph += cat(std::string_view(kGraph).substr(std::string_view(kGraph).find('{') + 1));
  EXPECT_EQ(request_of(png({{"prompt", graph}})).steps, 23);
}

// What is told of nodes in a circle is told once, so that a file of one MiB cannot become many.
TEST(Infotext, ComfyUiWithLorasInACircle) {
  const std::string name(100'000, 'x');
  const auto text = read_infotext(png({{"prompt", cat(R"({
"1":{"inputs":{"model":["2",0],"steps":3,"latent_image":["2",0],"positive":["2",0]}},
"2":{"inputs":{"model":["3",0],"lora_name":")",
                                                      name, R"("}},
"3":{"inputs":{"model":["2",0],"lora_name":"b"}}})")}}));
  EXPECT_EQ(text, cat(" <lora:", name, ":1> <lora:b:1>\nSteps: 3, RNG: CPU, Emphasis: Comfy"));
}

// Each step looks the node up by its name.
TEST(Infotext, ComfyUiWithANameThatIsTooLong) {
  for (const size_t length : {256, 257}) {
    const std::string name(length, 'n');
    const auto text = read_infotext(
        png({{"prompt", cat(R"({
"1":{"inputs":{"model":["4",0],"steps":3,"latent_image":["4",0],"positive":[")",
                            name, R"(",0]}},")", name, R"(":{"inputs":{"text":"fox"}}})")}}));
    EXPECT_THAT(text.value_or(""), StartsWith(length == 256 ? "fox\nSteps: 3" : "Steps: 3"));
  }
}

// Its nodes that always run have a number that JSON does not allow.
TEST(Infotext, ComfyUiWithNumbersOfPython) {
  const ImageRequest request = request_of(png({{"prompt", R"({
"3":{"class_type":"KSampler","inputs":{"seed":5,"steps":9,"cfg":6.5,"sampler_name":"euler",
  "scheduler":"normal","denoise":1.0,"model":["4",0],"positive":["6",0],"negative":["6",0],
  "latent_image":["4",0]},"is_changed":[NaN,-Infinity,Infinity]},
"6":{"class_type":"CLIPTextEncode","inputs":{"text":"a \"NaN\" \\"}}})"}}));
  EXPECT_EQ(request.prompt, "a \"NaN\" \\");
  EXPECT_EQ(request.steps, 9);
}

// A block with one text.
std::string exif_with(size_t tag, const std::string& text) {
  const auto number = [](size_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
    return out;
  };
  return std::string("II\x2a\0", 4) + number(8, 4) + number(1, 2) + number(tag, 2) + number(2, 2) +
         number(text.size(), 4) + number(26, 4) + number(0, 4) + text;
}

// Its own node for WebP files writes the graph where cameras write their model.
TEST(Infotext, ComfyUiInWebp) {
  const std::string graph = cat("prompt:", kGraph, std::string(1, '\0'));
  const io::Pixels pixel{.width = 1, .height = 1, .channels = 3, .values = {1, 2, 3}};
  const ImageRequest request = request_of(io::encode_webp(pixel, 90, exif_with(0x0110, graph)));
  EXPECT_EQ(request.prompt, "a fox, (red:1.2) <lora:ink:0.75>");
  EXPECT_EQ(request.steps, 23);
}

TEST(Infotext, OfForgeHasTheGuidanceThatAModelWasTrainedWith) {
  const ImageRequest request = parse_parameters(
      "a fox\nSteps: 20, Sampler: Euler, Schedule type: Simple, CFG scale: 1, Distilled CFG Scale: "
      "3.5, "
      "Seed: 1, Size: 896x1152, Version: f2.0.1");
  EXPECT_EQ(request.guidance_scale, 3.5f);
}

TEST(Infotext, InvokeAi) {
  const ImageRequest request = request_of(png({{"invokeai_metadata", R"({
"positive_prompt":"a cat","negative_prompt":"dog","width":576,"height":704,"seed":7,
  "cfg_scale":5.5,"steps":31,
"scheduler":"dpmpp_2m_k","cfg_rescale_multiplier":0.25,"rand_device":"cpu","model":{"name":"m, 1"},
"loras":[{"model":{"name":"ink"},"weight":0.5},{"lora":{"model_name":"old"},"weight":1}]})"}}));
  EXPECT_EQ(request.prompt, "a cat <lora:ink:0.5> <lora:old:1>");
  EXPECT_EQ(request.negative_prompt, "dog");
  EXPECT_EQ(request.steps, 31);
  EXPECT_EQ(request.width, 576);
  EXPECT_EQ(request.height, 704);
  EXPECT_EQ(request.guidance_scale, 5.5f);
  EXPECT_EQ(request.guidance_rescale, 0.25f);
  EXPECT_EQ(request.sampler, "dpmpp_2m_k");
  const ImageRequest old = request_of(png({{"sd-metadata", R"({"model_weights":"sd","image":{
"prompt":[{"prompt":"a cat [dog]","weight":1}],"steps":12,"cfg_scale":7,"sampler":"k_lms","seed":3,
"width":512,"height":512}})"}}));
  EXPECT_EQ(old.prompt, "a cat");
  EXPECT_EQ(old.negative_prompt, "dog");
  EXPECT_EQ(old.steps, 12);
  EXPECT_EQ(old.seed, 3u);
}

// Options of its first versions' command line.
TEST(Infotext, InvokeAiDreams) {
  for (const char* options : {"-s50 -S123 -W512 -H640 -C7.5 -A k_lms -f0.4",
                              "-s 50 -S 123 -W 512 -H 640 -C 7.5 -A k_lms -f 0.4"}) {
    const ImageRequest request =
        request_of(png({{"Dream", cat("\"a fox - red [dog]\" ", options)}}));
    EXPECT_EQ(request.prompt, "a fox - red");
    EXPECT_EQ(request.negative_prompt, "dog");
    EXPECT_EQ(request.steps, 50);
    EXPECT_EQ(request.seed, 123u);
    EXPECT_EQ(request.width, 512);
    EXPECT_EQ(request.height, 640);
    EXPECT_EQ(request.guidance_scale, 7.5f);
    EXPECT_EQ(request.sampler, "k_lms");
    EXPECT_EQ(request.strength, 0.4f);
  }
  EXPECT_EQ(request_of(png({{"Dream", "a fox -s 7 -U 2 0.75 -t -S -1"}})).steps, 7);
  EXPECT_EQ(request_of(png({{"Dream", "\"a fox\""}})).prompt, "a fox");
  for (const char* odd : {"", "\"", "\" -", " -s", "-s5", "\"a\" -s\xff,\" -A \xff,"}) {
    static_cast<void>(read_infotext(png({{"Dream", odd}})));
  }
}

TEST(Infotext, NovelAi) {
  const ImageRequest request = request_of(png(
      {{"Software", "NovelAI"},
       {"Description", "a tree"},
       {"Comment", R"({"steps":28,"sampler":"k_euler_ancestral","seed":99,"scale":11,"uc":"lowres",
"width":832,"height":1216,"noise_schedule":"native","cfg_rescale":0})"}}));
  EXPECT_EQ(request.prompt, "a tree");
  EXPECT_EQ(request.negative_prompt, "lowres");
  EXPECT_EQ(request.steps, 28);
  EXPECT_EQ(request.width, 832);
  EXPECT_EQ(request.seed, 99u);
}

// Version 4 keeps the characters' texts beside the prompt.
constexpr const char* kNovelAi4 = R"json({"prompt":"two girls","uc":"blurry","steps":28,"seed":99,
"v4_prompt":{"caption":{"base_caption":"two girls","char_captions":[
  {"char_caption":"red hair","centers":[{"x":0.5,"y":0.5}]},{"char_caption":""},
  {"char_caption":"a hat"}]},"use_coords":false},
"v4_negative_prompt":{"caption":{"base_caption":"blurry","char_captions":[
  {"char_caption":"bow"}]}}})json";

void expect_novelai4(const ImageRequest& request) {
  EXPECT_EQ(request.prompt, "two girls\nred hair\na hat");
  EXPECT_EQ(request.negative_prompt, "blurry\nbow");
  EXPECT_EQ(request.steps, 28);
}

TEST(Infotext, NovelAiWithCharacters) {
  expect_novelai4(request_of(png({{"Software", "NovelAI"}, {"Comment", kNovelAi4}})));
}

// The text in the lowest bits of a picture, down its columns.
io::Pixels with_hidden(const std::string& mark, const std::string& text, bool opacity) {
  std::string bytes = mark;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(text.size() * 8 >> shift & 0xff);
  }
  bytes += text;
  constexpr size_t kHeight = 24;
  const size_t of_pixel = opacity ? 1 : 3, channels = opacity ? 4 : 3;
  const size_t width = bytes.size() * 8 / (kHeight * of_pixel) + 1;
  io::Pixels out{.width = static_cast<int32_t>(width),
                 .height = kHeight,
                 .channels = static_cast<int32_t>(channels),
                 .values = std::vector<uint8_t>(width * kHeight * channels, 200)};
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    const size_t pixel = i / of_pixel, x = pixel / kHeight, y = pixel % kHeight;
    const size_t channel = opacity ? 3 : i % 3;
    const int bit = static_cast<uint8_t>(bytes[i / 8]) >> (7 - i % 8) & 1;
    out.values[(y * width + x) * channels + channel] = static_cast<uint8_t>(254 + bit);
  }
  return out;
}

// Compressed by Python's gzip: "a fox", and its settings in a second line.
std::string zipped() {
  const std::string hex =
      "1f8b08000000000002034b5448cbafe00a2e492d28b6523032d451084e4d4db15230013232ab52ad"
      "14cc4c2acc4c00ca876e6e25000000";
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

TEST(Infotext, HiddenInPixels) {
  const std::string plain = "a fox\nSteps: 21, Seed: 4, Size: 64x64";
  const auto read = [](const std::string& mark, const std::string& text, bool opacity) {
    return read_infotext(io::encode_png(with_hidden(mark, text, opacity)));
  };
  EXPECT_EQ(read("stealth_pnginfo", plain, true), plain);
  EXPECT_EQ(read("stealth_rgbinfo", plain, false), plain);
  EXPECT_EQ(read("stealth_pngcomp", zipped(), true), plain);
  EXPECT_EQ(read("stealth_rgbcomp", zipped(), false), plain);
  EXPECT_EQ(read("stealth_pnginfo", "h\xc3\xa9\xffllo", true), "h\xc3\xa9llo");
  const std::string own = nlohmann::json({{"Software", "NovelAI"}, {"Comment", kNovelAi4}}).dump();
  expect_novelai4(request_of(io::encode_png(with_hidden("stealth_pnginfo", own, true))));
  // Marks of another channel, and incomplete texts.
  EXPECT_EQ(read("stealth_pnginfo", plain, false), std::nullopt);
  EXPECT_EQ(read("stealth_pngcomp", plain, true), std::nullopt);
  EXPECT_EQ(read("stealth_pngcomp", zipped().substr(0, 40), true), std::nullopt);
  io::Pixels cut = with_hidden("stealth_pnginfo", plain, true);
  cut.width /= 2;
  cut.values.resize(static_cast<size_t>(cut.width * cut.height) * 4);
  EXPECT_EQ(read_infotext(io::encode_png(cut)), std::nullopt);
}

// A camera's description counts if there is no comment.
TEST(Infotext, DescriptionsOfExif) {
  const io::Pixels pixel{.width = 1, .height = 1, .channels = 3, .values = {1, 2, 3}};
  const std::string plain = "a fox\nSteps: 21, Seed: 4";
  EXPECT_EQ(read_infotext(io::encode_webp(pixel, 90, exif_with(0x010e, plain))), plain);
  EXPECT_EQ(read_infotext(io::encode_jpeg(pixel, 90, exif_with(0x010e, plain))), plain);
  const std::string graph = cat("Prompt:", kGraph);
  EXPECT_EQ(request_of(io::encode_webp(pixel, 90, exif_with(0x010f, graph))).steps, 23);
}

TEST(Infotext, Fooocus) {
  constexpr const char* kJson =
      R"json({"prompt":"a lake","negative_prompt":"","resolution":"(1152, 896)",
"guidance_scale":4.0,"sampler":"dpmpp_2m_sde_gpu","scheduler":"karras","seed":"123","steps":30,
"base_model":"jugger.safetensors","lora_combined_1":"offset.safetensors : 0.1",
  "version":"Fooocus v2.5"})json";
  const io::Pixels pixel{.width = 1, .height = 1, .channels = 3, .values = {1, 2, 3}};
  for (const io::ImageFormat format : {io::ImageFormat::png, io::ImageFormat::jpeg}) {
    const ImageRequest request = request_of(io::encode_image(pixel, {.format = format}, kJson));
    EXPECT_EQ(request.prompt, "a lake <lora:offset:0.1>");
    EXPECT_EQ(request.width, 1152);
    EXPECT_EQ(request.height, 896);
    EXPECT_EQ(request.steps, 30);
    EXPECT_EQ(request.seed, 123u);
    EXPECT_EQ(request.schedule, "karras");
  }
}

TEST(Infotext, SwarmUi) {
  constexpr const char* kJson =
      R"json({"sui_image_params":{"prompt":"a lake","negativeprompt":"fog",
"model":"OfficialStableDiffusion/sd_xl_base_1.0","seed":123,"steps":20,"cfgscale":6.5,
"aspectratio":"1:1","width":1024,"height":768,"sampler":"euler","scheduler":"karras",
"loras":["ink","oil",7],"loraweights":["0.5"],"swarm_version":"0.9.5"},"sui_extra_data":{}})json";
  const io::Pixels pixel{.width = 1, .height = 1, .channels = 3, .values = {1, 2, 3}};
  for (const io::ImageFormat format : {io::ImageFormat::png, io::ImageFormat::jpeg}) {
    const ImageRequest request = request_of(io::encode_image(pixel, {.format = format}, kJson));
    EXPECT_EQ(request.prompt, "a lake <lora:ink:0.5> <lora:oil:1>");
    EXPECT_EQ(request.negative_prompt, "fog");
    EXPECT_EQ(request.steps, 20);
    EXPECT_EQ(request.width, 1024);
    EXPECT_EQ(request.height, 768);
    EXPECT_EQ(request.guidance_scale, 6.5f);
    EXPECT_EQ(request.sampler, "euler");
    EXPECT_EQ(request.schedule, "karras");
    EXPECT_EQ(request.prompt_rule, PromptRule::comfy);
  }
}

TEST(Infotext, DrawThings) {
  const auto with = [](const std::string& comment) {
    return png({{"XML:com.adobe.xmp",
                 cat(R"(<x:xmpmeta><rdf:Description><exif:UserComment><rdf:Alt>)",
                     R"(<rdf:li xml:lang="x-default">)", comment,
                     "</rdf:li></rdf:Alt></exif:UserComment></rdf:Description></x:xmpmeta>")}});
  };
  const ImageRequest request = request_of(with(
      R"({&quot;c&quot;:"a &lt;fox&gt; &amp;lt; b","uc":"dog","sampler":"Euler A","scale":7.5,)"
      R"("seed":9,"size":"512x768","steps":12,"model":"m.ckpt",)"
      R"("lora":[{"model":"ink_lora_f16.ckpt","weight":0.6}]})"));
  EXPECT_EQ(request.prompt, "a <fox> &lt; b <lora:ink_lora_f16:0.6>");
  EXPECT_EQ(request.negative_prompt, "dog");
  EXPECT_EQ(request.sampler, "Euler A");
  EXPECT_EQ(request.guidance_scale, 7.5f);
  EXPECT_EQ(request.seed, 9u);
  EXPECT_EQ(request.height, 768);
  EXPECT_EQ(request.steps, 12);
  EXPECT_EQ(read_infotext(with("a note")), std::nullopt);
  EXPECT_EQ(read_infotext(png({{"XML:com.adobe.xmp", "<exif:UserComment><rdf:li"}})), std::nullopt);
}

TEST(Infotext, EasyDiffusion) {
  const ImageRequest request = request_of(png({{"prompt", "a fox"},
                                               {"negative_prompt", "dog"},
                                               {"seed", "42"},
                                               {"num_inference_steps", "25"},
                                               {"guidance_scale", "7.5"},
                                               {"sampler_name", "euler_a"},
                                               {"width", "512"},
                                               {"height", "640"},
                                               {"use_stable_diffusion_model", "sd-v1-5"}}));
  EXPECT_EQ(request.prompt, "a fox");
  EXPECT_EQ(request.negative_prompt, "dog");
  EXPECT_EQ(request.seed, 42u);
  EXPECT_EQ(request.steps, 25);
  EXPECT_EQ(request.guidance_scale, 7.5f);
  EXPECT_EQ(request.sampler, "euler_a");
  EXPECT_EQ(request.height, 640);
}

TEST(Infotext, WhatIsNoneStaysAsItIsOrSaysNothing) {
  EXPECT_EQ(read_infotext(png({{"parameters", "a\nSteps: 20"}})), "a\nSteps: 20");
  EXPECT_EQ(read_infotext(png({{"parameters", "{a|b} fox"}})), "{a|b} fox");
  EXPECT_EQ(read_infotext(png({{"parameters", R"({"x":1})"}})), R"({"x":1})");
  EXPECT_EQ(read_infotext(png({})), std::nullopt);
  EXPECT_EQ(read_infotext("GIF89a"), std::nullopt);
  for (const char* graph :
       {"{", "[]", "{}", R"({"1":5})", R"({"1":{"inputs":{"model":["1",0],"steps":1,
"latent_image":["1",0],"positive":["1",0]}}})"}) {
    static_cast<void>(read_infotext(png({{"prompt", graph}})));
  }
  // Without any setting there is none of the program's own, which would be read as a prompt.
  EXPECT_EQ(read_infotext(png({{"invokeai_metadata", R"({"steps":"a","loras":[5]})"}})), "");
  EXPECT_EQ(read_infotext(png({{"Software", "NovelAI"}, {"Comment", R"({"prompt":"a"})"}})), "a");
  // Nodes in a circle.
  const auto circle = read_infotext(png({{"prompt", R"({
"1":{"inputs":{"model":["2",0],"steps":3,"latent_image":["2",0],"positive":["2",0]}},
"2":{"inputs":{"model":["2",0],"samples":["2",0],"conditioning":["2",0]}}})"}}));
  EXPECT_THAT(circle.value_or(""), StartsWith("Steps: 3"));
}

}  // namespace
}  // namespace rbee::engine

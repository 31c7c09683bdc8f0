// Chats with pictures: a tiny Gemma 3 with a tower (tests/models/vision/data).

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "rbee/engine/text/prompt/picture_cache.h"
#include "rbee/engine/text/prompt/request_pictures.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/resize.h"
#include "tests/support/data_folder.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

constexpr int64_t kContext = 128;
constexpr int32_t kRows = 16;  // tokens of a picture

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(test::data_folder()) / "models/vision/data" / name;
}

TextModel seeing_model() {
  return load_text_model(data("hf"), {.device = &cpu(), .context = kContext});
}

io::Pixels noise(int32_t width, int32_t height, uint32_t seed, int32_t channels = 3) {
  io::Pixels out{.width = width, .height = height, .channels = channels, .values = {}};
  uint32_t state = seed;
  for (int64_t i = 0; i < int64_t{width} * height * channels; ++i) {
    state = state * 1664525 + 1013904223;
    out.values.push_back(static_cast<uint8_t>(state >> 24));
  }
  return out;
}

ChatPicture picture(size_t at, uint32_t seed) {
  return {.at = at,
          .file = std::make_shared<const PictureFile>(io::encode_png(noise(40, 25, seed))),
          .field = "messages[0].content[0]"};
}

// "What? ", then pictures of these seeds, then " And?".
TextRequest asking(const std::vector<uint32_t>& seeds, int32_t max_tokens = 12) {
  TextRequest request = greedy("", max_tokens);
  ChatMessage message{.role = "user", .content = "What? And?"};
  for (const uint32_t seed : seeds) message.pictures.push_back(picture(5, seed));
  request.messages.push_back(std::move(message));
  return request;
}

template <typename Body>
void expect_error(Code code, std::string_view part, Body body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown, wanted " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
  }
}

// As Hugging Face's processor and a byte tokenizer make it.
TEST(Pictures, TokensOfAPrompt) {
  const TextModel model = seeing_model();
  const TextRequest request = asking({1});
  const TextModel::Encoded found = model.encode(request, model.prompt_of(request));
  const auto bytes = [](std::string_view text) {
    std::vector<int32_t> out;
    const auto tokenizer = load_tokenizer(io::Checkpoint::open(data("hf")));
    for (const char letter : text) {
      const auto one = tokenizer->encode(std::string_view(&letter, 1), {.add_special = false});
      out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  };
  constexpr int32_t kBos = 2, kTurn = 4, kTurnEnd = 5, kBegin = 6, kEnd = 7, kSoft = 8;
  std::vector<int32_t> wanted{kBos, kTurn};
  const auto append = [&](const std::vector<int32_t>& ids) {
    wanted.insert(wanted.end(), ids.begin(), ids.end());
  };
  append(bytes("user\nWhat?\n\n"));
  wanted.push_back(kBegin);
  const auto first = std::ssize(wanted);
  wanted.insert(wanted.end(), kRows, kSoft);
  wanted.push_back(kEnd);
  append(bytes("\n\nAnd?"));
  wanted.push_back(kTurnEnd);
  append(bytes("\n"));
  wanted.push_back(kTurn);
  append(bytes("model\n"));
  EXPECT_EQ(found.tokens, wanted);
  EXPECT_EQ(found.pictures, std::vector<int64_t>{first});
}

// A template in Go's form has Ollama's tags in their places.
TEST(Pictures, TagsOfATemplateInGosForm) {
  const auto seeing = [](const char* source) {
    return load_text_model(data("hf"),
                           {.device = &cpu(), .context = kContext, .chat_template = source});
  };
  const TextModel turns =
      seeing("{{ .System }}<start_of_turn>user\n{{ .Prompt }}<end_of_turn>\n{{ .Response }}");
  TextRequest request = asking({1});
  request.messages[0].pictures[0].at = 0;
  EXPECT_EQ(turns.prompt_of(request),
            "<start_of_turn>user\n<start_of_image>What? And?<end_of_turn>\n");
  const TextModel own = seeing_model();
  const TextModel::Encoded found = turns.encode(request, turns.prompt_of(request));
  ASSERT_EQ(found.pictures.size(), 1U);
  EXPECT_EQ(found.tokens[static_cast<size_t>(found.pictures[0])], own.picture_token);
  // "[img]" in a text is the place of the next picture; "[img-0]" in one is a text.
  const TextModel list = seeing("{{ range .Messages }}{{ len .Images }}:{{ .Content }};{{ end }}");
  request.messages[0].content = "a[img]b [img-0]";
  request.messages.push_back({.role = "assistant", .content = "[img-1]"});
  request.messages.push_back(request.messages[0]);
  request.messages[2].content = "cd";
  request.messages[2].pictures = {picture(0, 2), picture(1, 3)};
  const std::string mark = "\xEF\xB7\x90";
  const std::string prompt = list.prompt_of(request);
  EXPECT_EQ(prompt, "1:a<start_of_image>b [" + mark + "img-0];0:[" + mark +
                        "img-1];2:<start_of_image>c<start_of_image>d;");
  EXPECT_EQ(list.encode(request, prompt).pictures.size(), 3U);
  const TextModel without = seeing("{{ range .Messages }}{{ .Role }}{{ end }}");
  expect_error(Code::invalid_argument, "0 places for 3 pictures",
               [&] { (void)without.encode(request, without.prompt_of(request)); });
}

TEST(Pictures, ResizedAsTheProcessorDoes) {
  std::ifstream file(data("resized.json"));
  for (const auto& item : nlohmann::json::parse(file)) {
    const io::Pixels from{.width = item["width"],
                          .height = item["height"],
                          .channels = 3,
                          .values = item["pixels"].get<std::vector<uint8_t>>()};
    const io::Pixels to = io::resized(from, 32, 32, io::Resampler::bilinear);
    const auto wanted = item["resized"].get<std::vector<uint8_t>>();
    ASSERT_EQ(to.values.size(), wanted.size());
    // Newer versions of Pillow resize columns first for some tall pictures, which changes the
    // rounding.
    const int most = from.height > from.width ? 1 : 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(to.values[i], wanted[i], most) << from.width << " " << i;
    }
  }
}

io::Pixels pixels_of(const nlohmann::json& item) {
  return {.width = item["width"],
          .height = item["height"],
          .channels = 3,
          .values = item["pixels"].get<std::vector<uint8_t>>()};
}

PanAndScan settings_of(const nlohmann::json& item) {
  return {.on = true,
          .min_crop = item["min_crop"],
          .max_crops = item["max_crops"],
          .min_ratio = item["min_ratio"]};
}

nlohmann::json pan_and_scan_golden() {
  std::ifstream file(data("pan_and_scan.json"));
  return nlohmann::json::parse(file);
}

TEST(PanAndScan, PartsAreThoseOfTheProcessor) {
  const nlohmann::json golden = pan_and_scan_golden();
  for (const auto& item : golden["sizes"]) {
    const io::Pixels picture{.width = item["width"],
                             .height = item["height"],
                             .channels = 3,
                             .values = std::vector<uint8_t>(item["width"].get<size_t>() *
                                                            item["height"].get<size_t>() * 3)};
    std::vector<std::vector<int32_t>> sizes;
    for (const io::Pixels& part : parts_of(picture, settings_of(item))) {
      sizes.push_back({part.width, part.height});
      EXPECT_EQ(std::ssize(part.values), int64_t{part.width} * part.height * 3);
    }
    EXPECT_EQ(nlohmann::json(sizes), item["parts"]) << item.dump();
    EXPECT_TRUE(parts_of(picture, {}).empty());
  }
}

TEST(PanAndScan, SquaresAreThoseOfTheProcessor) {
  const nlohmann::json golden = pan_and_scan_golden();
  for (const auto& item : golden["pictures"]) {
    TextRequest request = asking({1});
    request.messages[0].pictures[0].file =
        std::make_shared<const PictureFile>(io::encode_png(pixels_of(item)));
    const auto found = read_pictures(request, 32, 1, settings_of(item));
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].size(), item["squares"].size());
    for (size_t i = 0; i < found[0].size(); ++i) {
      const auto wanted = item["squares"][i].get<std::vector<uint8_t>>();
      ASSERT_EQ(found[0][i]->values.size(), wanted.size());
      // Columns or rows first: see ResizedAsTheProcessorDoes.
      for (size_t k = 0; k < wanted.size(); ++k) {
        ASSERT_NEAR(found[0][i]->values[k], wanted[k], 1) << i << " " << k;
      }
    }
  }
}

TEST(PanAndScan, ThePromptSaysWhichPartsFollow) {
  TextModel model = seeing_model();
  const auto golden = pan_and_scan_golden();
  const auto& item = golden["pictures"][0];
  TextRequest request = asking({1});
  request.messages[0].pictures[0].file =
      std::make_shared<const PictureFile>(io::encode_png(pixels_of(item)));
  const auto squares = read_pictures(request, 32, 1, settings_of(item));
  const TextModel::Encoded found = model.encode(request, model.prompt_of(request), squares);
  const std::string text = golden["text"];
  const auto wanted = model.tokenizer->encode(
      cat("<bos><start_of_turn>user\nWhat?", text, "And?<end_of_turn>\n<start_of_turn>model\n"),
      {.add_special = false});
  EXPECT_EQ(found.tokens, wanted);
  ASSERT_EQ(found.pictures.size(), squares[0].size());
  for (const int64_t first : found.pictures) {
    for (int64_t i = 0; i < kRows; ++i) {
      EXPECT_EQ(found.tokens[static_cast<size_t>(first + i)], model.picture_token);
    }
  }
}

// The model sees the parts: the prompt's tokens count them, and the tower encodes each.
TEST(PanAndScan, AnEngineLooksAtAllParts) {
  const nlohmann::json item = pan_and_scan_golden()["pictures"][0];
  const auto prompt_tokens = [&](bool on) {
    TextModel model = load_text_model(data("hf"), {.device = &cpu(), .context = 512});
    model.pan_and_scan = settings_of(item);
    model.pan_and_scan.on = on;
    const auto engine = make_llm_engine(std::move(model), {});
    TextRequest request = asking({1}, 2);
    request.messages[0].pictures[0].file =
        std::make_shared<const PictureFile>(io::encode_png(pixels_of(item)));
    const auto messages = request.messages;
    const auto sink = submit(*engine, request);
    sink->wait();
    EXPECT_FALSE(sink->failed.has_value());
    EXPECT_EQ(engine->stats().pictures, on ? item["squares"].size() : 1u);
    return engine->chat_tokens(messages, {}).size();
  };
  EXPECT_GT(prompt_tokens(true), prompt_tokens(false) + 2 * kRows);
}

TEST(PanAndScan, SettingsAreReadAndChecked) {
  std::string pattern = (std::filesystem::temp_directory_path() / "rbee-pan-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    std::filesystem::copy(data("hf") / name, folder);
  }
  const auto settings = [&](const char* file, const char* text) {
    std::filesystem::remove(folder / "processor_config.json");
    std::filesystem::remove(folder / "preprocessor_config.json");
    std::ofstream(folder / file) << text;
    return read_pan_and_scan(io::Checkpoint::open(folder));
  };
  EXPECT_FALSE(settings("preprocessor_config.json", R"({"do_pan_and_scan":null})").on);
  const PanAndScan old = settings(
      "preprocessor_config.json",
      R"({"do_pan_and_scan":true,"pan_and_scan_min_crop_size":128,"pan_and_scan_max_num_crops":3})");
  EXPECT_TRUE(old.on);
  EXPECT_EQ(old.min_crop, 128);
  EXPECT_EQ(old.max_crops, 3);
  EXPECT_EQ(old.min_ratio, 1.2);
  const PanAndScan fresh = settings(
      "processor_config.json",
      R"({"image_processor":{"do_pan_and_scan":true,"pan_and_scan_min_ratio_to_activate":1.5}})");
  EXPECT_TRUE(fresh.on);
  EXPECT_EQ(fresh.min_ratio, 1.5);
  EXPECT_EQ(fresh.min_crop, 256);
  const auto refused = [&](const char* text, const char* what) {
    expect_error(Code::invalid_argument, what, [&] { settings("preprocessor_config.json", text); });
  };
  refused(R"({"pan_and_scan_max_num_crops":0})",
          "preprocessor_config.json: pan_and_scan_max_num_crops: is 0, wanted a whole number from "
          "1 to 64");
  refused(R"({"pan_and_scan_max_num_crops":2.5})", "max_num_crops: is 2.5, wanted a whole number");
  refused(R"({"pan_and_scan_min_crop_size":4294967552})", "min_crop_size: is 4294967552, wanted");
  refused(R"({"pan_and_scan_min_ratio_to_activate":0.5})",
          "to_activate: is 0.5, wanted a number from 1 to 16384");
  refused(R"({"do_pan_and_scan":1})", "do_pan_and_scan: is 1, wanted true or false");
  std::filesystem::remove_all(folder);
}

TEST(Pictures, OpacityIsLeftOut) {
  TextRequest request = asking({1});
  io::Pixels clear = noise(32, 32, 5, 4);
  request.messages[0].pictures[0].file = std::make_shared<const PictureFile>(io::encode_png(clear));
  const std::vector<PictureSquares> found = read_pictures(request, 32, 1);
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].size(), 1u);
  ASSERT_EQ(found[0][0]->values.size(), 32u * 32 * 3);
  for (size_t i = 0; i < 32 * 32; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(found[0][0]->values[i * 3 + c], clear.values[i * 4 + c]);
    }
  }
}

TEST(Pictures, TheTowerReadsMinusOneToOne) {
  const TextModel model = seeing_model();
  PictureCache cache(*model.model->pictures(), cpu(), 0);
  const auto one = std::make_shared<const io::Pixels>(noise(32, 32, 1));
  const auto seen = cache.find(one);
  while (!seen->seen()) cache.encode(seen, 0);
  std::vector<float> values(one->values.begin(), one->values.end());
  for (float& value : values) value = (value / 255 - 0.5f) / 0.5f;
  const Tensor wanted = (*model.model->pictures())(
      from_host(std::span<const float>(values), Shape{32, 32, 3}, cpu()));
  const auto a = seen->rows.to_host<float>(), b = wanted.to_host<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << i;
}

std::vector<TextRequest> mixed() {
  std::vector<TextRequest> out;
  for (uint32_t i = 0; i < 3; ++i) {
    out.push_back(asking({}));
    out.back().messages[0].content += std::string(i * 7, 'x');
    out.push_back(asking({i}));
    out.push_back(asking({7, i % 2}));
  }
  return out;
}

TEST(Pictures, TogetherSayWhatEachSaysAlone) {
  std::vector<std::string> alone;
  {
    const auto engine = make_llm_engine(seeing_model(), {.max_running = 1, .block_size = 4});
    for (TextRequest& request : mixed()) alone.push_back(answer(*engine, std::move(request))->text);
  }
  // Different pictures give different answers.
  EXPECT_GT(std::set({alone[1], alone[4], alone[7]}).size(), 1u);
  struct Case {
    const char* name;
    LlmOptions options;
    bool preempts;
  };
  const Case cases[] = {
      {"all at once", {.max_running = 9, .block_size = 4}, false},
      {"steps shorter than a picture",
       {.max_running = 9, .step_tokens = 9, .block_size = 4},
       false},
      {"steps a little longer", {.max_running = 9, .step_tokens = 23, .block_size = 16}, false},
      {"too few blocks",
       {.max_running = 9, .step_tokens = 40, .cache_tokens = 160, .block_size = 4},
       true},
      {"drafts", {.max_running = 9, .block_size = 4, .speculative = true}, false},
  };
  for (const Case& c : cases) {
    const auto engine = make_llm_engine(seeing_model(), c.options);
    const auto holder = hold(*engine, greedy("hold", 1));
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (TextRequest& request : mixed()) {
      sinks.push_back(submit(*engine, std::move(request), cat("job", sinks.size())));
    }
    holder->let_go();
    for (const auto& sink : sinks) sink->wait();
    for (size_t i = 0; i < sinks.size(); ++i) {
      EXPECT_EQ(sinks[i]->text, alone[i]) << c.name << " " << i;
    }
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.kv_blocks_used, 0) << c.name;
    EXPECT_EQ(stats.preemptions > 0, c.preempts) << c.name;
    EXPECT_EQ(stats.pictures, 4u) << c.name;  // 0 to 2 and 7, each once
  }
}

TEST(Pictures, OnlyEqualPicturesShareABeginning) {
  const auto engine = make_llm_engine(seeing_model(), {.max_running = 1, .block_size = 4});
  const auto first = answer(*engine, asking({1}));
  const auto length = static_cast<uint64_t>(first->started.prompt_tokens);
  EXPECT_EQ(length, engine->chat_tokens(asking({1}).messages, {}).size());
  const auto again = answer(*engine, asking({1}));
  EXPECT_EQ(again->text, first->text);
  EXPECT_EQ(engine->stats().prefix_hits, (length - 1) / 4 * 4);
  const uint64_t hits = engine->stats().prefix_hits;
  const auto other = answer(*engine, asking({2}));
  EXPECT_NE(other->text, first->text);
  // Only "<bos><start_of_turn>user\nWhat?\n\n<start_of_image>", in whole blocks.
  EXPECT_EQ(engine->stats().prefix_hits - hits, (2 + 12 + 1) / 4 * 4u);
  EXPECT_EQ(engine->stats().pictures, 2u);
}

// Cached blocks hold a prefix that ends within the picture.
TEST(Pictures, ABeginningMayEndWithinAPicture) {
  const LlmOptions options{.max_running = 1, .block_size = 8};
  const auto fresh = make_llm_engine(seeing_model(), options);
  TextRequest other = asking({3});
  other.messages[0].content = "What?!!!!";
  const std::string wanted = answer(*fresh, other)->text;
  const auto engine = make_llm_engine(seeing_model(), options);
  answer(*engine, asking({3}));
  EXPECT_EQ(answer(*engine, other)->text, wanted);
  EXPECT_EQ(engine->stats().prefix_hits,
            32u);  // of 15 + 16 + 3 equal tokens: whole blocks
}

TEST(Pictures, BadRequestsNameTheField) {
  const auto engine = make_llm_engine(seeing_model(), {.max_pictures = 2});
  expect_error(Code::invalid_argument, "messages[0].content[0]: a request has at most 2 pictures",
               [&] { submit(*engine, asking({1, 2, 3})); });
  TextRequest broken = asking({1});
  broken.messages[0].pictures[0].file = std::make_shared<const PictureFile>("GIF89a");
  expect_error(Code::invalid_argument, "messages[0].content[0]", [&] { submit(*engine, broken); });
  TextRequest marked = asking({1});  // the assistant's texts may hold special tokens
  marked.messages.push_back({.role = "assistant", .content = "<start_of_image>"});
  marked.messages.push_back({.role = "user", .content = "abc"});
  expect_error(Code::invalid_argument, "2 places for 1 pictures", [&] { submit(*engine, marked); });
  // In a user's text they are plain text, and the engine goes on.
  TextRequest words = asking({1});
  words.messages[0].content += "<start_of_image>";
  EXPECT_TRUE(answer(*engine, words)->finished);
  EXPECT_TRUE(answer(*engine, asking({1}))->finished);

  const auto blind = make_llm_engine(tiny_model(), {});
  expect_error(Code::invalid_argument, "messages[0].content[0]: this model reads text alone",
               [&] { submit(*blind, asking({1})); });
  expect_error(Code::invalid_argument, "max_pictures",
               [] { make_llm_engine(seeing_model(), {.max_pictures = 0}); });
  expect_error(Code::invalid_argument, "picture_cache_bytes",
               [] { make_llm_engine(seeing_model(), {.picture_cache_bytes = -1}); });
}

TEST(Pictures, APictureBesideAGgufModel) {
  const auto load = [](const std::string& tower) {
    TextModelOptions options{.device = &cpu(), .context = kContext};
    if (!tower.empty()) options.mmproj = data(tower);
    return load_text_model(data("model.gguf"), options);
  };
  EXPECT_EQ(load("").info.picture_tokens, 0);
  EXPECT_EQ(load("mmproj.gguf").info.picture_tokens, kRows);
  const auto hf = make_llm_engine(seeing_model(), {});
  const auto gguf = make_llm_engine(load("mmproj.gguf"), {});
  EXPECT_EQ(answer(*gguf, asking({4}))->text, answer(*hf, asking({4}))->text);
  EXPECT_EQ(gguf->model().max_pictures, 16);
}

}  // namespace
}  // namespace rbee::engine

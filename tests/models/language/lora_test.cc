// Adapters of every family against PEFT; tools/goldens/make_lora_goldens.py writes the goldens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/io/gguf_writer.h"
#include "rbee/io/safetensors_writer.h"
#include "rbee/models/lora_adapter.h"
#include "rbee/models/lora_file.h"
#include "rbee/quant/quant.h"
#include "tests/models/language/group_model.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"
#include "tests/support/npy.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kContext = 32;

fs::path data(const std::string& name) {
  return fs::path(test::data_folder()) / "models/language/data" / name;
}

std::vector<std::vector<int32_t>> prompts_of(const std::string& model) {
  std::vector<std::vector<int32_t>> out;
  const auto ids = read_npy<int32_t>(data(model) / "ids.npy").values;
  auto from = ids.begin();
  for (const int32_t length : read_npy<int32_t>(data(model) / "lengths.npy").values) {
    out.emplace_back(from, from + length);
    from += length;
  }
  return out;
}

std::vector<float> logits_in(const fs::path& folder) {
  return read_npy<float>(folder / "logits.npy").values;
}

enum class Weights : uint8_t { safetensors, gguf };

std::unique_ptr<models::LanguageModel> load(const std::string& model, Weights weights,
                                            bool pack = true) {
  const fs::path path = data(model) / (weights == Weights::gguf ? "model.gguf" : "hf");
  return load_under_test(
      io::Checkpoint::open(path),
      {.device = &device_under_test(), .context = kContext, .pack_weights = pack});
}

using Lora = std::vector<std::pair<int32_t, float>>;

std::vector<float> run(const models::LanguageModel& model, const std::string& name,
                       const Lora& lora) {
  const auto prompts = prompts_of(name);
  ModelRunner runner(model, std::ssize(prompts), kContext);
  std::vector<Piece> pieces;
  for (const auto& prompt : prompts)
    pieces.push_back({.sequence = std::ssize(pieces), .ids = prompt, .lora = lora});
  return runner.step(pieces);
}

struct GoldenLora {
  const char* name;
  const char* model;
};

class LoraGoldenTest : public testing::TestWithParam<GoldenLora> {
 protected:
  // The model with the adapter in slot 1.
  static std::unique_ptr<models::LanguageModel> adapted(Weights weights, bool pack = true) {
    auto model = load(GetParam().model, weights, pack);
    models::LoraAdapter(data("lora") / GetParam().name, *model).put(1);
    return model;
  }
  static std::vector<float> golden() { return logits_in(data("lora") / GetParam().name); }
};

TEST_P(LoraGoldenTest, LogitsArePefts) {
  for (const bool pack : {true, false}) {
    const auto model = adapted(Weights::safetensors, pack);
    EXPECT_LE(max_difference(run(*model, GetParam().model, {{1, 1}}), golden()), kLogitBound);
  }
}

// With a GGUF file, whose rows of q and k may have another order.
TEST_P(LoraGoldenTest, LogitsArePeftsOverAGgufFile) {
  const auto model = adapted(Weights::gguf);
  EXPECT_LE(max_difference(run(*model, GetParam().model, {{1, 1}}), golden()), kLogitBound);
}

TEST_P(LoraGoldenTest, TokenByTokenOnlyTheLastRowWanted) {
  const auto model = adapted(Weights::safetensors);
  const auto prompt = prompts_of(GetParam().model).front();
  const auto vocab = static_cast<size_t>(model->config().vocab_size);
  const std::vector<float> wanted = golden();
  ModelRunner runner(*model, 1, kContext);
  for (size_t i = 0; i < prompt.size(); ++i) {
    const Piece piece{.ids = {prompt[i]}, .lora = {{1, 1}}};
    const std::vector<float> logits = runner.step({&piece, 1});
    ASSERT_LE(max_difference(logits, std::span(wanted).subspan(i * vocab, vocab)), kLogitBound);
  }
}

TEST_P(LoraGoldenTest, WhoTakesNoneGetsTheModelAlone) {
  const std::vector<float> plain = logits_in(data(GetParam().model));
  const auto model = adapted(Weights::safetensors);
  EXPECT_LE(max_difference(run(*model, GetParam().model, {}), plain), kLogitBound);
  EXPECT_LE(max_difference(run(*model, GetParam().model, {{1, 0}}), plain), kLogitBound);
}

INSTANTIATE_TEST_SUITE_P(
    Adapters, LoraGoldenTest,
    testing::Values(GoldenLora{"llama_all", "llama"}, GoldenLora{"llama_patterns", "llama"},
                    GoldenLora{"qwen2", "qwen2"}, GoldenLora{"phi3", "phi3"},
                    GoldenLora{"gemma2", "gemma2"}, GoldenLora{"olmo2", "olmo2"},
                    GoldenLora{"granite", "granite"}, GoldenLora{"qwen2_moe", "qwen2_moe"},
                    GoldenLora{"stablelm_parallel", "stablelm_parallel"},
                    GoldenLora{"smollm", "smollm"}),
    [](const auto& test) { return std::string(test.param.name); });

// Rows with both adapters, with neither, and with one at other scales, in one step and alone.
TEST(Lora, RowsOfOneBatchTakeTheirOwn) {
  const auto model = load("llama", Weights::safetensors);
  models::LoraAdapter(data("lora/llama_all"), *model).put(3);
  models::LoraAdapter(data("lora/llama_patterns"), *model).put(1);
  const Lora choices[] = {{{3, 1}}, {}, {{1, 1}}, {{1, 0.5f}}, {{1, 0.5f}, {3, -0.25f}}};
  const auto prompt = prompts_of("llama").front();
  std::vector<Piece> pieces;
  for (const Lora& lora : choices)
    pieces.push_back({.sequence = std::ssize(pieces), .ids = prompt, .lora = lora});
  ModelRunner together(*model, std::ssize(pieces), kContext);
  const std::vector<float> all = together.step(pieces);
  const size_t each = all.size() / pieces.size();
  for (size_t i = 0; i < pieces.size(); ++i) {
    ModelRunner alone(*model, 1, kContext);
    const Piece piece{.ids = prompt, .lora = choices[i]};
    EXPECT_LE(max_difference(alone.step({&piece, 1}), std::span(all).subspan(i * each, each)),
              kLogitBound)
        << i;
  }
  const auto golden = [&](const char* folder) {
    std::vector<float> logits = logits_in(data(folder));
    logits.resize(each);
    return logits;
  };
  const auto part = [&](size_t i) { return std::span(all).subspan(i * each, each); };
  EXPECT_LE(max_difference(part(0), golden("lora/llama_all")), kLogitBound);
  EXPECT_LE(max_difference(part(1), golden("llama")), kLogitBound);
  EXPECT_LE(max_difference(part(2), golden("lora/llama_patterns")), kLogitBound);
  EXPECT_GT(max_difference(part(3), part(2)), 0.1f);
  EXPECT_GT(max_difference(part(4), part(3)), 0.1f);
}

TEST(Lora, ASlotIsTakenAnew) {
  const auto model = load("llama", Weights::safetensors);
  models::LoraAdapter(data("lora/llama_all"), *model).put(1);
  models::LoraAdapter(data("lora/llama_patterns"), *model).put(1);
  EXPECT_LE(max_difference(run(*model, "llama", {{1, 1}}), logits_in(data("lora/llama_patterns"))),
            kLogitBound);
}

// Files of our own writers, in a folder that the destructor removes.
class LoraFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rbee-lora-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  static json config_of(const std::string& name) {
    std::ifstream file(data("lora") / name / "adapter_config.json");
    return json::parse(file);
  }

  fs::path changed(const std::function<void(json&)>& change) {
    fs::copy(data("lora/llama_all"), folder_,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    json config = config_of("llama_all");
    change(config);
    std::ofstream(folder_ / "adapter_config.json") << config.dump();
    return folder_;
  }

  struct Stored {
    std::string name;
    Shape shape;
    std::vector<float> values;
    DType dtype = DType::f32;
  };

  fs::path peft(const std::vector<Stored>& tensors) {
    std::ofstream(folder_ / "adapter_config.json") << R"({"peft_type": "LORA", "r": 2})";
    io::SafetensorsWriter writer;
    for (const Stored& each : tensors) writer.add_tensor(each.name, DType::f32, each.shape);
    writer.begin(folder_ / "adapter_model.safetensors");
    for (const Stored& each : tensors) writer.write(std::as_bytes(std::span(each.values)));
    writer.finish();
    return folder_;
  }

  static std::vector<std::byte> stored_bytes(const Stored& tensor) {
    const auto n = std::ssize(tensor.values);
    std::vector<std::byte> out(static_cast<size_t>(row_bytes(tensor.dtype, n)));
    if (tensor.dtype == DType::f32) {
      std::memcpy(out.data(), tensor.values.data(), out.size());
    } else {
      quant::quantize_row(tensor.dtype, tensor.values.data(), out.data(), n);
    }
    return out;
  }

  fs::path gguf(const std::vector<Stored>& tensors,
                const std::function<void(io::GgufWriter&)>& settings) {
    io::GgufWriter writer;
    settings(writer);
    for (const Stored& each : tensors) writer.add_tensor(each.name, each.dtype, each.shape);
    const fs::path path = folder_ / "adapter.gguf";
    writer.begin(path);
    for (const Stored& each : tensors) writer.write(stored_bytes(each));
    writer.finish();
    return path;
  }

  static void llama_keys(io::GgufWriter& writer) {
    writer.set_string("general.architecture", "llama");
    writer.set_string("general.type", "adapter");
    writer.set_string("adapter.type", "lora");
    writer.set_f32("adapter.lora.alpha", 8);
  }

  static void read(const fs::path& path, Weights weights = Weights::safetensors) {
    const auto model = load("llama", weights);
    models::LoraAdapter(path, *model);
  }

  fs::path folder_;
};

// llama.cpp's names.
std::string gguf_name(const std::string& module) {
  const std::pair<const char*, const char*> names[] = {
      {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},  {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},  {"self_attn.qkv_proj", "attn_qkv"},
      {"mlp.gate_up_proj", "ffn_up"},
  };
  const size_t layer = module.find("layers.") + 7;
  for (const auto& [hf, gguf] : names) {
    if (module.ends_with(hf)) return cat("blk.", module.substr(layer, 1), ".", gguf);
  }
  return module;
}

// The order of llama.cpp's converter: reshape(heads, 2, half, rank).swapaxes(1, 2).
std::vector<float> permuted(const std::vector<float>& up, int64_t heads, int64_t rank) {
  const int64_t rows = std::ssize(up) / rank, half = rows / heads / 2;
  std::vector<float> out;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < half; ++i) {
      for (int64_t part = 0; part < 2; ++part) {
        const int64_t row = (head * 2 + part) * half + i;
        for (int64_t j = 0; j < rank; ++j) out.push_back(up[static_cast<size_t>(row * rank + j)]);
      }
    }
  }
  return out;
}

TEST_F(LoraFileTest, GgufOfTheSameNumbersGivesTheSameLogits) {
  struct Case {
    const char *name, *model;
    float alpha;
    int64_t heads, kv_heads;  // their rows are reordered
  };
  for (const Case& c : {Case{"llama_all", "llama", 8, 4, 2}, Case{"qwen2", "qwen2", 16, 0, 0},
                        Case{"phi3", "phi3", 4, 0, 0}}) {
    const models::LoraFile file(data("lora") / c.name);
    const auto model = load(c.model, Weights::gguf);
    if (c.heads > 0) {
      ASSERT_EQ(model->config().heads, c.heads);
      ASSERT_EQ(model->config().kv_heads, c.kv_heads);
    }
    std::vector<Stored> tensors;
    for (const models::LoraFileLayer& layer : file.layers()) {
      const std::string name = gguf_name(layer.module);
      std::vector<float> up = io::read_floats(*layer.up);
      const int64_t heads = name.ends_with("attn_q")   ? c.heads
                            : name.ends_with("attn_k") ? c.kv_heads
                                                       : 0;
      if (heads > 0) up = permuted(up, heads, layer.up->shape[1]);
      tensors.push_back({name + ".weight.lora_a", layer.down->shape, io::read_floats(*layer.down)});
      tensors.push_back({name + ".weight.lora_b", layer.up->shape, up});
    }
    const fs::path path = gguf(tensors, [&](io::GgufWriter& writer) {
      writer.set_string("general.architecture", c.model);
      writer.set_string("general.type", "adapter");
      writer.set_string("adapter.type", "lora");
      writer.set_f32("adapter.lora.alpha", c.alpha);
    });
    models::LoraAdapter(path, *model).put(1);
    EXPECT_LE(max_difference(run(*model, c.model, {{1, 1}}), logits_in(data("lora") / c.name)),
              kLogitBound)
        << c.name;
  }
}

TEST_F(LoraFileTest, GgufOfBlocksGivesTheLogitsOfTheirValues) {
  const models::LoraFile file(data("lora/llama_all"));
  std::vector<std::vector<float>> logits;
  for (const DType dtype : {DType::f32, DType::q8_0}) {
    std::vector<Stored> tensors;
    for (const models::LoraFileLayer& layer : file.layers()) {
      const std::string name = gguf_name(layer.module);
      Stored down{name + ".weight.lora_a", layer.down->shape, io::read_floats(*layer.down),
                  DType::q8_0};
      const std::vector<std::byte> blocks = stored_bytes(down);
      quant::dequantize_row(DType::q8_0, blocks.data(), down.values.data(),
                            std::ssize(down.values));
      down.dtype = dtype;
      tensors.push_back(down);
      tensors.push_back({name + ".weight.lora_b", layer.up->shape, io::read_floats(*layer.up)});
    }
    const fs::path path = gguf(tensors, llama_keys);
    const auto model = load("llama", Weights::gguf);
    models::LoraAdapter(path, *model).put(1);
    logits.push_back(run(*model, "llama", {{1, 1}}));
  }
  EXPECT_EQ(max_difference(logits[0], logits[1]), 0);
}

TEST_F(LoraFileTest, KindsThatAreNotDoneAreRefused) {
  struct Case {
    const char* field;
    json value;
  };
  const Case cases[] = {
      {"peft_type", "LOHA"},
      {"use_dora", true},
      {"bias", "all"},
      {"modules_to_save", json::array({"lm_head"})},
      {"layer_replication", json::array({json::array({0, 2})})},
      {"target_parameters", json::array({"mlp.experts.gate_up_proj"})},
      {"init_lora_weights", "pissa_niter_4"},
      {"fan_in_fan_out", true},
      {"alpha_pattern", {{"layers\\.[01].*", 3}}},
  };
  for (const Case& c : cases) {
    expect_error(Code::unsupported, {"adapter_config.json", c.field},
                 [&] { read(changed([&](json& config) { config[c.field] = c.value; })); });
  }
}

TEST_F(LoraFileTest, AConfigThatContradictsTheTensors) {
  expect_error(Code::invalid_argument, {"rank of model.layers.0.mlp.down_proj", "5", "4"},
               [&] { read(changed([](json& config) { config["r"] = 5; })); });
  expect_error(Code::invalid_argument, {"r", "0"},
               [&] { read(changed([](json& config) { config["r"] = 0; })); });
  expect_error(Code::invalid_argument, {"both \"mlp.up_proj\" and \"up_proj\""}, [&] {
    read(changed(
        [](json& config) { config["alpha_pattern"] = {{"up_proj", 1}, {"mlp.up_proj", 2}}; }));
  });
}

TEST_F(LoraFileTest, TensorsThatDoNotFit) {
  const std::string q = "base_model.model.model.layers.0.self_attn.q_proj.";
  const auto ones = [](size_t count) { return std::vector<float>(count, 1); };
  const Stored down{q + "lora_A.weight", {2, 64}, ones(128)};
  const Stored up{q + "lora_B.weight", {64, 2}, ones(128)};
  EXPECT_NO_THROW(read(peft({down, up})));
  expect_error(Code::invalid_argument, {"q_proj", "has only", "lora_A"},
               [&] { read(peft({down})); });
  expect_error(Code::invalid_argument, {"lora_A.weight is (2, 48)", "wanted (2, 64)"},
               [&] { read(peft({{q + "lora_A.weight", {2, 48}, ones(96)}, up})); });
  expect_error(Code::invalid_argument, {"lora_B.weight is (60, 2)", "wanted (64, 2)"},
               [&] { read(peft({down, {q + "lora_B.weight", {60, 2}, ones(120)}})); });
  expect_error(Code::invalid_argument, {"lora_B.weight (64, 3)", "(out, rank)"},
               [&] { read(peft({down, {q + "lora_B.weight", {64, 3}, ones(192)}})); });
  Stored broken = up;
  broken.values[5] = std::numeric_limits<float>::quiet_NaN();
  expect_error(Code::invalid_argument, {"lora_B.weight", "not finite"},
               [&] { read(peft({down, broken})); });
  expect_error(Code::invalid_argument, {"rotary", "no part of a LoRA adapter"},
               [&] { read(peft({down, up, {"rotary", {1}, ones(1)}})); });
  expect_error(Code::unsupported, {"lora_embedding_A", "token table"},
               [&] { read(peft({{"model.embed_tokens.lora_embedding_A", {2, 4}, ones(8)}})); });
  expect_error(Code::unsupported, {"lora_magnitude_vector", "DoRA"},
               [&] { read(peft({down, up, {q + "lora_magnitude_vector", {64}, ones(64)}})); });
}

TEST_F(LoraFileTest, LayersThatTheModelDoesNotHave) {
  const std::string expert = "base_model.model.model.layers.0.mlp.experts.3.up_proj.";
  const fs::path path = peft({{expert + "lora_A.weight", {2, 64}, std::vector<float>(128)},
                              {expert + "lora_B.weight", {64, 2}, std::vector<float>(128)}});
  for (const char* name : {"llama", "qwen2_moe"}) {
    const auto model = load(name, Weights::safetensors);
    expect_error(Code::unsupported, {"1 of its 1 layers", "model.layers.0.mlp.experts.3.up_proj"},
                 [&] { models::LoraAdapter(path, *model); });
  }
}

TEST_F(LoraFileTest, FilesThatAreNoAdapters) {
  expect_error(Code::invalid_argument, {"general.type is \"model\""},
               [&] { read(data("llama") / "model.gguf", Weights::gguf); });
  expect_error(Code::not_found, {"adapter_config.json"}, [&] {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    fs::copy(data("lora/llama_all") / "adapter_model.safetensors", folder_);
    read(folder_);
  });
  expect_error(Code::unsupported, {"adapter_model.bin", "pickled"}, [&] {
    fs::remove(folder_ / "adapter_model.safetensors");
    std::ofstream(folder_ / "adapter_model.bin") << "x";
    read(folder_);
  });
  expect_error(Code::not_found, {"nowhere"}, [&] { read(folder_ / "nowhere.gguf"); });
}

TEST_F(LoraFileTest, GgufForAnotherModel) {
  const std::vector<Stored> tensors{
      {"blk.0.attn_q.weight.lora_a", {2, 64}, std::vector<float>(128)},
      {"blk.0.attn_q.weight.lora_b", {64, 2}, std::vector<float>(128)}};
  const fs::path path = gguf(tensors, llama_keys);
  EXPECT_NO_THROW(read(path, Weights::gguf));
  expect_error(Code::unsupported, {"GGUF", "PEFT's form"}, [&] { read(path); });
  const auto other = load("qwen2", Weights::gguf);
  expect_error(Code::invalid_argument, {"\"llama\"", "\"qwen2\""},
               [&] { models::LoraAdapter(path, *other); });
  const auto with = [&](const char* key, const char* value) {
    return gguf(tensors, [&](io::GgufWriter& writer) {
      writer.set_string("general.architecture", "llama");
      writer.set_string("general.type", "adapter");
      writer.set_f32("adapter.lora.alpha", 8);
      writer.set_string(key, value);
    });
  };
  expect_error(Code::unsupported, {"adapter.type is \"control\""},
               [&] { read(with("adapter.type", "control"), Weights::gguf); });
  expect_error(Code::not_found, {"adapter.type"},
               [&] { read(with("general.name", "x"), Weights::gguf); });
}

}  // namespace
}  // namespace rbee::test

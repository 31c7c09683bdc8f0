// Logits and layer outputs of every family against transformers;
// tools/goldens/make_model_goldens.py writes goldens and checkpoints.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>

#include "rbee/models/lora_matrices.h"
#include "rbee/models/tensor_roles.h"
#include "rbee/ops/linear.h"
#include "rbee/ops/trace.h"
#include "tests/models/language/group_model.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"
#include "tests/support/npy.h"
#include "tests/units/engine/far_device.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;

struct GoldenCase {
  const char* name;
  const char* weights_of = nullptr;  // the case with this one's safetensors
  bool gguf = false;
  std::string_view type = "f16";  // of most weights
  int64_t context = 24;
  int64_t parameters = 0;  // 0 = as in the case that has the weights
  // For weights in block types, whose kernels round activations to 8 bits; 0 = there are none.
  float packed_tolerance = 0;
  float rounding = 0;  // logits' error from weights rounded on reading
  bool e4m3 = false;   // matrices stay e4m3, with e4m3 activations on GPUs only
  bool experts = false;
  const char* refused_in_groups = nullptr;  // part of the reason
};

constexpr GoldenCase kCases[] = {
    {.name = "llama", .gguf = true, .type = "f32", .parameters = 82240},
    {.name = "llama_bias", .gguf = true},
    {.name = "smollm", .gguf = true, .parameters = 47856},
    {.name = "rope_linear", .weights_of = "smollm", .gguf = true},
    {.name = "rope_dynamic", .weights_of = "smollm"},
    {.name = "rope_yarn", .weights_of = "smollm", .gguf = true},
    {.name = "rope_llama3", .weights_of = "smollm", .gguf = true},
    {.name = "mistral", .gguf = true},
    {.name = "qwen2", .gguf = true},
    {.name = "qwen2_window", .weights_of = "qwen2"},
    {.name = "qwen3", .gguf = true, .type = "bf16"},
    {.name = "gemma2", .gguf = true},
    {.name = "gemma2_scalar", .weights_of = "gemma2"},
    {.name = "gemma3", .gguf = true},
    {.name = "gemma3_linear", .weights_of = "gemma3"},
    {.name = "gemma3_multimodal"},
    {.name = "phi3", .gguf = true},
    {.name = "phi3_long", .weights_of = "phi3", .gguf = true},
    {.name = "phi3_short", .weights_of = "phi3", .context = 16},
    {.name = "gemma", .gguf = true},
    {.name = "phi4_mini", .gguf = true},
    {.name = "mixtral", .gguf = true, .experts = true},
    {.name = "qwen2_moe", .gguf = true, .experts = true},
    {.name = "qwen3_moe", .gguf = true, .experts = true},
    {.name = "qwen3_moe_mixed", .experts = true},
    {.name = "deepseek_v2", .gguf = true, .experts = true},
    {.name = "deepseek_v3", .gguf = true, .experts = true},
    {.name = "gpt_oss", .gguf = true, .packed_tolerance = 0.6f, .experts = true},
    {.name = "granite", .gguf = true},
    {.name = "smollm3", .gguf = true},
    {.name = "smollm3_list", .weights_of = "smollm3"},
    {.name = "olmo2", .gguf = true, .refused_in_groups = "OLMo 2"},
    {.name = "stablelm", .gguf = true},
    {.name = "stablelm_parallel", .gguf = true},
    {.name = "llama_fp8", .type = "f8e4m3"},
    {.name = "phi3_fp8", .type = "f8e4m3"},
    {.name = "phi3_fp8_blocks", .type = "f8e4m3"},
    {.name = "mixtral_fp8", .type = "f8e4m3", .experts = true},
    {.name = "llama_fp8_groups", .type = "f8e4m3", .packed_tolerance = 0.2f, .e4m3 = true},
    {.name = "llama_awq", .packed_tolerance = 0.4f, .rounding = 0.02f},
    {.name = "llama_gptq", .packed_tolerance = 0.4f},
    {.name = "llama_gptq_order",
     .packed_tolerance = 0.4f,
     .rounding = 0.02f,
     .refused_in_groups = "desc_act"},
    {.name = "mixtral_gptq", .type = "q8_0", .packed_tolerance = 0.4f, .experts = true},
    {.name = "phi3_packed", .packed_tolerance = 0.4f},
    {.name = "phi4", .gguf = true},
    {.name = "phi4_mini_short", .weights_of = "phi4_mini", .gguf = true, .context = 16},
    {.name = "ministral3", .gguf = true},
    {.name = "ministral3_text", .weights_of = "ministral3"},
    {.name = "mistral3", .weights_of = "mistral", .gguf = true},
    {.name = "glm4_moe", .gguf = true, .experts = true},
    {.name = "glm4_moe_air", .gguf = true, .experts = true},
    {.name = "glm4", .gguf = true},
    {.name = "minimax_m2", .gguf = true, .experts = true, .refused_in_groups = "MiniMax M2"},
    {.name = "seed_oss", .gguf = true},
    {.name = "ernie4_5", .gguf = true},
    {.name = "ernie4_5_moe", .gguf = true, .experts = true},
    {.name = "hunyuan_dense", .gguf = true},
    {.name = "hunyuan_moe", .gguf = true, .experts = true},
    {.name = "olmo3", .gguf = true, .refused_in_groups = "OLMo 2"},
    {.name = "exaone4", .gguf = true},
    {.name = "exaone4_full", .weights_of = "exaone4", .gguf = true},
    {.name = "cohere2", .gguf = true},
    {.name = "kimi_k2", .weights_of = "deepseek_v3", .experts = true},
    {.name = "glm4_moe_lite", .gguf = true, .experts = true},
    {.name = "qwen3_next", .gguf = true, .experts = true, .refused_in_groups = "states"},
    {.name = "qwen3_5", .gguf = true, .refused_in_groups = "states"},
    {.name = "qwen3_5_moe", .gguf = true, .experts = true, .refused_in_groups = "states"},
};

fs::path data_folder(std::string_view name) {
  return fs::path(test::data_folder()) / "models/language/data" / name;
}

struct Golden {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<float> logits;               // (tokens, vocab), prompts one after another
  std::vector<std::vector<float>> hidden;  // by layer: (tokens, dim)
  std::vector<int32_t> greedy;             // after the second prompt; may be empty
};

Golden read_golden(const char* name) {
  const fs::path folder = data_folder(name);
  Golden golden;
  const auto ids = read_npy<int32_t>(folder / "ids.npy");
  auto from = ids.values.begin();
  for (const int32_t length : read_npy<int32_t>(folder / "lengths.npy").values) {
    golden.prompts.emplace_back(from, from + length);
    from += length;
  }
  golden.logits = read_npy<float>(folder / "logits.npy").values;
  const auto hidden = read_npy<float>(folder / "hidden.npy");
  const auto layer = static_cast<ptrdiff_t>(hidden.shape[1] * hidden.shape[2]);
  for (auto at = hidden.values.begin(); at != hidden.values.end(); at += layer) {
    golden.hidden.emplace_back(at, at + layer);
  }
  const fs::path greedy = folder / "greedy.npy";
  if (fs::exists(greedy)) golden.greedy = read_npy<int32_t>(greedy).values;
  return golden;
}

struct Param {
  GoldenCase golden;
  bool gguf;
};

std::vector<Param> all_params() {
  std::vector<Param> params;
  for (const GoldenCase& golden : kCases) {
    params.push_back({golden, false});
    if (golden.gguf) params.push_back({golden, true});
  }
  return params;
}

class GoldenTest : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    golden_ = read_golden(GetParam().golden.name);
    const char* refused = GetParam().golden.refused_in_groups;
    if (ranks_under_test() > 1 && refused != nullptr) {
      expect_error(Code::unsupported, {refused}, [&] { load({}); });
      GTEST_SKIP() << "refused in groups: " << refused;
    }
    model_ = load({});
  }

  void TearDown() override {
    set_op_trace({});
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // A case without its own weights has a config.json and links to the owner's files.
  fs::path checkpoint_path() {
    const GoldenCase& golden = GetParam().golden;
    if (GetParam().gguf) return data_folder(golden.name) / "model.gguf";
    if (golden.weights_of == nullptr) return data_folder(golden.name) / "hf";
    if (folder_.empty()) {
      std::string pattern = (fs::temp_directory_path() / "rbee-models-XXXXXX").string();
      folder_ = mkdtemp(pattern.data());
      fs::copy(data_folder(golden.name) / "hf" / "config.json", folder_);
      for (const auto& file : fs::directory_iterator(data_folder(golden.weights_of) / "hf")) {
        if (file.path().extension() != ".safetensors") continue;
        fs::create_symlink(file.path(), folder_ / file.path().filename());
      }
    }
    return folder_;
  }

  std::unique_ptr<models::LanguageModel> load(models::LoadOptions options) {
    if (options.device == nullptr) options.device = &device_under_test();
    options.context = GetParam().golden.context;
    return load_under_test(io::Checkpoint::open(checkpoint_path()), options);
  }

  // Of the first layers' experts, as the file has their matrices.
  int64_t expert_bytes(int64_t layers) {
    const io::Checkpoint checkpoint = io::Checkpoint::open(checkpoint_path());
    int64_t out = 0;
    for (const io::TensorEntry& entry : checkpoint.tensors()) {
      const auto layer = models::layer_of(entry.name);
      const bool matrix = models::is_expert(entry.name) && entry.name.ends_with(".weight");
      if (layer && *layer < layers && matrix) out += static_cast<int64_t>(entry.data.size());
    }
    return out;
  }

  ModelRunner runner(DType kv_dtype = DType::f32) {
    return ModelRunner(*model_, static_cast<int64_t>(golden_.prompts.size()), 32, kv_dtype);
  }

  // Some CPUs' kernels for bf16 weights round activations to bf16, which keeps 8 bits.
  float plain_tolerance() const {
    return rounded_to_bf16_ ? 0.15f : std::max(kLogitBound, GetParam().golden.rounding);
  }
  float tolerance() const {
    const GoldenCase& golden = GetParam().golden;
    const bool exact = golden.e4m3 && &device_under_test() == &cpu_device();
    return exact ? plain_tolerance() : std::max(plain_tolerance(), golden.packed_tolerance);
  }

  // Whether kernels read matrices as the file has them, experts' ones or all others. Of mixtures
  // only experts are in forms of their own.
  bool may_visit(bool experts) const {
    const GoldenCase& golden = GetParam().golden;
    if (golden.experts && !experts) return true;
    const std::string_view name = golden.name;
    if (name == "gpt_oss" || name == "qwen3_5_moe") return GetParam().gguf;
    return golden.type != "f8e4m3" && golden.packed_tolerance == 0;
  }

  void watch_kernels() {
    set_op_trace([this](const TracedOp& op) {
      if (std::string_view(op.op) != "linear") return;
      const std::string_view kernel = op.implementation;
      const bool bf16_weight = op.other != nullptr && op.other->dtype == DType::bf16;
      if (bf16_weight && (kernel == "avx512bf16" || kernel == "amx")) rounded_to_bf16_ = true;
    });
    if (model_->quantization() == "f8e4m3") show_rounding(device_under_test());
  }

  // Fused operations may multiply in bf16 too, and FP8 becomes bf16 inside of them: a separate
  // product shows the rounding.
  static void show_rounding(Device& device) {
    linear(zeros({16, 64}, DType::f32, device), pack_weight(zeros({64, 64}, DType::bf16, device)));
  }

  std::span<const float> golden_rows(size_t first, size_t count) const {
    const auto vocab = static_cast<size_t>(model_->config().vocab_size);
    return std::span(golden_.logits).subspan(first * vocab, count * vocab);
  }

  Golden golden_;
  engine::FarDevice far_;
  std::unique_ptr<models::LanguageModel> model_;

 private:
  fs::path folder_;
  std::atomic<bool> rounded_to_bf16_ = false;
};

TEST_P(GoldenTest, EachPromptAlone) {
  watch_kernels();
  ModelRunner runner = this->runner();
  size_t first = 0;
  for (size_t i = 0; i < golden_.prompts.size(); ++i) {
    const Piece piece{static_cast<int64_t>(i), golden_.prompts[i]};
    const std::vector<float> logits = runner.step({&piece, 1});
    const size_t count = piece.ids.size();
    EXPECT_LE(max_difference(logits, golden_rows(first, count)), tolerance()) << "prompt " << i;
    first += count;
  }
}

TEST_P(GoldenTest, RaggedBatchAndEachLayer) {
  watch_kernels();
  ModelRunner runner = this->runner();
  runner.record = true;
  std::vector<Piece> pieces;
  pieces.reserve(golden_.prompts.size());
  for (const auto& prompt : golden_.prompts) {
    pieces.push_back({static_cast<int64_t>(pieces.size()), prompt});
  }
  const std::vector<float> logits = runner.step(pieces);
  EXPECT_LE(max_difference(logits, golden_.logits), tolerance());
  ASSERT_EQ(runner.hidden.size(), golden_.hidden.size());
  for (size_t layer = 0; layer < golden_.hidden.size(); ++layer) {
    EXPECT_LE(max_difference(runner.hidden[layer], golden_.hidden[layer]), tolerance())
        << "layer " << layer;
  }
}

// All sequences advance by one token per step, as in batched generation; shorter ones end earlier.
TEST_P(GoldenTest, TokenByToken) {
  watch_kernels();
  ModelRunner runner = this->runner();
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  for (size_t position = 0;; ++position) {
    std::vector<Piece> pieces;
    std::vector<float> wanted;
    size_t first = 0;
    for (size_t i = 0; i < golden_.prompts.size(); ++i) {
      const auto& prompt = golden_.prompts[i];
      if (position < prompt.size()) {
        pieces.push_back({static_cast<int64_t>(i), {prompt[position]}});
        const auto row = golden_rows(first + position, 1);
        wanted.insert(wanted.end(), row.begin(), row.end());
      }
      first += prompt.size();
    }
    if (pieces.empty()) break;
    const std::vector<float> logits = runner.step(pieces);
    ASSERT_EQ(logits.size(), pieces.size() * vocab);
    ASSERT_LE(max_difference(logits, wanted), tolerance()) << "position " << position;
  }
}

// Only if the logits are exact enough that no other token can be the most likely.
TEST_P(GoldenTest, GreedyText) {
  watch_kernels();
  ModelRunner runner = this->runner();
  if (golden_.greedy.empty()) GTEST_SKIP() << "the second prompt leaves no room";
  Piece piece{0, golden_.prompts[1]};
  std::vector<int32_t> text;
  while (text.size() < golden_.greedy.size()) {
    const std::vector<int32_t> last{static_cast<int32_t>(piece.ids.size() - 1)};
    const std::vector<float> logits = runner.step({&piece, 1}, last);
    if (tolerance() > kLogitBound) GTEST_SKIP() << "weights or products are rounded";
    text.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
    piece.ids = {text.back()};
  }
  EXPECT_EQ(text, golden_.greedy);
}

// A prompt in chunks; only the last one requests logits, of its last token alone.
TEST_P(GoldenTest, ChunkedPromptLastRow) {
  watch_kernels();
  ModelRunner runner = this->runner();
  const std::vector<int32_t>& prompt = golden_.prompts.front();
  constexpr size_t kChunk = 7;
  for (size_t start = 0; start < prompt.size(); start += kChunk) {
    const size_t end = std::min(start + kChunk, prompt.size());
    const Piece piece{0,
                      {prompt.begin() + static_cast<ptrdiff_t>(start),
                       prompt.begin() + static_cast<ptrdiff_t>(end)}};
    const bool last = end == prompt.size();
    const std::vector<int32_t> rows(last ? 1 : 0, static_cast<int32_t>(end - start - 1));
    const std::vector<float> logits = runner.step({&piece, 1}, rows);
    if (!last) {
      EXPECT_TRUE(logits.empty());
      continue;
    }
    EXPECT_LE(max_difference(logits, golden_rows(prompt.size() - 1, 1)), tolerance());
  }
}

// Bounds scale with the type's precision: 11, 8 and 4 significant bits. A q8_0 step is at most
// 1/127 of the largest of 32 numbers, twice that of bf16.
TEST_P(GoldenTest, CacheOfFewerBits) {
  watch_kernels();
  for (const auto& [dtype, bound] : {std::pair{DType::f16, 0.03f},
                                     {DType::bf16, 0.25f},
                                     {DType::q8_0, 0.5f},
                                     {DType::f8e4m3, 2.5f}}) {
    if (dtype == DType::q8_0 && model_->config().head_dim % 32 != 0) continue;
    ModelRunner runner = this->runner(dtype);
    const Piece piece{0, golden_.prompts.front()};
    const std::vector<float> logits = runner.step({&piece, 1});
    const float difference = max_difference(logits, golden_rows(0, piece.ids.size()));
    EXPECT_LE(difference, std::max(bound, tolerance())) << name(dtype);
    EXPECT_GT(difference, 0) << name(dtype);
  }
}

TEST_P(GoldenTest, PlainWeights) {
  model_ = load({.pack_weights = false});
  watch_kernels();
  ModelRunner runner = this->runner();
  const Piece piece{0, golden_.prompts.front()};
  const std::vector<float> logits = runner.step({&piece, 1});
  // GPUs multiply unpacked blocks in bf16.
  const bool in_f32 = &device_under_test() == &cpu_device();
  EXPECT_LE(max_difference(logits, golden_rows(0, piece.ids.size())),
            in_f32 ? plain_tolerance() : tolerance());
}

// The first layers on the CPU, the others on the device: a chunked prompt, with wanted rows of its
// last chunk alone, and tokens one by one.
TEST_P(GoldenTest, LayersOnTheHost) {
  Device& under_test = device_under_test();
  Device& device = &under_test == &cpu_device() ? far_ : under_test;
  const int64_t layers = model_->config().layers;
  for (int64_t on_device = 1; on_device <= layers; ++on_device) {
    // Of some, the chunk's products on the device, and the tokens' on the host.
    const int64_t visit = on_device % 2 == 0 ? 2 : 0;
    model_ = load({.device = &device,
                   .gpu_layers = on_device,
                   .host = &cpu_device(),
                   .op_offload_min_batch = visit});
    ASSERT_EQ(model_->host_layers().count, layers + 1 - on_device);
    EXPECT_EQ(model_->visiting_bytes(1), 0);
    EXPECT_EQ(model_->visiting_bytes(2) > 0, visit > 0 && may_visit(false));
    if (GetParam().golden.experts && visit > 0 && may_visit(true)) {
      EXPECT_GT(model_->visiting_bytes(1000), expert_bytes(layers + 1 - on_device));
    }
    watch_kernels();
    const std::string type = model_->quantization();
    if (type == "bf16" || type == "f8e4m3") show_rounding(cpu_device());
    ModelRunner runner(*model_, 1, 32, DType::f32, device);
    runner.record = true;
    const std::vector<int32_t>& prompt = golden_.prompts.front();
    const size_t chunk = prompt.size() / 2;
    const Piece first{0, {prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(chunk)}};
    const std::vector<int32_t> last_row{static_cast<int32_t>(chunk) - 1};
    const std::vector<float> logits = runner.step({&first, 1}, last_row);
    EXPECT_LE(max_difference(logits, golden_rows(chunk - 1, 1)), tolerance()) << on_device;
    EXPECT_EQ(std::ssize(runner.hidden), layers);
    for (size_t at = chunk; at < prompt.size(); ++at) {
      const Piece one{0, {prompt[at]}};
      const std::vector<float> row = runner.step({&one, 1});
      ASSERT_LE(max_difference(row, golden_rows(at, 1)), tolerance()) << on_device << ", " << at;
    }
  }
}

// The experts of the first layers on the CPU, beside layers that are there whole: where they are,
// and, for steps of several tokens, on the device that they come to.
TEST_P(GoldenTest, ExpertsOnTheHost) {
  if (!GetParam().golden.experts) GTEST_SKIP() << "it has none";
  Device& under_test = device_under_test();
  Device& device = &under_test == &cpu_device() ? far_ : under_test;
  const int64_t layers = model_->config().layers;
  const auto check_answers = [&](const std::string& what) {
    watch_kernels();
    const std::string type = model_->quantization();
    if (type == "bf16" || type == "f8e4m3") show_rounding(cpu_device());
    ModelRunner runner(*model_, 1, 32, DType::f32, device);
    const std::vector<int32_t>& prompt = golden_.prompts.front();
    const size_t chunk = prompt.size() / 2;
    const Piece first{0, {prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(chunk)}};
    const std::vector<float> logits = runner.step({&first, 1});
    EXPECT_LE(max_difference(logits, golden_rows(0, chunk)), tolerance()) << what;
    for (size_t at = chunk; at < prompt.size(); ++at) {
      const Piece one{0, {prompt[at]}};
      const std::vector<float> row = runner.step({&one, 1});
      ASSERT_LE(max_difference(row, golden_rows(at, 1)), tolerance()) << what << ", " << at;
    }
  };
  for (const int64_t on_device : {layers, models::kAllLayers}) {
    int64_t last = 0;
    for (int64_t count = 1; count <= layers; ++count) {
      const int64_t visit = count == 1 ? 0 : 2;
      model_ = load({.device = &device,
                     .gpu_layers = on_device,
                     .host = &cpu_device(),
                     .cpu_moe_layers = count,
                     .op_offload_min_batch = visit});
      EXPECT_GE(model_->cpu_moe_layers(), last);
      last = model_->cpu_moe_layers();
      EXPECT_LE(last, count - model_->host_layers().count);
      EXPECT_EQ(model_->visiting_bytes(1), 0);
      if (on_device == models::kAllLayers) {
        EXPECT_EQ(model_->visiting_bytes(2) > 0, visit > 0 && last > 0 && may_visit(true));
      }
      check_answers(cat(count, " of ", layers));
    }
    EXPECT_GT(last, 0);
  }
  // Without experts on the host nothing waits for it, and all layers on the host have their own.
  EXPECT_EQ(load({.device = &device})->cpu_moe_layers(), 0);
  EXPECT_EQ(load({.device = &device,
                  .gpu_layers = 1,
                  .host = &cpu_device(),
                  .cpu_moe_layers = models::kAllLayers})
                ->cpu_moe_layers(),
            0);
}

TEST_P(GoldenTest, NoSuchNumberOfExpertsOnTheHost) {
  expect_error(Code::invalid_argument, {"cpu_moe_layers"},
               [&] { load({.host = &cpu_device(), .cpu_moe_layers = -1}); });
  expect_error(Code::invalid_argument, {"cpu_moe_layers"}, [&] { load({.cpu_moe_layers = 1}); });
}

TEST_P(GoldenTest, NoSuchNumberOfLayersOnTheDevice) {
  EXPECT_FALSE(load({.gpu_layers = model_->config().layers + 1})->host_layers().any());
  for (const int64_t wanted : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    expect_error(Code::invalid_argument, {"gpu_layers"},
                 [&] { load({.gpu_layers = wanted, .host = &cpu_device()}); });
  }
}

TEST_P(GoldenTest, ProgressEndsAtTheTotal) {
  int64_t previous = 0, last_total = 0;
  bool grows = true;
  load({.progress = [&](int64_t done, int64_t total) {
    grows = grows && done >= previous && done <= total;
    previous = done;
    last_total = total;
  }});
  EXPECT_TRUE(grows);
  EXPECT_GT(last_total, 0);
  EXPECT_EQ(previous, last_total);
}

TEST_P(GoldenTest, Figures) {
  const models::ModelConfig& config = model_->config();
  EXPECT_EQ(config.layers, static_cast<int64_t>(golden_.hidden.size()));
  EXPECT_EQ(config.vocab_size, 160);
  EXPECT_EQ(model_->quantization(), GetParam().golden.type);
  if (GetParam().golden.packed_tolerance == 0) {
    EXPECT_GE(model_->weight_bytes(), 2 * model_->parameters());
  }
  // Embeddings have two bytes or four, matrices hardly more than one.
  if (GetParam().golden.e4m3) {
    EXPECT_LT(2 * model_->weight_bytes(), 3 * model_->parameters());
  }
  // The rope_freqs tensor of a GGUF file counts too.
  if (GetParam().golden.parameters > 0) {
    EXPECT_EQ(model_->parameters(), GetParam().golden.parameters);
  }
}

// Whoever checks an adapter before the model is loaded sees what its worker will.
TEST_P(GoldenTest, TheCheckpointTellsWhichMatricesAdaptersMayChange) {
  for (const bool gguf : {false, true}) {
    std::map<std::string, Shape> loaded;
    for (const nn::LoraTarget& target : model_->lora_targets()) {
      const std::string& name = gguf ? target.gguf : target.hf;
      if (!name.empty()) loaded.emplace(name, Shape{target.total_rows, target.total_inputs});
    }
    if (gguf && loaded.empty()) continue;
    EXPECT_EQ(models::lora_matrices(io::Checkpoint::open(checkpoint_path()), gguf), loaded);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(all_params()), [](const auto& test) {
  return std::string(test.param.golden.name) + (test.param.gguf ? "_gguf" : "_safetensors");
});

}  // namespace
}  // namespace rbee::test

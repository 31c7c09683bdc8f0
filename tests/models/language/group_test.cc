// Models that ranks of a group compute together: what a rank holds, uneven shares, and what is
// refused. golden_test compares every family with its goldens when RBEE_TEST_RANKS is set.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/models/lora_adapter.h"
#include "tests/models/language/group_model.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"
#include "tests/support/npy.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;

fs::path data(const std::string& name) {
  return fs::path(test::data_folder()) / "models/language/data" / name;
}

io::Checkpoint folder_of(const char* model) {
  return io::Checkpoint::open(data(model) / "hf");
}

models::LoadOptions options() {
  return {.device = &cpu_device(), .context = 24};
}

// The prompts' logits, token after token of each prompt.
std::vector<float> logits_of(const models::LanguageModel& model, const char* name,
                             const std::vector<std::pair<int32_t, float>>& lora = {}) {
  const auto ids = read_npy<int32_t>(data(name) / "ids.npy").values;
  const auto lengths = read_npy<int32_t>(data(name) / "lengths.npy").values;
  ModelRunner runner(model, std::ssize(lengths), 32);
  std::vector<Piece> pieces;
  auto from = ids.begin();
  for (const int32_t length : lengths) {
    pieces.push_back({.sequence = std::ssize(pieces), .ids = {from, from + length}, .lora = lora});
    from += length;
  }
  return runner.step(pieces);
}

using Parts = std::vector<double>;

std::unique_ptr<GroupModel> group_of(const char* model, const Parts& parts,
                                     bool expert_parallel = false) {
  models::LoadOptions own = options();
  own.expert_parallel = expert_parallel;
  return std::make_unique<GroupModel>(folder_of(model), own, static_cast<int>(parts.size()), parts);
}

// Also ranks without heads, without hidden columns and without tokens of the vocabulary.
class UnevenGroupTest : public testing::TestWithParam<Parts> {
 protected:
  void SetUp() override {
    if (&device_under_test() != &cpu_device()) GTEST_SKIP() << "every rank is on the CPU";
  }
};

TEST_P(UnevenGroupTest, LogitsOfTheWholeModel) {
  // Dense with key heads for several queries; experts with biases; latents; biases and tied
  // embeddings; blocks across the cuts of heads.
  for (const char* model :
       {"llama", "mixtral", "qwen2_moe", "deepseek_v3", "gpt_oss", "qwen2", "llama_fp8_groups"}) {
    SCOPED_TRACE(model);
    const auto whole = models::load_language_model(folder_of(model), options());
    const std::vector<float> wanted = logits_of(*whole, model);
    const bool rounded = std::string_view(model) == "gpt_oss";
    EXPECT_LE(max_difference(logits_of(*group_of(model, GetParam()), model), wanted),
              rounded ? 0.6f : kLogitBound);
  }
}

// Whole experts by range: also ranks without any.
TEST_P(UnevenGroupTest, LogitsOfExpertsByRange) {
  for (const char* model : {"mixtral", "qwen2_moe", "deepseek_v3", "gpt_oss"}) {
    SCOPED_TRACE(model);
    const auto whole = models::load_language_model(folder_of(model), options());
    const std::vector<float> wanted = logits_of(*whole, model);
    const bool rounded = std::string_view(model) == "gpt_oss";
    EXPECT_LE(max_difference(logits_of(*group_of(model, GetParam(), true), model), wanted),
              rounded ? 0.6f : kLogitBound);
  }
}

TEST_P(UnevenGroupTest, LogitsWithAnAdapter) {
  const auto whole = models::load_language_model(folder_of("llama"), options());
  const auto group = group_of("llama", GetParam());
  for (const models::LanguageModel* model :
       std::initializer_list<const models::LanguageModel*>{whole.get(), group.get()}) {
    models::LoraAdapter(data("lora") / "llama_all", *model).put(1);
  }
  const std::vector<float> wanted = logits_of(*whole, "llama", {{1, 1.0f}});
  EXPECT_GT(max_difference(wanted, logits_of(*whole, "llama")), 0.01f) << "it changes nothing";
  EXPECT_LE(max_difference(logits_of(*group, "llama", {{1, 1.0f}}), wanted), kLogitBound);
}

INSTANTIATE_TEST_SUITE_P(Parts, UnevenGroupTest,
                         testing::Values(Parts{3, 1}, Parts{1, 0}, Parts{0, 1}, Parts{0, 1, 2}));

TEST(GroupModel, RanksHoldPartsOfTheModel) {
  const auto whole = models::load_language_model(folder_of("llama"), options());
  const auto group = group_of("llama", {1, 1});
  int64_t kv_heads = 0, tokens = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const models::LanguageModel& own = group->rank(rank);
    EXPECT_LT(own.weight_bytes(), whole->weight_bytes());
    EXPECT_EQ(own.parameters(), whole->parameters()) << "the model's";
    EXPECT_EQ(own.group().rank, rank);
    EXPECT_EQ(own.config().kv_heads, whole->config().kv_heads);
    kv_heads += own.cache_shape().layers.front().kv_heads;
    EXPECT_EQ(own.vocabulary().own().first, tokens);
    tokens = own.vocabulary().own().end();
  }
  EXPECT_EQ(kv_heads, whole->config().kv_heads);
  EXPECT_EQ(tokens, whole->config().vocab_size);
  EXPECT_EQ(whole->vocabulary().own(), (group::Range{0, tokens}));
  EXPECT_TRUE(whole->group().alone());
}

// A rank with few of the experts has less than one with many, and both know the whole model.
TEST(GroupModel, RanksHoldRangesOfTheExperts) {
  const auto whole = models::load_language_model(folder_of("mixtral"), options());
  const auto columns = group_of("mixtral", {3, 1}), ranges = group_of("mixtral", {3, 1}, true);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_LT(ranges->rank(rank).weight_bytes(), whole->weight_bytes());
    EXPECT_EQ(ranges->rank(rank).parameters(), whole->parameters());
  }
  EXPECT_GT(ranges->rank(0).weight_bytes(), ranges->rank(1).weight_bytes());
  // Each weight is on one rank in both ways; slices of experts may be padded.
  EXPECT_LE(ranges->weight_bytes(), columns->weight_bytes());
}

// Latents are whole on every rank.
TEST(GroupModel, CacheOfLatents) {
  const auto group = group_of("deepseek_v3", {1, 1});
  for (int rank = 0; rank < 2; ++rank) {
    const models::CacheShape shape = group->rank(rank).cache_shape();
    EXPECT_EQ(shape.layers.front().kv_heads, group->config().kv_heads);
    EXPECT_TRUE(shape.one_tensor);
  }
}

// GroupModel::states() compares the ranks' states bit by bit.
TEST(GroupModel, RanksHaveTheSameStates) {
  const auto group = group_of("llama", {1, 1, 1});
  nn::KvCache cache({.layers = group->cache_shape().layers, .blocks = 1, .block_size = 4},
                    cpu_device());
  const auto ints = [](std::vector<int32_t> values, const Shape& shape) {
    return from_host<int32_t>(values, shape, cpu_device());
  };
  models::ForwardBatch batch;
  batch.ids = ints({5, 9, 17}, {3});
  batch.positions = ints({0, 1, 2}, {3});
  batch.paged = {.seq_starts = ints({0, 3}, {2}),
                 .kv_lens = ints({3}, {1}),
                 .block_table = ints({0}, {1, 1}),
                 .slots = ints({0, 1, 2}, {3})};
  batch.logit_rows = ints({0, 1, 2}, {3});
  EXPECT_NO_THROW(group->states(batch, cache));
}

TEST(GroupModel, WhatGroupsRefuse) {
  const auto refused = [](const char* model, Code code, const std::vector<std::string>& parts,
                          const std::function<void(models::LoadOptions&)>& change) {
    const harness::RankThreads threads(2);
    models::LoadOptions own = options();
    own.group = {.share = {.rank = 1, .ranks = 2}, .view = threads.view(1)};
    change(own);
    expect_error(code, parts, [&] { models::load_language_model(folder_of(model), own); });
  };
  const auto nothing = [](models::LoadOptions&) {};
  refused("olmo2", Code::unsupported, {"norm over all heads", "OLMo 2"}, nothing);
  refused("llama_gptq_order", Code::unsupported, {"o_proj.weight", "desc_act", "rbee quantize"},
          nothing);
  refused("llama", Code::unsupported, {"layers or experts on the host"},
          [](models::LoadOptions& own) { own.gpu_layers = 1, own.host = &cpu_device(); });
  refused("mixtral", Code::unsupported, {"layers or experts on the host"},
          [](models::LoadOptions& own) { own.cpu_moe_layers = 1, own.host = &cpu_device(); });
  refused("llama", Code::invalid_argument, {"no experts", "--enable-expert-parallel"},
          [](models::LoadOptions& own) { own.expert_parallel = true; });
  refused("llama", Code::invalid_argument, {"rank 0 of 2", "rank 1 of 2"},
          [](models::LoadOptions& own) { own.group.share.rank = 0; });
  refused("llama", Code::invalid_argument, {"3 parts", "2 ranks"},
          [](models::LoadOptions& own) { own.group.share.parts = {1, 1, 1}; });
}

TEST(GroupModel, MoreRanksThanHeads) {
  const auto whole = models::load_language_model(folder_of("llama"), options());
  const auto ranks = static_cast<int>(whole->config().heads) + 1;
  expect_error(Code::unsupported, {"more ranks than heads"},
               [&] { GroupModel(folder_of("llama"), options(), ranks); });
}

}  // namespace
}  // namespace rbee::test

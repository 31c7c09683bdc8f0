// Which part of a model each rank holds: for the shapes of real models, and for uneven shares.

#include "rbee/group/share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"

namespace rbee::group {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct ModelShape {
  const char* name;
  int64_t heads, kv_heads, ffn, vocab;
};

// From the models' config.json; ffn is that of an expert, where there are experts.
constexpr ModelShape kModels[] = {
    {"Llama-3-8B", 32, 8, 14336, 128256},    {"Llama-3-70B", 64, 8, 28672, 128256},
    {"Llama-3.2-1B", 32, 8, 8192, 128256},   {"SmolLM2-135M", 9, 3, 1536, 49152},
    {"Qwen2.5-0.5B", 14, 2, 4864, 151936},   {"Qwen2.5-7B", 28, 4, 18944, 152064},
    {"Qwen2.5-72B", 64, 8, 29568, 152064},   {"Qwen3-30B-A3B", 32, 4, 768, 151936},
    {"Mixtral-8x7B", 32, 8, 14336, 32000},   {"GPT-OSS-120B", 64, 8, 2880, 201088},
    {"Gemma-3-4B", 8, 4, 10240, 262208},     {"Phi-3-mini", 32, 32, 8192, 32064},
    {"DeepSeek-V3", 128, 128, 2048, 129280}, {"StableLM-2-1.6B", 32, 32, 5632, 100352},
};

std::vector<Range> ranges(const Share& share, int64_t total, int64_t unit) {
  std::vector<Range> out;
  for (int rank = 0; rank < share.ranks; ++rank) out.push_back(share.range(total, unit, rank));
  return out;
}

// Neighbours adjoin, nothing is left over, and cuts are at units.
void expect_cover(const Share& share, int64_t total, int64_t unit) {
  int64_t at = 0;
  for (const Range& range : ranges(share, total, unit)) {
    EXPECT_EQ(range.first, at);
    EXPECT_GE(range.count, 0);
    EXPECT_TRUE(range.end() % unit == 0 || range.end() == total) << range.end();
    at = range.end();
  }
  EXPECT_EQ(at, total);
}

void expect_heads_cover(const Share& share, const ModelShape& model) {
  const int64_t each = model.heads / model.kv_heads;
  int64_t at = 0;
  for (int rank = 0; rank < share.ranks; ++rank) {
    Share own = share;
    own.rank = rank;
    const HeadShare heads = share_heads(own, model.heads, model.kv_heads);
    EXPECT_EQ(heads.queries.first, at);
    at = heads.queries.end();
    if (heads.queries.count == 0) continue;
    // Every query's key head is there, and as many queries read each: kernels divide so.
    EXPECT_EQ(heads.keys.first, heads.queries.first / each);
    EXPECT_EQ(heads.keys.end(), (heads.queries.end() - 1) / each + 1);
    EXPECT_EQ(heads.queries.count % heads.keys.count, 0);
    if (heads.keys.count > 1) {
      EXPECT_EQ(heads.queries.count, heads.keys.count * each);
    }
  }
  EXPECT_EQ(at, model.heads);
}

TEST(Share, PartsOfRealModelsCoverThem) {
  for (const ModelShape& model : kModels) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      SCOPED_TRACE(cat(model.name, " on ", ranks));
      const Share share{.ranks = ranks};
      for (const int64_t unit : {1, 32, 128, 256}) expect_cover(share, model.ffn, unit);
      expect_cover(share, model.vocab, 64);
      expect_heads_cover(share, model);
    }
  }
}

TEST(Share, PartsOfUnequalRanksCoverModels) {
  for (const ModelShape& model : kModels) {
    for (const std::vector<double>& parts :
         {std::vector<double>{3, 1}, {1, 3}, {0, 1}, {1, 0}, {5, 0, 2}, {0.1, 0.2, 0.3, 0.4}}) {
      SCOPED_TRACE(cat(model.name, " on ", parts.size(), " from ", parts[0]));
      const Share share{.ranks = static_cast<int>(parts.size()), .parts = parts};
      check_share(share);
      for (const int64_t unit : {1, 32, 128, 256}) expect_cover(share, model.ffn, unit);
      expect_heads_cover(share, model);
    }
  }
}

TEST(Share, EqualPartsDifferByOneUnitAtMost) {
  for (const ModelShape& model : kModels) {
    for (int ranks = 2; ranks <= 8; ++ranks) {
      const Share share{.ranks = ranks};
      const double fair = static_cast<double>(model.ffn) / ranks;
      for (const Range& range : ranges(share, model.ffn, 32)) {
        EXPECT_LE(std::fabs(static_cast<double>(range.count) - fair), 32) << model.name;
      }
    }
  }
}

TEST(Share, CutsAreNearestToTheParts) {
  EXPECT_THAT(ranges({.ranks = 2}, 768, 256), ElementsAre(Range{0, 512}, Range{512, 256}));
  EXPECT_THAT(ranges({.ranks = 2, .parts = {3, 1}}, 1024, 128),
              ElementsAre(Range{0, 768}, Range{768, 256}));
  EXPECT_THAT(ranges({.ranks = 3, .parts = {1, 0, 1}}, 64, 32),
              ElementsAre(Range{0, 32}, Range{32, 0}, Range{32, 32}));
  EXPECT_THAT(ranges({.ranks = 2}, 97, 64), ElementsAre(Range{0, 64}, Range{64, 33}));
  EXPECT_THAT(ranges({}, 97, 64), ElementsAre(Range{0, 97}));
  EXPECT_THAT(ranges({.ranks = 2}, 0, 1), ElementsAre(Range{0, 0}, Range{0, 0}));
}

TEST(Share, TheUnitLeavesEveryRankAPart) {
  const std::vector<int64_t> units{256, 128, 32};
  EXPECT_EQ((Share{.ranks = 2}.unit_for_all(1024, units)), 256);
  EXPECT_EQ((Share{.ranks = 8}.unit_for_all(1024, units)), 128);
  EXPECT_EQ((Share{.ranks = 2}.unit_for_all(96, units)), 32);
  // None does: a rank gets nothing.
  EXPECT_EQ((Share{.ranks = 4}.unit_for_all(96, units)), 32);
  EXPECT_EQ((Share{.ranks = 2, .parts = {1, 0}}.unit_for_all(1024, units)), 32);
}

std::vector<int64_t> queries_of(int ranks, int64_t heads, int64_t kv_heads) {
  std::vector<int64_t> out;
  for (int rank = 0; rank < ranks; ++rank) {
    out.push_back(share_heads({.rank = rank, .ranks = ranks}, heads, kv_heads).queries.count);
  }
  return out;
}

TEST(Share, HeadsOfKnownModels) {
  // SmolLM2-135M: 9 heads on 3.
  EXPECT_THAT(queries_of(2, 9, 3), ElementsAre(6, 3));
  // Qwen2.5-7B on more ranks than key heads: they share a key head's seven queries.
  EXPECT_THAT(queries_of(8, 28, 4), ElementsAre(4, 3, 4, 3, 4, 3, 4, 3));
  EXPECT_THAT(queries_of(3, 8, 2), ElementsAre(2, 2, 4));
}

TEST(Share, MoreRanksThanHeadsAreRefused) {
  EXPECT_EQ(queries_of(4, 8, 2).size(), 4U);
  try {
    share_heads({.rank = 0, .ranks = 5}, 4, 2);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("more ranks than heads"));
  }
}

TEST(Share, BadSharesAreRefused) {
  const auto refused = [](const Share& share, const char* first, const char* second) {
    harness::expect_error("group", first, second, [&] { check_share(share); });
  };
  refused({.ranks = 0}, "ranks is 0", "at least 1");
  refused({.rank = 2, .ranks = 2}, "rank is 2", "0 to 1");
  refused({.rank = -1, .ranks = 2}, "rank is -1", "0 to 1");
  refused({.ranks = 2, .parts = {1}}, "1 parts", "2 ranks");
  refused({.ranks = 2, .parts = {1, -1}}, "a part is -1", "0 or above");
  refused({.ranks = 2, .parts = {1, NAN}}, "a part is", "finite");
  refused({.ranks = 2, .parts = {0, 0}}, "sum of the parts is 0", "above 0");
  refused({.ranks = 2, .parts = {1e308, 1e308}}, "sum of the parts", "finite");
}

}  // namespace
}  // namespace rbee::group

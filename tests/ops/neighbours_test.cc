// A row's result in a step depends only on its own sequence: not a bit changes with the rows beside
// it or the chunks of a prompt. docs/design/engine.md lists the exceptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/cpu_features.h"
#include "rbee/ops/attention.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/linear.h"
#include "tests/linear/rounded_inputs.h"

namespace rbee::harness {
namespace {

std::vector<float> floats_of(const Tensor& x) {
  return x.to_host<float>();
}

bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

// Tiles of AMX round x differently.
bool has_tiles() {
  return cpu::missing_isa(cpu::Isa::amx) == nullptr;
}

void expect_own_rows(DType weight, int64_t outs, int64_t in, bool biased) {
  SCOPED_TRACE(cat(name(weight), ", ", outs, " x ", in, biased ? ", bias" : ""));
  uint64_t state = 17;
  const Tensor packed = pack_weight(random_tensor({outs, in}, weight, state));
  const Tensor bias = biased ? random_tensor({outs}, DType::f32, state) : Tensor{};
  constexpr int64_t kMost = 45;
  const Tensor x = random_tensor({kMost, in}, DType::f32, state);
  std::vector<float> alone;
  for (int64_t row = 0; row < kMost; ++row) {
    const std::vector<float> y = floats_of(linear(x.slice(Axis{0}, row, 1), packed, bias));
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (const int64_t rows : {2, 3, 4, 13, 32, 45}) {
    const std::vector<float> y = floats_of(linear(x.slice(Axis{0}, 0, rows), packed, bias));
    EXPECT_TRUE(same_bits(y.data(), alone.data(), rows * outs)) << rows << " rows";
  }
}

TEST(Neighbours, ChangeNoBitOfALinearLayer) {
  if (has_tiles()) GTEST_SKIP() << "tiles of AMX round x otherwise";
  for (const DType weight :
       {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_k, DType::q3_k,
        DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4,
        DType::iq1_m, DType::iq2_xxs, DType::iq3_s, DType::tq1_0, DType::nvfp4}) {
    expect_own_rows(weight, 35, 2304, true);
    expect_own_rows(weight, 1600, 256, false);  // two panels at a time
  }
}

// A cache with keys and values of several sequences, each in its own blocks.
struct Cached {
  int64_t heads, kv_heads, dim;
  PagedAttentionOptions options = {};
  bool alibi = false;
};

constexpr int64_t kBlock = 16, kKeys = 1500, kSequences = 9;

class PagedRows {
 public:
  explicit PagedRows(const Cached& c) : c_(c) {
    uint64_t state = 23;
    const int64_t blocks = kSequences * width();
    k_ = random_tensor({blocks, c.kv_heads, kBlock, c.dim}, DType::f32, state);
    v_ = random_tensor({blocks, c.kv_heads, kBlock, c.dim}, DType::f32, state);
    q_ = random_tensor({kSequences * kKeys, c.heads, c.dim}, DType::f32, state);
    if (!c.alibi) return;
    std::vector<float> slopes;
    for (int64_t i = 0; i < c.heads; ++i) slopes.push_back(0.5f / static_cast<float>(1 << i));
    c_.options.alibi_slopes = from_host<float>(slopes, {c.heads}, cpu_device());
  }

  // Queries [first, first + count) of a sequence.
  struct Part {
    int64_t sequence, first, count;
  };
  // Results, part by part.
  std::vector<float> attend(const std::vector<Part>& parts) const {
    std::vector<int32_t> starts{0}, lengths, table;
    std::vector<Tensor> queries;
    for (const Part& part : parts) {
      starts.push_back(starts.back() + static_cast<int32_t>(part.count));
      lengths.push_back(static_cast<int32_t>(part.first + part.count));
      for (int64_t i = 0; i < width(); ++i) {
        table.push_back(static_cast<int32_t>(part.sequence * width() + i));
      }
    }
    const int64_t row = c_.heads * c_.dim;
    std::vector<float> q;
    const auto* all = q_.data<float>();
    for (const Part& part : parts) {
      const float* from = all + (part.sequence * kKeys + part.first) * row;
      q.insert(q.end(), from, from + part.count * row);
    }
    const auto count = static_cast<int64_t>(parts.size());
    const PagedBatch batch{
        .seq_starts = from_host<int32_t>(starts, {count + 1}, cpu_device()),
        .kv_lens = from_host<int32_t>(lengths, {count}, cpu_device()),
        .block_table = from_host<int32_t>(table, {count, width()}, cpu_device())};
    const Tensor input = from_host<float>(q, {starts.back(), c_.heads, c_.dim}, cpu_device());
    return floats_of(paged_attention(input, k_, v_, batch, c_.options));
  }
  int64_t row() const { return c_.heads * c_.dim; }
  // A query of the first sequence is NaN from here on.
  void spoil_query(int64_t at) {
    std::vector<float> q = floats_of(q_);
    std::fill_n(q.begin() + at * row(), row(), std::nanf(""));
    q_ = from_host<float>(q, {kSequences * kKeys, c_.heads, c_.dim}, cpu_device());
  }
  // The first `count` rows of the first sequence, by the attention of tensors.
  std::vector<float> attend_whole(int64_t count) const {
    const auto heads_first = [&](const Tensor& x) {
      return x.slice(Axis{0}, 0, count).permute({1, 0, 2}).unsqueeze(Axis{0});
    };
    const auto rows_of = [&](const Tensor& cache) {
      const Tensor rows = contiguous(cache.permute({0, 2, 1, 3}));
      return heads_first(rows.reshape({rows.dim(0) * kBlock, c_.kv_heads, c_.dim}));
    };
    const Tensor y = attention(heads_first(q_), rows_of(k_), rows_of(v_),
                               {.softcap = c_.options.softcap,
                                .window = c_.options.window,
                                .causal = true,
                                .alibi_slopes = c_.options.alibi_slopes});
    return floats_of(y.permute({0, 2, 1, 3}));
  }

 private:
  static int64_t width() { return (kKeys + kBlock - 1) / kBlock; }
  Cached c_;
  Tensor k_, v_, q_;
};

const std::vector<Cached> kCached = {
    {.heads = 9, .kv_heads = 3, .dim = 64},
    {.heads = 2, .kv_heads = 2, .dim = 40},
    {.heads = 4, .kv_heads = 1, .dim = 128, .options = {.softcap = 20}},
    {.heads = 4, .kv_heads = 2, .dim = 32, .options = {.window = 700}},
    {.heads = 4, .kv_heads = 2, .dim = 32, .alibi = true}};

TEST(PagedRows, AreThoseOfTheAttentionOfTensors) {
  constexpr int64_t kCount = 70;
  for (const Cached& c : kCached) {
    const PagedRows rows(c);
    EXPECT_THAT(rows.attend({{0, 0, kCount}}),
                ::testing::Pointwise(::testing::FloatNear(1e-5f), rows.attend_whole(kCount)));
  }
}

// A model that computes NaN is found out by its logits: attention may not make it a zero, and not
// spread it to the rows beside it.
TEST(Neighbours, DoNotHideOrShareTheNaNOfAQuery) {
  for (const Cached& c : kCached) {
    const PagedRows rows(c);
    const auto count_of = [&](const std::vector<float>& y) {
      return std::ranges::count_if(y, [](float x) { return std::isnan(x); });
    };
    for (const int64_t spoilt : {0, 1, 40, 1300}) {
      const PagedRows::Part prompt{0, 0, 70}, single{0, spoilt, 1};
      PagedRows with_nan = rows;
      with_nan.spoil_query(spoilt);
      EXPECT_EQ(count_of(with_nan.attend({single, {1, spoilt, 1}})), rows.row()) << spoilt;
      EXPECT_EQ(count_of(with_nan.attend({prompt})), spoilt < 70 ? rows.row() : 0) << spoilt;
      EXPECT_EQ(count_of(with_nan.attend_whole(70)), spoilt < 70 ? rows.row() : 0) << spoilt;
    }
  }
}

TEST(Neighbours, ChangeNoBitOfASingleQuerysAttention) {
  for (const Cached& c : kCached) {
    const PagedRows rows(c);
    std::vector<PagedRows::Part> parts;
    for (int64_t i = 0; i < kSequences; ++i) parts.push_back({i, 3 + i * 170, 1});
    parts.push_back({0, 600, 90});  // a prompt beside them
    const std::vector<float> together = rows.attend(parts);
    for (int64_t i = 0; i < kSequences; ++i) {
      const std::vector<float> alone = rows.attend({parts[static_cast<size_t>(i)]});
      EXPECT_TRUE(same_bits(together.data() + i * rows.row(), alone.data(), rows.row()))
          << c.heads << " heads of " << c.dim << ", " << parts[static_cast<size_t>(i)].first;
    }
  }
}

TEST(Neighbours, ChunksChangeNoBitOfAPromptsAttention) {
  for (const Cached& c : kCached) {
    const PagedRows rows(c);
    const std::vector<float> whole = rows.attend({{1, 0, kKeys}});
    for (const int64_t chunk : {2, 7, 48, 130, 512}) {
      int64_t first = chunk == 2 ? 1300 : 0;
      for (; first + chunk <= kKeys; first += chunk) {
        const std::vector<float> part = rows.attend({{0, 40, 1}, {1, first, chunk}, {2, 9, 33}});
        ASSERT_TRUE(same_bits(part.data() + rows.row(), whole.data() + first * rows.row(),
                              chunk * rows.row()))
            << c.heads << " heads of " << c.dim << ", tokens " << first << " to " << first + chunk;
      }
    }
  }
}

}  // namespace
}  // namespace rbee::harness

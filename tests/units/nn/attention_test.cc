#include "rbee/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rbee/nn/kv_cache.h"
#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {
namespace {

using testing::FloatNear;
using testing::Pointwise;

constexpr int64_t kDim = 8, kHeads = 4, kKvHeads = 2, kHeadDim = 4, kTokens = 5;
constexpr int64_t kQRows = kHeads * kHeadDim, kKvRows = kKvHeads * kHeadDim;
constexpr double kEps = 1e-5;

using Matrix = std::vector<std::vector<double>>;  // rows

struct Weights {
  std::vector<float> q = random_values(kQRows * kDim, 1);
  std::vector<float> k = random_values(kKvRows * kDim, 2);
  std::vector<float> v = random_values(kKvRows * kDim, 3);
  std::vector<float> out = random_values(kDim * kQRows, 4);
  std::vector<float> q_norm = random_values(kHeadDim, 5);
  std::vector<float> k_norm = random_values(kHeadDim, 6);
};

Matrix multiply(const Matrix& x, const std::vector<float>& weight) {
  Matrix y(x.size());
  for (size_t row = 0; row < x.size(); ++row) {
    const size_t in = x[row].size();
    for (size_t at = 0; at < weight.size(); at += in) {
      double sum = 0;
      for (size_t i = 0; i < in; ++i) sum += x[row][i] * double{weight[at + i]};
      y[row].push_back(sum);
    }
  }
  return y;
}

void norm_heads(Matrix& x, const std::vector<float>& weight) {
  for (auto& row : x) {
    for (size_t head = 0; head < row.size(); head += kHeadDim) {
      double squares = 0;
      for (size_t i = 0; i < kHeadDim; ++i) squares += row[head + i] * row[head + i];
      const double scale = 1 / std::sqrt(squares / kHeadDim + kEps);
      for (size_t i = 0; i < kHeadDim; ++i) row[head + i] *= scale * double{weight[i]};
    }
  }
}

// Base 100 over heads of four: pairs (0, 2) turn one radian per position, (1, 3) a tenth.
void turn(Matrix& x) {
  for (size_t position = 0; position < x.size(); ++position) {
    for (size_t head = 0; head < x[position].size(); head += kHeadDim) {
      for (size_t i = 0; i < 2; ++i) {
        const double angle = static_cast<double>(position) * (i == 0 ? 1.0 : 0.1);
        double& a = x[position][head + i];
        double& b = x[position][head + i + 2];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
    }
  }
}

// Vaswani et al. 2017, equation 1, per head, over earlier keys within the window.
Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, size_t window) {
  Matrix out(q.size());
  for (size_t token = 0; token < q.size(); ++token) {
    const size_t first = window == 0 || token < window ? 0 : token + 1 - window;
    for (size_t head = 0; head < kHeads; ++head) {
      const size_t from = head * kHeadDim;
      const size_t shared = head / (kHeads / kKvHeads) * kHeadDim;
      std::vector<double> mixed(kHeadDim, 0);
      double total = 0;
      for (size_t key = first; key <= token; ++key) {
        double score = 0;
        for (size_t i = 0; i < kHeadDim; ++i) score += q[token][from + i] * k[key][shared + i];
        const double weight = std::exp(score / 2);  // sqrt(kHeadDim)
        total += weight;
        for (size_t i = 0; i < kHeadDim; ++i) mixed[i] += weight * v[key][shared + i];
      }
      for (const double value : mixed) out[token].push_back(value / total);
    }
  }
  return out;
}

struct Variant {
  bool fused = false;
  bool qk_norm = false;
  int64_t window = 0;
};

std::vector<float> expected(const std::vector<float>& input, const Variant& variant) {
  const Weights weights;
  Matrix x(kTokens);
  for (size_t i = 0; i < input.size(); ++i) x[i / kDim].push_back(input[i]);
  Matrix q = multiply(x, weights.q);
  Matrix k = multiply(x, weights.k);
  if (variant.qk_norm) {
    norm_heads(q, weights.q_norm);
    norm_heads(k, weights.k_norm);
  }
  turn(q);
  turn(k);
  const Matrix v = multiply(x, weights.v);
  const Matrix y = multiply(attend(q, k, v, static_cast<size_t>(variant.window)), weights.out);
  std::vector<float> out;
  for (const auto& row : y) out.insert(out.end(), row.begin(), row.end());
  return out;
}

std::vector<StoredTensor> stored(const Weights& weights, const Variant& variant) {
  std::vector<StoredTensor> tensors{{"blk.1.attn_output.weight", {kDim, kQRows}, weights.out}};
  if (variant.fused) {
    std::vector<float> all = weights.q;
    all.insert(all.end(), weights.k.begin(), weights.k.end());
    all.insert(all.end(), weights.v.begin(), weights.v.end());
    tensors.push_back({"blk.1.attn_qkv.weight", {kQRows + 2 * kKvRows, kDim}, all});
  } else {
    tensors.push_back({"blk.1.attn_q.weight", {kQRows, kDim}, weights.q});
    tensors.push_back({"blk.1.attn_k.weight", {kKvRows, kDim}, weights.k});
    tensors.push_back({"blk.1.attn_v.weight", {kKvRows, kDim}, weights.v});
  }
  if (variant.qk_norm) {
    tensors.push_back({"blk.1.attn_q_norm.weight", {kHeadDim}, weights.q_norm});
    tensors.push_back({"blk.1.attn_k_norm.weight", {kHeadDim}, weights.k_norm});
  }
  return tensors;
}

Tensor indices(const std::vector<int32_t>& values) {
  return device_tensor(values, {static_cast<int64_t>(values.size())});
}

// Tokens [first, last) of the sequence; its keys are in blocks 2, 0 and 1 of two positions.
Tensor run(const nn::Attention& attention, nn::KvCache& cache, const std::vector<float>& input,
           int32_t first, int32_t last) {
  constexpr int32_t kBlocks[] = {2, 0, 1};
  std::vector<int32_t> positions, slots;
  for (int32_t i = first; i < last; ++i) {
    positions.push_back(i);
    slots.push_back(kBlocks[i / 2] * 2 + i % 2);
  }
  const PagedBatch paged{.seq_starts = indices({0, last - first}),
                         .kv_lens = indices({last}),
                         .block_table = device_tensor(std::vector<int32_t>{2, 0, 1}, {1, 3}),
                         .slots = indices(slots)};
  const Tensor places = indices(positions);
  const nn::LayerStep step{.positions = places,
                           .paged = paged,
                           .keys = cache.keys(0),
                           .values = cache.values(0),
                           .logit_rows = {}};
  const std::vector<float> rows(input.begin() + first * kDim, input.begin() + last * kDim);
  return attention(device_tensor(rows, {last - first, kDim}), step);
}

class AttentionTest : public CheckpointFiles {
 protected:
  void expect_matches(const Variant& variant) {
    const io::Checkpoint checkpoint = gguf(stored(Weights(), variant));
    const nn::WeightScope root(checkpoint, {.device = &cpu_device()});
    const nn::Rope rope({.rotary_dim = kHeadDim, .base = 100}, kTokens, cpu_device());
    const nn::Attention attention(root.layer(1),
                                  {.dim = kDim,
                                   .heads = kHeads,
                                   .kv_heads = kKvHeads,
                                   .head_dim = kHeadDim,
                                   .fused = variant.fused,
                                   .qk_norm = variant.qk_norm ? nn::QkNorm::head : nn::QkNorm::none,
                                   .head_norm = {.dim = kHeadDim, .eps = static_cast<float>(kEps)},
                                   .scores = {.window = variant.window}},
                                  rope);
    const std::vector<float> input = random_values(kTokens * kDim, 9);
    const std::vector<float> wanted = expected(input, variant);
    for (const int32_t split : {0, 3}) {  // in one step, and in two
      nn::KvCache cache({.layers = {{.kv_heads = kKvHeads, .head_dim = kHeadDim}},
                         .blocks = 3,
                         .block_size = 2,
                         .dtype = DType::f32},
                        cpu_device());
      std::vector<float> out;
      if (split > 0) out = run(attention, cache, input, 0, split).to_host<float>();
      const std::vector<float> rest = run(attention, cache, input, split, kTokens).to_host<float>();
      out.insert(out.end(), rest.begin(), rest.end());
      EXPECT_THAT(out, Pointwise(FloatNear(1e-5f), wanted)) << "split at " << split;
    }
  }
};

TEST_F(AttentionTest, GroupedQueries) {
  expect_matches({});
}

TEST_F(AttentionTest, FusedProjections) {
  expect_matches({.fused = true});
}

TEST_F(AttentionTest, NormsOnTheHeadsOfQueriesAndKeys) {
  expect_matches({.qk_norm = true});
}

TEST_F(AttentionTest, Window) {
  expect_matches({.window = 2});
}

}  // namespace
}  // namespace rbee::test

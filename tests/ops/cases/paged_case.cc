#include "tests/ops/cases/paged_case.h"

#include <algorithm>
#include <cmath>

namespace rbee::harness {
namespace {

Form cache_form(DType cache) {
  return cache == DType::q8_0 ? Form::pages : Form::contiguous;
}

Values values_of(const PagedCase& c, Operand operand) {
  Values out;
  if (operand != c.undefined) return out;
  int64_t row = c.undefined_row * c.heads;
  if (operand != Operand::q) {
    const int64_t block = c.block_of(0, c.undefined_row / c.block_size);
    row = block * c.kv_heads * c.block_size + c.undefined_row % c.block_size;
  }
  out.undefined = {row * c.head_dim + 3};
  return out;
}

// Element `i` of key or value `key` of a sequence.
double cached(const PagedCase& c, const HostArray& cache, int64_t seq, int64_t key, int64_t head,
              int64_t i) {
  const int64_t block = c.block_of(seq, key / c.block_size);
  return cache[((block * c.kv_heads + head) * c.block_size + key % c.block_size) * c.head_dim + i];
}

void attend(const PagedCase& c, const std::vector<HostArray>& in, int64_t seq, int64_t row,
            int64_t own_end, HostArray& y) {
  const int64_t kv_head = row % c.heads / (c.heads / c.kv_heads);
  const int64_t first = c.window > 0 ? std::max<int64_t>(own_end - c.window, 0) : 0;
  const auto token = static_cast<size_t>(row / c.heads);
  const int64_t end_key =
      c.key_ends.empty() ? own_end : std::max<int64_t>(own_end, c.key_ends[token]);
  const size_t slopes = 6 + (c.sinks ? 1 : 0) + (c.key_ends.empty() ? 0 : 1);
  const double slope = c.alibi ? in[slopes][row % c.heads] : 0;
  std::vector<double> weights;
  double total = 0;
  for (int64_t key = first; key < end_key; ++key) {
    double score = 0;
    for (int64_t i = 0; i < c.head_dim; ++i) {
      score += in[0][row * c.head_dim + i] * cached(c, in[1], seq, key, kv_head, i);
    }
    score *= static_cast<double>(c.scale());
    const double cap = c.softcap;
    // Scores stay far below the largest double, so the maximum need not be subtracted.
    weights.push_back(std::exp((cap == 0 ? score : cap * std::tanh(score / cap)) -
                               slope * static_cast<double>(std::abs(own_end - 1 - key))));
    total += weights.back();
  }
  if (c.sinks) total += std::exp(in[6][row % c.heads]);
  for (int64_t i = 0; i < c.head_dim; ++i) {
    double sum = 0;
    for (int64_t key = first; key < end_key; ++key) {
      sum += weights[static_cast<size_t>(key - first)] * cached(c, in[2], seq, key, kv_head, i);
    }
    y[row * c.head_dim + i] = sum / total;
  }
}

}  // namespace

void append_to(std::string& out, const PagedCase& c) {
  for (const Sequence& seq : c.seqs) out += cat(seq.queries, '/', seq.keys, ' ');
  out += cat("heads ", c.heads, '/', c.kv_heads, " dim ", c.head_dim, " block ", c.block_size, ' ',
             c.dtype, " on ", c.cache);
  if (c.softcap != 0) out += cat(" softcap ", c.softcap);
  if (c.window != 0) out += cat(" window ", c.window);
  if (c.single_queries != 0) out += cat(" single ", c.single_queries);
  if (c.form != Form::contiguous) out += " gaps";
  if (c.sinks) out += " sinks";
  if (!c.key_ends.empty()) out += " key ends";
  if (c.alibi) out += " alibi";
  constexpr const char* kOperands[] = {"", "q", "k", "v"};
  const char* operand = kOperands[static_cast<int>(c.undefined)];
  if (c.undefined != Operand::none) out += cat(" NaN ", operand, ' ', c.undefined_row);
}

PagedAttentionArgs build_paged(const PagedCase& c, Scene& scene) {
  std::vector<int32_t> starts{0}, lens, table;
  double products = 0;
  for (int64_t s = 0; s < std::ssize(c.seqs); ++s) {
    const Sequence& seq = c.seqs[static_cast<size_t>(s)];
    starts.push_back(starts.back() + static_cast<int32_t>(seq.queries));
    lens.push_back(static_cast<int32_t>(seq.keys));
    for (int64_t i = 0; i < c.max_blocks(); ++i) {
      table.push_back(static_cast<int32_t>(c.block_of(s, i)));
    }
    products += static_cast<double>(seq.queries) *
                (static_cast<double>(seq.keys) - static_cast<double>(seq.queries - 1) / 2);
  }
  const auto seqs = static_cast<int64_t>(c.seqs.size());
  const Shape q{c.tokens(), c.heads, c.head_dim};
  const Shape cache{c.blocks(), c.kv_heads, c.block_size, c.head_dim};
  scene.flops = 4.0 * products * static_cast<double>(c.heads * c.head_dim);
  return {
      .q = scene.input({q, c.form}, c.dtype, values_of(c, Operand::q)),
      .k_cache = scene.input({cache, cache_form(c.cache)}, c.cache, values_of(c, Operand::k)),
      .v_cache = scene.input({cache, cache_form(c.cache)}, c.cache, values_of(c, Operand::v)),
      .seq_starts = scene.input_of<int32_t>({seqs + 1}, starts),
      .kv_lens = scene.input_of<int32_t>({seqs}, lens),
      .block_table = scene.input_of<int32_t>({seqs, c.max_blocks()}, table),
      .sinks = c.sinks ? scene.input({{c.heads}}, DType::f32, {-3, 6}) : View{},
      .key_ends = c.key_ends.empty() ? View{} : scene.input_of<int32_t>({c.tokens()}, c.key_ends),
      .alibi_slopes = c.alibi ? scene.input({{c.heads}}, DType::f32, {0, 0.1}) : View{},
      .y = scene.output({q}, c.dtype),
      .single_queries = c.single_queries,
      .scale = c.scale(),
      .softcap = c.softcap,
      .window = c.window};
}

std::vector<HostArray> paged_formula(const PagedCase& c, const std::vector<HostArray>& in) {
  HostArray y = host_zeros(in[0].shape);
  int64_t token = 0;
  for (int64_t s = 0; s < std::ssize(c.seqs); ++s) {
    const Sequence& seq = c.seqs[static_cast<size_t>(s)];
    for (int64_t i = 0; i < seq.queries; ++i, ++token) {
      for (int64_t head = 0; head < c.heads; ++head) {
        attend(c, in, s, token * c.heads + head, seq.keys - seq.queries + 1 + i, y);
      }
    }
  }
  return {y};
}

}  // namespace rbee::harness

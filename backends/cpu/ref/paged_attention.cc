#include "backends/cpu/ref/paged_attention.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"
#include "backends/shared/kv_page.h"

namespace rbee::cpu {
namespace {

// A key or value of one head in a cache of numbers, and in a q8_0 cache.
template <typename KV>
class Row {
 public:
  Row(const View& cache, int64_t element) : at_(cache.as<KV>() + element), step_(cache.stride(3)) {}

  double operator[](int64_t i) const { return static_cast<double>(load(at_[i * step_])); }
  template <typename T>
  void write(const T* from, int64_t from_step, int64_t dim) const {
    for (int64_t i = 0; i < dim; ++i) at_[i * step_] = store<KV>(load(from[i * from_step]));
  }

 private:
  KV* at_;
  int64_t step_;
};

struct Page;
template <>
class Row<Page> {
 public:
  Row(const View& cache, int64_t element) {
    const int64_t rows = cache.size(2);
    const int64_t dim = cache.size(3);
    const int64_t first = element / (rows * dim) * (rows * dim);
    auto* page = cache.as<uint8_t>() + shared::page_start(first);
    codes_ = page + (element - first);
    scales_ = page + shared::page_scales(rows, dim, (element - first) / dim);
  }

  double operator[](int64_t i) const {
    uint16_t bits = 0;
    std::memcpy(&bits, scales_ + i / shared::kPageGroup * 2, sizeof bits);
    return static_cast<double>(to_float(shared::PageCode{codes_[i]}) * shared::float_of_half(bits));
  }
  template <typename T>
  void write(const T* from, int64_t from_step, int64_t dim) const {
    const auto value = [&](int64_t i) { return static_cast<float>(load(from[i * from_step])); };
    for (int64_t first = 0; first < dim; first += shared::kPageGroup) {
      uint32_t most = 0;
      for (int64_t i = first; i < first + shared::kPageGroup; ++i) {
        most = std::max(most, shared::magnitude_bits(value(i)));
      }
      const shared::PageScale scale = shared::page_scale(most);
      for (int64_t i = first; i < first + shared::kPageGroup; ++i) codes_[i] = scale.code(value(i));
      std::memcpy(scales_ + first / shared::kPageGroup * 2, &scale.bits, sizeof scale.bits);
    }
  }

 private:
  uint8_t* codes_;
  uint8_t* scales_;
};

// The element of a cache that a head's row in a slot (block * block_size + offset) begins with.
int64_t element_of(const View& cache, int64_t slot, int64_t head) {
  const int64_t block_size = cache.size(2);
  return slot / block_size * cache.stride(0) + head * cache.stride(1) +
         slot % block_size * cache.stride(2);
}

// The keys or values of one sequence and head.
template <typename KV>
class CacheRows {
 public:
  CacheRows(const View& cache, const View& table, int64_t seq, int64_t head)
      : cache_(cache), table_(table), seq_(seq), head_(head) {}

  Row<KV> operator[](int64_t key) const {
    const int64_t block_size = cache_.size(2);
    const int64_t block =
        table_.as<int32_t>()[seq_ * table_.stride(0) + key / block_size * table_.stride(1)];
    return {cache_, element_of(cache_, block * block_size + key % block_size, head_)};
  }

 private:
  const View& cache_;
  const View& table_;
  int64_t seq_, head_;
};

template <typename Body>
void dispatch_cache(const char* op, const View& cache, Body&& body) {
  if (cache.packing == shared::kPagePacking) return body.template operator()<Page>();
  dispatch<float, f16, bf16, f8e4m3>(op, cache.dtype, body);
}

double slope_of(const PagedAttentionArgs& args, int64_t head) {
  return args.alibi_slopes ? double{args.alibi_slopes.as<float>()[head]} : 0;
}

double capped(double score, double softcap) {
  return softcap == 0 ? score : softcap * std::tanh(score / softcap);
}

struct Query {
  int64_t seq, token, head, kv_head;
  int64_t place;               // its own among the keys
  int64_t first_key, end_key;  // the keys that it sees
};

template <typename T, typename KV>
void attend(const PagedAttentionArgs& args, const Query& query) {
  const int64_t dim = args.q.size(2);
  const T* q = args.q.as<T>() + query.token * args.q.stride(0) + query.head * args.q.stride(1);
  const CacheRows<KV> keys(args.k_cache, args.block_table, query.seq, query.kv_head);
  const CacheRows<KV> values(args.v_cache, args.block_table, query.seq, query.kv_head);
  const double slope = slope_of(args, query.head);
  std::vector<double> weights;
  double top = -std::numeric_limits<double>::infinity();
  for (int64_t key = query.first_key; key < query.end_key; ++key) {
    const Row<KV> k = keys[key];
    double dot = 0;
    for (int64_t i = 0; i < dim; ++i) {
      dot += static_cast<double>(load(q[i * args.q.stride(2)])) * k[i];
    }
    weights.push_back(capped(dot * static_cast<double>(args.scale), args.softcap) -
                      slope * static_cast<double>(std::abs(query.place - key)));
    top = std::max(top, weights.back());
  }
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - top);
  if (args.sinks) total += std::exp(double{args.sinks.as<float>()[query.head]} - top);
  std::vector<double> sums(static_cast<size_t>(dim));
  for (int64_t key = query.first_key; key < query.end_key; ++key) {
    const Row<KV> v = values[key];
    const double weight = weights[static_cast<size_t>(key - query.first_key)];
    for (int64_t i = 0; i < dim; ++i) sums[static_cast<size_t>(i)] += weight * v[i];
  }
  T* y = args.y.as<T>() + query.token * args.y.stride(0) + query.head * args.y.stride(1);
  for (int64_t i = 0; i < dim; ++i) {
    y[i * args.y.stride(2)] = store<T>(total == 0 ? 0 : sums[static_cast<size_t>(i)] / total);
  }
}

template <typename Body>
void for_each_query(const PagedAttentionArgs& args, Body body) {
  const auto* starts = args.seq_starts.as<int32_t>();
  const int64_t heads = args.q.size(1);
  const int64_t group = heads / args.k_cache.size(1);
  for (int64_t seq = 0; seq < args.kv_lens.size(0); ++seq) {
    const int64_t first = starts[seq * args.seq_starts.stride(0)];
    const int64_t end = starts[(seq + 1) * args.seq_starts.stride(0)];
    const int64_t kv_len = args.kv_lens.as<int32_t>()[seq * args.kv_lens.stride(0)];
    for (int64_t token = first; token < end; ++token) {
      const int64_t place = kv_len - (end - token);
      int64_t end_key = place + 1;
      const int64_t first_key = args.window > 0 ? std::max<int64_t>(end_key - args.window, 0) : 0;
      if (args.key_ends) end_key = std::max<int64_t>(end_key, args.key_ends.as<int32_t>()[token]);
      for (int64_t head = 0; head < heads; ++head) {
        body(Query{seq, token, head, head / group, place, first_key, end_key});
      }
    }
  }
}

void run_paged_attention(const PagedAttentionArgs& args, Stream&) {
  dispatch<float, f16, bf16, double>("paged_attention", args.q.dtype, [&]<typename T>() {
    dispatch_cache("paged_attention", args.k_cache, [&]<typename KV>() {
      for_each_query(args, [&](const Query& query) { attend<T, KV>(args, query); });
    });
  });
}

template <typename T, typename KV>
void append_rows(const View& rows, const View& slots, const View& cache) {
  for (int64_t token = 0; token < rows.size(0); ++token) {
    const int32_t slot = slots.as<int32_t>()[token * slots.stride(0)];
    if (slot < 0) continue;
    for (int64_t head = 0; head < rows.size(1); ++head) {
      const T* from = rows.as<T>() + token * rows.stride(0) + head * rows.stride(1);
      const Row<KV> to(cache, element_of(cache, slot, head));
      to.write(from, rows.stride(2), rows.size(2));
    }
  }
}

void run_kv_append(const KvAppendArgs& args, Stream&) {
  dispatch<float, f16, bf16, double>("kv_append", args.k.dtype, [&]<typename T>() {
    dispatch_cache("kv_append", args.k_cache, [&]<typename KV>() {
      append_rows<T, KV>(args.k, args.slots, args.k_cache);
      append_rows<T, KV>(args.v, args.slots, args.v_cache);
    });
  });
}

}  // namespace

const Impl<PagedAttentionArgs> ref_paged_attention{"ref", never_refuse, run_paged_attention};
const Impl<KvAppendArgs> ref_kv_append{"ref", never_refuse, run_kv_append};

}  // namespace rbee::cpu

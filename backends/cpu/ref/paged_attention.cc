#include "backends/cpu/ref/paged_attention.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// Where the cache row of one key or value of one sequence starts.
class CacheRows {
 public:
  CacheRows(const View& cache, const View& table, int64_t seq)
      : cache_(cache), table_(table), seq_(seq) {}

  int64_t at(int64_t key, int64_t kv_head) const {
    const int64_t block_size = cache_.size(2);
    const int32_t block =
        table_.as<int32_t>()[seq_ * table_.stride(0) + key / block_size * table_.stride(1)];
    return block * cache_.stride(0) + kv_head * cache_.stride(1) +
           key % block_size * cache_.stride(2);
  }

 private:
  const View& cache_;
  const View& table_;
  int64_t seq_;
};

double capped(double score, double softcap) {
  return softcap == 0 ? score : softcap * std::tanh(score / softcap);
}

struct Query {
  int64_t seq, token, head, kv_head;
  int64_t first_key, end_key;  // the keys that it sees
};

template <typename T, typename KV>
void attend(const PagedAttentionArgs& args, const Query& query) {
  const int64_t dim = args.q.size(2);
  const T* q = args.q.as<T>() + query.token * args.q.stride(0) + query.head * args.q.stride(1);
  const CacheRows keys(args.k_cache, args.block_table, query.seq);
  const CacheRows values(args.v_cache, args.block_table, query.seq);
  std::vector<double> weights;
  double top = -std::numeric_limits<double>::infinity();
  for (int64_t key = query.first_key; key < query.end_key; ++key) {
    const KV* k = args.k_cache.as<KV>() + keys.at(key, query.kv_head);
    double dot = 0;
    for (int64_t i = 0; i < dim; ++i) {
      dot += static_cast<double>(load(q[i * args.q.stride(2)])) *
             static_cast<double>(load(k[i * args.k_cache.stride(3)]));
    }
    weights.push_back(capped(dot * static_cast<double>(args.scale), args.softcap));
    top = std::max(top, weights.back());
  }
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - top);
  T* y = args.y.as<T>() + query.token * args.y.stride(0) + query.head * args.y.stride(1);
  for (int64_t i = 0; i < dim; ++i) {
    double sum = 0;
    for (int64_t key = query.first_key; key < query.end_key; ++key) {
      const KV* v = args.v_cache.as<KV>() + values.at(key, query.kv_head);
      sum += weights[static_cast<size_t>(key - query.first_key)] *
             static_cast<double>(load(v[i * args.v_cache.stride(3)]));
    }
    y[i * args.y.stride(2)] = store<T>(total > 0 ? sum / total : 0);
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
      const int64_t end_key = kv_len - (end - 1 - token);
      const int64_t first_key = args.window > 0 ? std::max<int64_t>(end_key - args.window, 0) : 0;
      for (int64_t head = 0; head < heads; ++head) {
        body(Query{seq, token, head, head / group, first_key, end_key});
      }
    }
  }
}

void run_paged_attention(const PagedAttentionArgs& args, Stream&) {
  dispatch<float, f16, bf16, double>("paged_attention", args.q.dtype, [&]<typename T>() {
    dispatch<float, f16, bf16, f8e4m3>("paged_attention", args.k_cache.dtype, [&]<typename KV>() {
      for_each_query(args, [&](const Query& query) { attend<T, KV>(args, query); });
    });
  });
}

template <typename T, typename KV>
void append_rows(const View& rows, const View& slots, const View& cache) {
  const int64_t block_size = cache.size(2);
  for (int64_t token = 0; token < rows.size(0); ++token) {
    const int32_t slot = slots.as<int32_t>()[token * slots.stride(0)];
    if (slot < 0) continue;
    for (int64_t head = 0; head < rows.size(1); ++head) {
      const T* from = rows.as<T>() + token * rows.stride(0) + head * rows.stride(1);
      KV* to = cache.as<KV>() + slot / block_size * cache.stride(0) + head * cache.stride(1) +
               slot % block_size * cache.stride(2);
      for (int64_t i = 0; i < rows.size(2); ++i) {
        to[i * cache.stride(3)] = store<KV>(load(from[i * rows.stride(2)]));
      }
    }
  }
}

void run_kv_append(const KvAppendArgs& args, Stream&) {
  dispatch<float, f16, bf16, double>("kv_append", args.k.dtype, [&]<typename T>() {
    dispatch<float, f16, bf16, f8e4m3>("kv_append", args.k_cache.dtype, [&]<typename KV>() {
      append_rows<T, KV>(args.k, args.slots, args.k_cache);
      append_rows<T, KV>(args.v, args.slots, args.v_cache);
    });
  });
}

}  // namespace

const Impl<PagedAttentionArgs> ref_paged_attention{"ref", never_refuse, run_paged_attention};
const Impl<KvAppendArgs> ref_kv_append{"ref", never_refuse, run_kv_append};

}  // namespace rbee::cpu

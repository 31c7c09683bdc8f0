#include <cmath>
#include <utility>

#include "backends/api/args_attention.h"
#include "rbee/ops/attention.h"
#include "rbee/ops/attention_checks.h"
#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {

bool is_cache_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 ||
         dtype == DType::f8e4m3 || dtype == DType::q8_0;
}

Tensor empty_cache(const Shape& shape, DType dtype, Device& device, bool in_host_memory) {
  constexpr const char* kOp = "kv_cache";
  check(is_cache_dtype(dtype), kOp, "a cache holds f32, f16, bf16, f8e4m3 or q8_0, not ", dtype);
  check(shape.rank() == 4, kOp, "its shape is (", shape,
        "), wanted blocks, kv_heads, block_size and head_dim");
  const auto make = in_host_memory ? empty_in_host_memory : empty;
  if (dtype != DType::q8_0) return make(shape, dtype, device);
  check(shape[3] % kPageGroup == 0, kOp, "heads of ", shape[3],
        " elements do not fit q8_0, which takes multiples of ", kPageGroup,
        "; choose another type for the cache");
  const Tensor made = make(shape, dtype, device);
  View pages = made.view();
  pages.packing = kPagePacking;
  return Tensor::from_buffer(made.buffer(), pages);
}

namespace {

void check_cache(const char* op, const char* name, const Tensor& rows, const Tensor& cache) {
  check_same_device(op, "x", rows, name, cache);
  check_rank(op, name, cache, 4);
  check(is_cache_dtype(cache.dtype()), op, name, " is ", cache,
        ", wanted f32, f16, bf16, f8e4m3 or q8_0");
  const bool pages = cache.dtype() == DType::q8_0;
  check(cache.packing() == (pages ? kPagePacking : 0), op, name, " is ", cache,
        " and no cache; empty_cache makes one");
  check(cache.dim(3) == rows.dim(2), op, name, " is ", cache, ", the heads have ", rows.dim(2),
        " elements");
}

void check_index(const char* op, const char* name, const Tensor& index, const Shape& shape) {
  check_shape(op, name, index, shape);
  check(index.dtype() == DType::i32, op, name, " is ", index, ", wanted i32");
}

// The batch's own consistency, if the host can read it.
void check_batch(const char* op, const PagedBatch& batch, const Tensor& key_ends, int64_t tokens,
                 int64_t blocks, int64_t block_size) {
  const std::vector<int32_t> starts = batch.seq_starts.to_host<int32_t>();
  const std::vector<int32_t> lens = batch.kv_lens.to_host<int32_t>();
  const std::vector<int32_t> table = batch.block_table.to_host<int32_t>();
  std::vector<int32_t> ends;
  if (key_ends.defined()) ends = key_ends.to_host<int32_t>();
  const int64_t max_blocks = batch.block_table.dim(1);
  check(starts.front() == 0 && starts.back() == tokens, op, "seq_starts go from ", starts.front(),
        " to ", starts.back(), ", wanted 0 to ", tokens);
  for (size_t seq = 0; seq < lens.size(); ++seq) {
    const int64_t queries = int64_t{starts[seq + 1]} - starts[seq];
    check(queries >= 0 && lens[seq] >= queries, op, "sequence ", seq, " has ", queries,
          " queries and ", lens[seq], " keys");
    check(queries == 1 || std::cmp_less_equal(batch.single_queries, seq), op, "sequence ", seq,
          " has ", queries, " queries, the first ", batch.single_queries, " have one each");
    for (int64_t i = starts[seq]; !ends.empty() && i < starts[seq + 1]; ++i) {
      const int32_t end = ends[static_cast<size_t>(i)];
      check(end >= 0 && end <= lens[seq], op, "token ", i, " sees keys before ", end, ", sequence ",
            seq, " has ", lens[seq]);
    }
    const int64_t used = (lens[seq] + block_size - 1) / block_size;
    check(used <= max_blocks, op, "sequence ", seq, " has ", lens[seq], " keys, its ", max_blocks,
          " blocks hold ", max_blocks * block_size);
    for (int64_t i = 0; i < used; ++i) {
      const int32_t block = table[seq * static_cast<size_t>(max_blocks) + static_cast<size_t>(i)];
      check(block >= 0 && block < blocks, op, "block ", block, " of sequence ", seq,
            " is outside of 0 to ", blocks - 1);
    }
  }
}

// A number of each head.
void check_heads(const char* op, const Tensor& q, const char* name, const Tensor& x) {
  if (!x.defined()) return;
  check_same_device(op, "q", q, name, x);
  check_shape(op, name, x, Shape{q.dim(1)});
  check(x.dtype() == DType::f32 && x.contiguous(), op, name, " is ", x, ", wanted contiguous f32");
}

}  // namespace

Tensor paged_attention(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache,
                       const PagedBatch& batch, const PagedAttentionOptions& options) {
  constexpr const char* kOp = "paged_attention";
  check_float(kOp, "q", q);
  check_rank(kOp, "q", q, 3);
  check_cache(kOp, "k_cache", q, k_cache);
  check_like(kOp, "k_cache", k_cache, "v_cache", v_cache);
  check_shape(kOp, "v_cache", v_cache, k_cache.shape());
  const int64_t kv_heads = k_cache.dim(1);
  check(kv_heads > 0 && q.dim(1) % kv_heads == 0, kOp, "q has ", q.dim(1), " heads, the cache ",
        kv_heads);
  check_rank(kOp, "kv_lens", batch.kv_lens, 1);
  const int64_t seqs = batch.kv_lens.dim(0);
  check_index(kOp, "kv_lens", batch.kv_lens, Shape{seqs});
  check_index(kOp, "seq_starts", batch.seq_starts, Shape{seqs + 1});
  check_rank(kOp, "block_table", batch.block_table, 2);
  check_index(kOp, "block_table", batch.block_table, Shape{seqs, batch.block_table.dim(1)});
  check(batch.single_queries >= 0 && batch.single_queries <= seqs, kOp, "single_queries is ",
        batch.single_queries, ", wanted 0 to ", seqs);
  check(options.window >= 0, kOp, "window is ", options.window, ", wanted 0 (all) or more");
  check_heads(kOp, q, "sinks", options.sinks);
  check_heads(kOp, q, "alibi_slopes", options.alibi_slopes);
  const bool windowed = options.window > 0 && batch.window_key_ends.defined();
  const Tensor& key_ends = windowed ? batch.window_key_ends : batch.key_ends;
  if (key_ends.defined()) {
    check_same_device(kOp, "q", q, "key_ends", key_ends);
    check_index(kOp, "key_ends", key_ends, Shape{q.dim(0)});
    check(key_ends.contiguous(), kOp, "key_ends has gaps");
  }
  if (q.device().host_accessible()) {
    check_batch(kOp, batch, key_ends, q.dim(0), k_cache.dim(0), k_cache.dim(2));
  }
  Tensor y = empty_like(q);
  if (y.numel() == 0) return y;
  const float head_scale = 1 / std::sqrt(static_cast<float>(q.dim(2)));
  run(kOp, kernels(q).paged_attention,
      PagedAttentionArgs{.q = q.view(),
                         .k_cache = k_cache.view(),
                         .v_cache = v_cache.view(),
                         .seq_starts = batch.seq_starts.view(),
                         .kv_lens = batch.kv_lens.view(),
                         .block_table = batch.block_table.view(),
                         .sinks = view_or_absent(options.sinks),
                         .key_ends = view_or_absent(key_ends),
                         .alibi_slopes = view_or_absent(options.alibi_slopes),
                         .y = y.view(),
                         .single_queries = batch.single_queries,
                         .scale = options.scale == 0 ? head_scale : options.scale,
                         .softcap = options.softcap,
                         .window = options.window},
      q.stream());
  return y;
}

void check_append(const char* op, const Tensor& k, const Tensor& v, const Tensor& slots,
                  const Tensor& k_cache, const Tensor& v_cache) {
  check_float(op, "k", k);
  check_rank(op, "k", k, 3);
  check_like(op, "k", k, "v", v);
  check_shape(op, "v", v, k.shape());
  check_cache(op, "k_cache", k, k_cache);
  check_like(op, "k_cache", k_cache, "v_cache", v_cache);
  check_shape(op, "v_cache", v_cache, k_cache.shape());
  check(k_cache.dim(1) == k.dim(1), op, "k has ", k.dim(1), " heads, the cache ", k_cache.dim(1));
  check_same_device(op, "k", k, "slots", slots);
  check_index(op, "slots", slots, Shape{k.dim(0)});
  if (k.device().host_accessible()) {
    const int64_t end = k_cache.dim(0) * k_cache.dim(2);
    for (int32_t slot : slots.to_host<int32_t>()) {
      check(slot >= -1 && slot < end, op, "slot ", slot, " is outside of -1 to ", end - 1);
    }
  }
}

void kv_append_(const Tensor& k, const Tensor& v, const Tensor& slots, Tensor& k_cache,
                Tensor& v_cache) {
  constexpr const char* kOp = "kv_append";
  check_append(kOp, k, v, slots, k_cache, v_cache);
  if (k.numel() == 0) return;
  run(kOp, kernels(k).kv_append,
      KvAppendArgs{k.view(), v.view(), slots.view(), k_cache.view(), v_cache.view()}, k.stream());
}

}  // namespace rbee

#pragma once
// Writes f32 keys and values into a paged cache of f32, f16, bf16, f8e4m3 or q8_0. Include after a
// vec header.

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/kv_pages.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kAppendGrain = 16384;  // elements

template <typename KV>
RB_INLINE void append_token(const View& rows, const View& cache, int64_t token, int32_t slot) {
  const int64_t block_size = cache.sizes[2];
  const int64_t dim = rows.sizes[2];
  const float* from = static_cast<const float*>(rows.data) + token * rows.strides[0];
  KV* to = static_cast<KV*>(cache.data) + slot / block_size * cache.strides[0] +
           slot % block_size * cache.strides[2];
  for (int64_t head = 0; head < rows.sizes[1]; ++head) {
    const float* x = from + head * rows.strides[1];
    KV* y = to + head * cache.strides[1];
    int64_t i = 0;
    for (; i + 8 <= dim; i += 8) store8(y + i, load8(x + i));
    if (i < dim) {
      float rest[8] = {};
      for (int64_t j = i; j < dim; ++j) rest[j - i] = x[j];
      store_first8(y + i, load8(rest), dim - i);
    }
  }
}

// The same for a q8_0 cache.
template <>
RB_INLINE void append_token<Q8Row>(const View& rows, const View& cache, int64_t token,
                                   int32_t slot) {
  const int64_t block_size = cache.sizes[2];
  const float* from = static_cast<const float*>(rows.data) + token * rows.strides[0];
  for (int64_t head = 0; head < rows.sizes[1]; ++head) {
    const float* x = from + head * rows.strides[1];
    const Q8Row y = page_row(cache, slot / block_size, head, slot % block_size);
    for (int64_t i = 0; i < rows.sizes[2]; i += kPageGroup) store_group(y + i, x + i);
  }
}

const char* refuse_kv_append(const KvAppendArgs& args) {
  if (args.k.dtype != DType::f32) return "takes f32 keys and values";
  for (const View* view : {&args.k, &args.v}) {
    if (view->strides[2] != 1) return "takes heads without gaps";
  }
  for (const View* view : {&args.k_cache, &args.v_cache}) {
    if (view->strides[3] != 1) return "takes heads without gaps";
  }
  return nullptr;
}

template <typename KV>
void append_all(const KvAppendArgs& args) {
  const int64_t token = 2 * args.k.sizes[1] * args.k.sizes[2];
  const auto* slots = static_cast<const int32_t*>(args.slots.data);
  ThreadPool::shared().parallel_for(args.k.sizes[0], kAppendGrain / (token + 1) + 1,
                                    [&](int64_t begin, int64_t end, int) {
                                      for (int64_t i = begin; i < end; ++i) {
                                        const int32_t slot = slots[i * args.slots.strides[0]];
                                        if (slot < 0) continue;
                                        append_token<KV>(args.k, args.k_cache, i, slot);
                                        append_token<KV>(args.v, args.v_cache, i, slot);
                                      }
                                    });
}

void run_kv_append(const KvAppendArgs& args, Stream&) {
  switch (args.k_cache.dtype) {
    case DType::f16:
      return append_all<f16>(args);
    case DType::bf16:
      return append_all<bf16>(args);
    case DType::f8e4m3:
      return append_all<f8e4m3>(args);
    case DType::q8_0:
      return append_all<Q8Row>(args);
    default:
      return append_all<float>(args);
  }
}

}  // namespace
}  // namespace rbee::cpu

// Which tensors attention_wgmma and attention_latent_mma leave to the kernels after them, and which
// devices have the latter. The views have no memory; nothing is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "backends/cuda/cuda_kernels.h"
#include "backends/cuda/ops/attention_latent_mma.h"
#include "backends/cuda/ops/attention_mma.h"
#include "backends/cuda/ops/attention_wgmma.h"

namespace rbee::cuda {
namespace {

// (batch, heads, time, 128) in f16 at no address, `row` elements between neighbours along time.
View rows_of(int64_t time, int64_t row) {
  View view;
  view.dtype = DType::f16;
  view.rank = 4;
  const int64_t sizes[] = {1, 1, time, 128}, strides[] = {time * row, time * row, row, 1};
  for (int axis = 0; axis < 4; ++axis) {
    view.sizes[axis] = sizes[axis];
    view.strides[axis] = strides[axis];
  }
  return view;
}

AttentionArgs args_of(const View& k, const View& v) {
  AttentionArgs args{};
  args.q = rows_of(64, 128);
  args.y = rows_of(64, 128);
  args.k = k;
  args.v = v;
  return args;
}

constexpr int64_t kKeys = int64_t{1} << 20;
constexpr int64_t kFits = int64_t{1} << 15;  // 2^20 rows of 64 KiB: 64 GiB but for the last's end

TEST(AttentionWgmma, TakesKeysWhosePlacesFitItsCounter) {
  EXPECT_EQ(attention_wgmma.refuse(args_of(rows_of(kKeys, kFits), rows_of(kKeys, 128))), nullptr);
}

TEST(AttentionWgmma, LeavesKeysOrValuesBeyond64GiBToOthers) {
  const View small = rows_of(kKeys, 128), large = rows_of(kKeys, kFits + 8);
  for (const AttentionArgs& args : {args_of(large, small), args_of(small, large)}) {
    const char* reason = attention_wgmma.refuse(args);
    ASSERT_NE(reason, nullptr);
    EXPECT_NE(std::string(reason).find("64 GiB"), std::string::npos) << reason;
    EXPECT_EQ(attention_mma.refuse(args), nullptr);
  }
}

TEST(AttentionWgmma, LeavesCachesBeyond64GiBToOthers) {
  PagedAttentionArgs args{};
  args.q = rows_of(64, 128);
  args.q.rank = 3;
  const int64_t sizes[] = {64, 1, 128}, strides[] = {128, 128, 1};
  for (int axis = 0; axis < 3; ++axis) {
    args.q.sizes[axis] = sizes[axis];
    args.q.strides[axis] = strides[axis];
  }
  args.y = args.q;
  // (blocks, heads, block size, elements): as many blocks as the rows above.
  args.k_cache = rows_of(1, 128);
  args.k_cache.sizes[0] = kKeys;
  args.k_cache.strides[0] = kFits;
  args.v_cache = args.k_cache;
  EXPECT_EQ(paged_attention_wgmma.refuse(args), nullptr);
  args.v_cache.strides[0] = kFits + 8;
  ASSERT_NE(paged_attention_wgmma.refuse(args), nullptr);
  EXPECT_EQ(paged_attention_mma.refuse(args), nullptr);
}

// A step of 16 heads of `dim` on one key head, over four blocks of 16 keys.
PagedAttentionArgs latents_of(int64_t dim, DType q, DType cache) {
  const auto view = [&](std::initializer_list<int64_t> sizes, DType dtype) {
    View out;
    out.dtype = dtype;
    out.rank = static_cast<int8_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), out.sizes);
    int64_t step = 1;
    for (int axis = out.rank - 1; axis >= 0; --axis) {
      out.strides[axis] = step;
      step *= out.sizes[axis];
    }
    return out;
  };
  PagedAttentionArgs args{};
  args.q = args.y = view({1, 16, dim}, q);
  args.k_cache = args.v_cache = view({4, 1, 16, dim}, cache);
  return args;
}

TEST(AttentionLatentMma, TakesHeadsTooWideForOthersUpTo576) {
  for (const int64_t dim : {264, 320, 576}) {
    const PagedAttentionArgs args = latents_of(dim, DType::bf16, DType::bf16);
    EXPECT_EQ(attention_latent_mma.refuse(args), nullptr) << dim;
    EXPECT_NE(paged_attention_mma.refuse(args), nullptr) << dim;
  }
  EXPECT_NE(attention_latent_mma.refuse(latents_of(256, DType::bf16, DType::bf16)), nullptr);
  EXPECT_NE(attention_latent_mma.refuse(latents_of(584, DType::bf16, DType::bf16)), nullptr);
  EXPECT_NE(attention_latent_mma.refuse(latents_of(300, DType::bf16, DType::bf16)), nullptr);
}

TEST(AttentionLatentMma, TakesQueriesThatBecomeTheKeysType) {
  EXPECT_EQ(attention_latent_mma.refuse(latents_of(576, DType::f32, DType::f16)), nullptr);
  EXPECT_EQ(attention_latent_mma.refuse(latents_of(576, DType::bf16, DType::f8e4m3)), nullptr);
  EXPECT_NE(attention_latent_mma.refuse(latents_of(576, DType::bf16, DType::f16)), nullptr);
  EXPECT_NE(attention_latent_mma.refuse(latents_of(576, DType::f32, DType::f32)), nullptr);
}

TEST(AttentionLatentMma, IsForDevicesWithItsSharedMemory) {
  const auto has = [](int64_t shared_bytes) {
    gpu::Properties device;
    device.matrix = gpu::MatrixUnit::mma;
    device.shared_per_block = shared_bytes;
    for (const Impl<PagedAttentionArgs>& impl : cuda_kernels(device).paged_attention) {
      if (std::string(impl.name) == attention_latent_mma.name) return true;
    }
    return false;
  };
  EXPECT_FALSE(has(int64_t{99} << 10));  // sm_86, sm_89
  EXPECT_TRUE(has(int64_t{163} << 10));  // sm_80
}

}  // namespace
}  // namespace rbee::cuda

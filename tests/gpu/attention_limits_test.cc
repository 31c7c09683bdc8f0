// Which tensors attention_wgmma leaves to the kernels behind it; views alone, nothing is read.
#include <gtest/gtest.h>

#include <string>

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
  // (blocks, heads, block size, elements): as many blocks as rows above.
  args.k_cache = rows_of(1, 128);
  args.k_cache.sizes[0] = kKeys;
  args.k_cache.strides[0] = kFits;
  args.v_cache = args.k_cache;
  EXPECT_EQ(paged_attention_wgmma.refuse(args), nullptr);
  args.v_cache.strides[0] = kFits + 8;
  ASSERT_NE(paged_attention_wgmma.refuse(args), nullptr);
  EXPECT_EQ(paged_attention_mma.refuse(args), nullptr);
}

}  // namespace
}  // namespace rbee::cuda

// 8-bit caches on AMD's matrix units.
#include <gtest/gtest.h>

#include "backends/rocm/ops/attention_matrix.h"
#include "tests/gpu/fake_view.h"

namespace rbee::harness {
namespace {

TEST(AttentionCaches, SoftcapIsTakenOver8Bits) {
  for (const DType cache : {DType::f8e4m3, DType::q8_0}) {
    View keys = fake_view({9, 2, 16, 64}, cache);
    if (cache == DType::q8_0) keys.packing = kPagePacking;
    PagedAttentionArgs args{.q = fake_view({70, 4, 64}, DType::f16),
                            .k_cache = keys,
                            .v_cache = keys,
                            .y = fake_view({70, 4, 64}, DType::f16)};
    args.softcap = 30;
    EXPECT_EQ(rocm::paged_attention_mfma.refuse(args), nullptr) << name(cache);
    EXPECT_EQ(rocm::paged_attention_wmma.refuse(args), nullptr) << name(cache);
  }
}

}  // namespace
}  // namespace rbee::harness

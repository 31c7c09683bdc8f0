// 8-bit caches on AMD's matrix units.
#include <gtest/gtest.h>

#include "backends/rocm/ops/attention_matrix.h"

namespace rbee::harness {
namespace {

// Without gaps, at an address that nothing lies at.
View view_of(std::initializer_list<int64_t> sizes, DType dtype) {
  View view{.data = reinterpret_cast<void*>(uintptr_t{1} << 20),  // NOLINT
            .dtype = dtype,
            .rank = static_cast<int8_t>(sizes.size())};
  std::copy(sizes.begin(), sizes.end(), view.sizes);
  int64_t step = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.strides[axis] = step;
    step *= view.sizes[axis];
  }
  return view;
}

TEST(AttentionCaches, SoftcapIsTakenOver8Bits) {
  for (const DType cache : {DType::f8e4m3, DType::q8_0}) {
    View keys = view_of({9, 2, 16, 64}, cache);
    if (cache == DType::q8_0) keys.packing = kPagePacking;
    PagedAttentionArgs args{.q = view_of({70, 4, 64}, DType::f16),
                            .k_cache = keys,
                            .v_cache = keys,
                            .y = view_of({70, 4, 64}, DType::f16)};
    args.softcap = 30;
    EXPECT_EQ(rocm::paged_attention_mfma.refuse(args), nullptr) << name(cache);
    EXPECT_EQ(rocm::paged_attention_wmma.refuse(args), nullptr) << name(cache);
  }
}

}  // namespace
}  // namespace rbee::harness

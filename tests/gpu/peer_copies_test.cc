// Copies tensors from one GPU to another on real hardware.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "rbee/ops/elementwise.h"
#include "rbee/tensor/tensor.h"
#include "tests/support/op_table.h"

namespace rbee {
namespace {

// The GPUs of the backend with the most.
std::vector<Device*> gpus() {
  std::map<DeviceKind, std::vector<Device*>> found;
  for (Device* device : harness::all_devices()) {
    if (device->id().kind != DeviceKind::cpu) found[device->id().kind].push_back(device);
  }
  std::vector<Device*> most;
  for (const auto& [kind, own] : found) {
    if (own.size() > most.size()) most = own;
  }
  return most;
}

class PeerCopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    devices_ = gpus();
    if (devices_.size() < 2) GTEST_SKIP() << "skipped: no two GPUs of one vendor";
  }
  std::vector<Device*> devices_;
};

// The copy holds the result of work queued before it, and work queued after it reads the copy;
// rewriting the source at once does not change the copy.
TEST_F(PeerCopiesTest, KeepTheOrderOfBothDevices) {
  constexpr int64_t kCount = int64_t{1} << 24;
  std::vector<float> values(static_cast<size_t>(kCount));
  for (int64_t i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i % 977);
  for (Device* from : devices_) {
    for (Device* to : devices_) {
      if (from == to) continue;
      SCOPED_TRACE(from->description() + " to " + to->description());
      Tensor x = from_host<float>(values, {kCount}, *from);
      for (int i = 0; i < 20; ++i) x = affine(x, 1.0, 1.0);
      const Tensor there = affine(x.to(*to), 2.0, 0.0);
      for (int i = 0; i < 20; ++i) copy_(x, affine(x, 0.0, -1.0));
      const std::vector<float> got = there.to_host<float>();
      int64_t wrong = 0;
      for (int64_t i = 0; i < kCount; ++i) {
        const auto at = static_cast<size_t>(i);
        wrong += got[at] != 2 * (values[at] + 20);
      }
      EXPECT_EQ(wrong, 0);
    }
  }
}

TEST_F(PeerCopiesTest, TakeFewBytes) {
  const std::vector<int32_t> values{1, 2, 3, 4, 5, 6};
  const Tensor x = from_host<int32_t>(values, {2, 3}, *devices_[0]);
  EXPECT_EQ(x.to(*devices_[1]).to_host<int32_t>(), values);
  const Tensor row = x.slice(Axis{0}, 1, 1);  // in the middle of an allocation
  EXPECT_EQ(row.to(*devices_[1]).to_host<int32_t>(), (std::vector<int32_t>{4, 5, 6}));
}

}  // namespace
}  // namespace rbee

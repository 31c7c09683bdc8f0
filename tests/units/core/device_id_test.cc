#include "rbee/core/device_id.h"

#include <gtest/gtest.h>

#include "rbee/core/cat.h"

namespace rbee {
namespace {

TEST(DeviceId, ReadsWhatItPrints) {
  for (const DeviceKind kind :
       {DeviceKind::cpu, DeviceKind::cuda, DeviceKind::rocm, DeviceKind::metal}) {
    const DeviceId id = {kind, 3};
    EXPECT_EQ(parse_device_id(cat(id)), id) << cat(id);
    EXPECT_EQ(parse_device_id(name(kind)), (DeviceId{kind, 0})) << "the ordinal may be left out";
  }
  EXPECT_EQ(cat(DeviceId{DeviceKind::rocm, 1}), "rocm:1");
}

TEST(DeviceId, RefusesOtherText) {
  for (const char* text : {"", "gpu", "cpu:", "cpu:-1", "cuda:1x", "cuda: 1", "cuda:99999999999",
                           ":0", "CPU:0", "cpu:0:0", "cpu:+1"}) {
    EXPECT_FALSE(parse_device_id(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace rbee

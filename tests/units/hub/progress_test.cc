#include "rbee/hub/progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace rbee::hub {
namespace {

// Connections that have nothing more to read tell so after the last byte.
TEST(ProgressMeter, TellsTheEndOnce) {
  std::vector<int64_t> told;
  ProgressMeter meter(10, [&](const DownloadProgress& now) { told.push_back(now.done); });
  meter.add(4, false);
  meter.add(6, true);
  for (int i = 0; i < 3; ++i) meter.add(0, true);
  EXPECT_EQ(told, (std::vector<int64_t>{4, 10}));
}

TEST(ProgressMeter, TellsTheEndOfNothing) {
  int told = 0;
  ProgressMeter meter(0, [&](const DownloadProgress&) { ++told; });
  meter.add(0, false);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace rbee::hub

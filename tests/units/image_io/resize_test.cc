#include "rbee/io/image/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rbee::io {
namespace {

using testing::ElementsAre;

Pixels row_of(std::vector<uint8_t> reds) {
  Pixels out{.width = static_cast<int32_t>(reds.size()), .height = 1, .channels = 3, .values = {}};
  for (const uint8_t red : reds) out.values.insert(out.values.end(), {red, 0, 7});
  return out;
}

std::vector<int> reds(const Pixels& pixels) {
  std::vector<int> out;
  for (size_t i = 0; i < pixels.values.size(); i += 3) out.push_back(pixels.values[i]);
  return out;
}

// As in Pillow's Image.NEAREST.
TEST(Resize, NearestTakesPixelsAtCentres) {
  const Pixels few = row_of({10, 20, 30});
  EXPECT_THAT(reds(resized(few, 6, 1, Resampler::nearest)), ElementsAre(10, 10, 20, 20, 30, 30));
  EXPECT_THAT(reds(resized(few, 2, 1, Resampler::nearest)), ElementsAre(10, 30));
  EXPECT_THAT(reds(resized(few, 5, 1, Resampler::nearest)), ElementsAre(10, 10, 20, 30, 30));
  const Pixels tall = resized(few, 3, 2, Resampler::nearest);
  EXPECT_THAT(reds(tall), ElementsAre(10, 20, 30, 10, 20, 30));
  EXPECT_EQ(tall.values[5], 7);
}

// As in Pillow's Image.LANCZOS, within its rounding.
TEST(Resize, LanczosIsThatOfPillow) {
  const std::vector<int> wanted = {0, 80, 195, 134, 25, 57, 103};
  const std::vector<int> found = reds(resized(row_of({10, 200, 30, 90}), 7, 1));
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1) << i;
}

}  // namespace
}  // namespace rbee::io

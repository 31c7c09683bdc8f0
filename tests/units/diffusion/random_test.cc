#include "rbee/diffusion/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rbee::diffusion {
namespace {

using testing::FloatNear;
using testing::Pointwise;

std::vector<float> drawn(Normals& normals, size_t count) {
  std::vector<float> out(count);
  normals.fill(out);
  return out;
}

// torch.manual_seed(0); torch.randn(16)
TEST(TorchNormals, DrawsPyTorchsBlockOfSixteen) {
  TorchNormals normals(0);
  EXPECT_THAT(drawn(normals, 16),
              Pointwise(FloatNear(6e-5f), {-1.1258f, -1.1524f, -0.2506f, -0.4339f, 0.8487f, 0.6920f,
                                           -0.3160f, -2.1152f, 0.3223f, -1.2633f, 0.3500f, 0.3081f,
                                           0.1198f, 1.2377f, 1.1168f, -0.2473f}));
}

TEST(TorchNormals, DrawsFewOneByOne) {
  TorchNormals normals(0);
  EXPECT_THAT(drawn(normals, 6), Pointwise(FloatNear(6e-5f), {1.5410f, -0.2934f, -2.1788f, 0.5684f,
                                                              -1.0845f, -1.3986f}));
}

// torch.manual_seed(1234567890123); a = torch.randn(5); b = torch.randn(21); c = torch.randn(3)
TEST(TorchNormals, GoesOnThroughOddSizes) {
  TorchNormals normals(1234567890123);
  const auto few = drawn(normals, 5);
  const auto many = drawn(normals, 21);
  const auto last = drawn(normals, 3);
  EXPECT_THAT(few, Pointwise(FloatNear(1e-6f), {0.612099051f, -0.930138052f, 0.0903842002f,
                                                0.293270618f, 0.387402028f}));
  EXPECT_THAT(many,
              Pointwise(FloatNear(1e-6f),
                        {0.615793109f,  -0.312404513f, 1.2072556f,    -2.46529078f, -1.25323093f,
                         -1.03205144f,  -2.36599493f,  -0.874182224f, 1.28757119f,  -0.418202639f,
                         -0.249100372f, 1.20864666f,   -0.226420566f, 0.92481488f,  0.296027213f,
                         -1.88204694f,  -0.645133078f, -0.775709331f, 0.245796546f, 0.516930044f,
                         0.239825234f}));
  EXPECT_THAT(last, Pointwise(FloatNear(1e-6f), {0.703606606f, 0.0439991131f, -0.612691402f}));
}

// torch.manual_seed(42); torch.randn(1300)[-4:], past two refills of the state.
TEST(TorchNormals, RefillsItsState) {
  TorchNormals normals(42);
  const auto all = drawn(normals, 1300);
  EXPECT_THAT(
      std::vector<float>(all.end() - 4, all.end()),
      Pointwise(FloatNear(1e-6f), {-0.577689826f, 1.14283562f, -0.594700098f, 0.53630954f}));
}

TEST(PhiloxNormals, DrawsAutomaticsVector) {
  PhiloxNormals normals(0);
  EXPECT_THAT(
      drawn(normals, 8),
      Pointwise(FloatNear(1e-7f), {-0.92466259f, -0.42534415f, -2.6438457f, 0.14518388f,
                                   -0.12086647f, -0.57972564f, -0.62285122f, -0.32838709f}));
}

TEST(PhiloxNormals, EveryCallAndSeedIsAnother) {
  PhiloxNormals normals(7);
  const auto first = drawn(normals, 4);
  const auto second = drawn(normals, 4);
  EXPECT_NE(first, second);
  PhiloxNormals high(7 + (uint64_t{1} << 32));
  EXPECT_NE(drawn(high, 4), first);
  PhiloxNormals again(7);
  EXPECT_EQ(drawn(again, 4), first);
}

}  // namespace
}  // namespace rbee::diffusion

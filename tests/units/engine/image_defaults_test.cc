// Settings that an image model's generation_config.json may and may not change.

#include "rbee/engine/image/defaults.h"

#include <gmock/gmock.h>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;

ImageModelInfo read(const char* json) {
  ImageModelInfo info;
  info.default_steps = 20;
  info.default_guidance = 7.5f;
  read_defaults(json, "generation_config.json", info);
  return info;
}

std::string refused(const char* json) {
  try {
    read(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ImageDefaults, WhatIsNamedReplacesWhatIsCustomary) {
  const ImageModelInfo both = read(R"({"num_inference_steps": 12, "guidance_scale": 4})");
  EXPECT_EQ(both.default_steps, 12);
  EXPECT_EQ(both.default_guidance, 4);
  const ImageModelInfo one = read(R"({"guidance_scale": 0.5, "other": []})");
  EXPECT_EQ(one.default_steps, 20);
  EXPECT_EQ(one.default_guidance, 0.5f);
}

TEST(ImageDefaults, ErrorsNameTheFileTheFieldAndItsRange) {
  EXPECT_THAT(refused(R"({"guidance_scale": 31})"), HasSubstr("guidance_scale is 31"));
  EXPECT_THAT(refused(R"({"guidance_scale": "4"})"), HasSubstr("0 to 30"));
  EXPECT_THAT(refused(R"({"num_inference_steps": 0})"), HasSubstr("1 to 150"));
  EXPECT_THAT(refused(R"({"num_inference_steps": 2.5})"), HasSubstr("not a whole number"));
  EXPECT_THAT(refused("[]"), HasSubstr("generation_config.json"));
}

}  // namespace
}  // namespace rbee::engine

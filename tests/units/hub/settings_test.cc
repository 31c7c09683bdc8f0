#include "rbee/hub/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "rbee/core/error.h"

namespace rbee::hub {
namespace {

Settings settings_of(const std::map<std::string, std::string>& variables) {
  return read_settings([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Settings, TheCacheIsWhereHuggingfaceHubHasIt) {
  EXPECT_EQ(settings_of({{"HOME", "/h"}}).cache, "/h/.cache/huggingface/hub");
  EXPECT_EQ(settings_of({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).cache, "/x/huggingface/hub");
  EXPECT_EQ(settings_of({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/y"}}).cache, "/y/hub");
  EXPECT_EQ(settings_of({{"HOME", "/h"}, {"HF_HOME", "~/z"}}).cache, "/h/z/hub");
  EXPECT_EQ(settings_of({{"HF_HOME", "$A/${B}/$C"}, {"A", "/a"}, {"B", "b"}}).cache, "/a/b/$C/hub");
  EXPECT_EQ(settings_of({{"HUGGINGFACE_HUB_CACHE", "/old"}}).cache, "/old");
  EXPECT_EQ(settings_of({{"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HUB_CACHE", "/new"}}).cache,
            "/new");
}

TEST(Settings, EmptyIsUnset) {
  EXPECT_EQ(settings_of({{"HOME", "/h"},
                         {"HF_HOME", ""},
                         {"XDG_CACHE_HOME", ""},
                         {"HF_HUB_CACHE", ""},
                         {"HUGGINGFACE_HUB_CACHE", ""},
                         {"HF_TOKEN_PATH", ""}})
                .cache,
            "/h/.cache/huggingface/hub");
  EXPECT_EQ(settings_of({{"HOME", ""}}).cache, "/.cache/huggingface/hub");
  EXPECT_EQ(settings_of({{"HOME", "/h"}, {"HF_HOME", "$EMPTY"}, {"EMPTY", ""}}).cache,
            "/h/.cache/huggingface/hub");
}

TEST(Settings, EndpointOfflineAndToken) {
  EXPECT_EQ(settings_of({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(settings_of({{"HF_ENDPOINT", "http://m/hf//"}}).endpoint, "http://m/hf");
  EXPECT_THROW((void)settings_of({{"HF_ENDPOINT", "mirror"}}), Error);
  EXPECT_FALSE(settings_of({{"HF_HUB_OFFLINE", "0"}}).offline);
  EXPECT_TRUE(settings_of({{"HF_HUB_OFFLINE", "yes"}}).offline);
  EXPECT_TRUE(settings_of({{"TRANSFORMERS_OFFLINE", "1"}}).offline);
  EXPECT_EQ(settings_of({{"HF_TOKEN", " hf_x\n"}}).token, "hf_x");
  EXPECT_EQ(settings_of({{"HUGGING_FACE_HUB_TOKEN", "hf_y"}}).token, "hf_y");
  EXPECT_EQ(settings_of({{"HF_TOKEN", "hf_x"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).token, "");
  EXPECT_THROW((void)settings_of({{"HF_TOKEN", "a\r\nX: y"}}), Error);
}

}  // namespace
}  // namespace rbee::hub

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::io::test {

// A fixture with its own folder, removed at the end.
class ScratchFolder : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::filesystem::path path(std::string_view name) const { return folder_ / name; }
  std::filesystem::path write(std::string_view name, std::string_view bytes) const;
  std::string read(const std::filesystem::path& path) const;
  // The names in the folder, sorted.
  std::vector<std::string> files() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

// Runs `action`; it must throw an Error of this code whose text has all of `parts`.
template <typename Action>
void expect_error(Code code, const std::vector<std::string>& parts, const Action& action) {
  try {
    action();
    ADD_FAILURE() << "no error; wanted one with " << testing::PrintToString(parts);
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

// The values' little-endian bytes in turn; text unchanged.
template <typename T>
std::string raw(T value) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    return std::string(std::string_view(value));
  } else {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
}
template <typename First, typename... Rest>
std::string raw(First first, Rest... rest) {
  return raw(first) + (raw(rest) + ... + std::string());
}

}  // namespace rbee::io::test

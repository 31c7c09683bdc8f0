#pragma once
// A fixture with its own folder, removed at the end.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace rbee::tools {

class Scratch : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "rbee-quantize-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path& scratch() const { return folder_; }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

}  // namespace rbee::tools

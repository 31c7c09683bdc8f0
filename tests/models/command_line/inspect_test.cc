// `rbee inspect`: its figures about a file's values.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "rbee/io/gguf_writer.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

template <typename T>
std::vector<std::byte> array_of(io::MetaType element, const std::vector<T>& items) {
  const auto type = static_cast<uint32_t>(element);
  const uint64_t count = items.size();
  std::vector<std::byte> out;
  const auto append = [&](const void* from, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    out.insert(out.end(), bytes, bytes + size);
  };
  append(&type, sizeof type);
  append(&count, sizeof count);
  append(items.data(), items.size() * sizeof(T));
  return out;
}

json inspected(const fs::path& path) {
  std::vector<std::string> words{"rbee", "inspect", "--json", "--full", path.string()};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  EXPECT_EQ(tools::run_command_line(static_cast<int>(argv.size()), argv.data()), 0);
  return json::parse(testing::internal::GetCapturedStdout());
}

TEST(Inspect, ShowsArraysExactly) {
  std::string pattern = (fs::temp_directory_path() / "rbee-inspect-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  io::GgufWriter writer;
  writer.set_string("general.architecture", "none");
  writer.set_bools("flags", {true, false, true});
  const auto add = [&](const char* key, io::MetaType element, const auto& items) {
    const std::vector<std::byte> value = array_of(element, items);
    writer.copy({.key = key,
                 .type = io::MetaType::array,
                 .element = element,
                 .count = items.size(),
                 .value = value});
  };
  add("u64", io::MetaType::u64, std::vector<uint64_t>{16777217, UINT64_MAX});
  add("f64", io::MetaType::f64, std::vector<double>{0.1, 1e300});
  add("f32", io::MetaType::f32, std::vector<float>{0.1f, 1e-6f});
  writer.begin(folder / "a.gguf");
  writer.finish();
  const json found = inspected(folder / "a.gguf").at("metadata");
  const auto value = [&](const char* key) { return found.at(key).at("value").dump(); };
  EXPECT_EQ(value("u64"), "[16777217,18446744073709551615]");
  EXPECT_EQ(value("flags"), "[true,false,true]");
  EXPECT_EQ(value("f64"), "[0.1,1e+300]");
  EXPECT_EQ(value("f32"), "[0.1,1e-06]");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace rbee::test

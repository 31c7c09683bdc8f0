#include "tests/units/io/scratch_folder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace rbee::io::test {

namespace fs = std::filesystem;

void ScratchFolder::SetUp() {
  std::string pattern = (fs::temp_directory_path() / "rbee-io-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
}

void ScratchFolder::TearDown() {
  fs::remove_all(folder_);
}

fs::path ScratchFolder::write(std::string_view name, std::string_view bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
  return path(name);
}

std::string ScratchFolder::read(const fs::path& path) const {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> ScratchFolder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

}  // namespace rbee::io::test

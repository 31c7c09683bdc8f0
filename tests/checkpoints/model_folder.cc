#include "tests/checkpoints/model_folder.h"

#include <stdlib.h>

#include <fstream>

#include "tests/checkpoints/tiny_tokenizer.h"

namespace rbee::test {

namespace fs = std::filesystem;

ModelFolder::ModelFolder(const fs::path& data, const char* family) {
  std::string pattern = (fs::temp_directory_path() / "rbee-model-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
  fs::copy(data / "models/language/data" / family / "hf", path_, fs::copy_options::recursive);
  std::ofstream(path_ / "tokenizer.json") << tiny_tokenizer_json("<none>");
  std::ofstream(path_ / "tokenizer_config.json") << R"({"bos_token": "<s>"})";
}

ModelFolder::~ModelFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace rbee::test

#pragma once
// A folder with a tiny random model that workers can load; the destructor removes it.

#include <filesystem>

namespace rbee::test {

class ModelFolder {
 public:
  // The model never ends an answer: its tokenizer has no end token. `data`: data_folder(); family:
  // a folder of models/language/data.
  explicit ModelFolder(const std::filesystem::path& data, const char* family = "smollm");
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rbee::test

#pragma once
// The models that clients made of others, on disk: docs/decisions/0049-made-models.md

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/apis/ollama/record.h"

namespace rbee::tools {

// A folder with a file for each. For any thread, and for several processes: changes are made one
// at a time, and each is whole or not there.
class ModelRecords {
 public:
  explicit ModelRecords(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // By name. Files that are no records are left out, and logged when they are read.
  std::vector<server::OllamaRecord> list();
  // In any of the spellings of Ollama's clients.
  std::optional<server::OllamaRecord> find(const std::string& name);
  // In the place of one with this name. Throws io, FilesBusy, and invalid_argument beyond the
  // limits.
  void save(const server::OllamaRecord& record);
  // False if there is none. Throws io, FilesBusy.
  bool remove(const std::string& name);
  // The file with the record's template, which must not be empty.
  std::filesystem::path template_file(const server::OllamaRecord& record) const;

 private:
  void read();
  void lock_and(const std::function<void()>& change);
  void write(const std::filesystem::path& path, const std::string& text) const;
  void remove_unused_templates();

  const std::filesystem::path folder_;
  std::mutex mutex_;  // guards what follows
  std::vector<server::OllamaRecord> records_;
  std::filesystem::file_time_type changed_;  // of the folder, when records_ were read
  bool settled_ = false;                     // a later change would have another time
};

}  // namespace rbee::tools

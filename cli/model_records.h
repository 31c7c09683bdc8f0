#pragma once
// The models that clients made of others, on disk: docs/decisions/0049-made-models.md

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/blob_store.h"
#include "server/apis/ollama/record.h"

namespace rbee::tools {

// A folder with a file for each. For any thread, and for several processes: changes are made one
// at a time, and each is whole or not there.
class ModelRecords {
 public:
  explicit ModelRecords(std::filesystem::path folder)
      : folder_(std::move(folder)), blobs_(folder_ / "blobs") {}

  // By name. Files that are no records are left out, and logged when they are read.
  std::vector<server::OllamaRecord> list();
  // In any of the spellings of Ollama's clients.
  std::optional<server::OllamaRecord> find(const std::string& name);
  // In the place of one with this name. Throws io, FilesBusy, and invalid_argument beyond the
  // limits, or if a file is not there.
  void save(const server::OllamaRecord& record);
  // False if there is none. Throws io, FilesBusy.
  bool remove(const std::string& name);
  // The file with the record's template, which must not be empty.
  std::filesystem::path template_file(const server::OllamaRecord& record) const;
  // The files of models that clients upload.
  BlobStore& blobs() { return blobs_; }
  // Where links to such files of one model are, each folder named by folder_name(). Work folders
  // may be beside them.
  std::filesystem::path links() const { return folder_ / "files"; }
  // Of a saved record's files or adapters.
  std::filesystem::path folder_of(const server::OllamaRecord::Files& files) const;
  // Removes blobs that no record has named for a day, and what killed processes left. Throws io,
  // FilesBusy.
  void prune();

 private:
  void read();
  void lock_and(const std::function<void()>& change);
  void write(const std::filesystem::path& path, const std::string& text) const;
  void make_links(const server::OllamaRecord::Files& files, const std::string& field) const;
  void remove_unused(const std::optional<server::OllamaRecord>& former);
  void remove_unused_templates(const std::vector<server::OllamaRecord>& all) const;
  void remove_unused_links(const std::vector<server::OllamaRecord>& all) const;

  // A file of a record when it was read.
  struct ReadFile {
    std::filesystem::file_time_type changed;
    uintmax_t bytes = 0;
    bool settled = false;                        // a later change would have another time
    std::optional<server::OllamaRecord> record;  // nothing: it holds none
  };
  ReadFile read_again(const std::filesystem::path& file) const;

  const std::filesystem::path folder_;
  BlobStore blobs_;
  std::mutex mutex_;  // guards what follows
  std::map<std::filesystem::path, ReadFile> files_;
  std::vector<server::OllamaRecord> records_;
  std::filesystem::file_time_type changed_;  // of the folder, when records_ were read
  bool settled_ = false;                     // a later change would have another time
};

}  // namespace rbee::tools

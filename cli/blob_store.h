#pragma once
// Files of models that clients uploaded or had made, each under its SHA-256:
// docs/decisions/0050-uploaded-models.md

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/front/model_store.h"

namespace rbee::tools {

// For any thread, and for several processes. Digests are 64 lower-case hexadecimal digits.
class BlobStore {
 public:
  explicit BlobStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path path_of(const std::string& digest) const;
  bool has(const std::string& digest) const;
  // It is used soon: remove_unused() leaves it. False if it is not there.
  bool touch(const std::string& digest) const;
  // A file with this digest; bytes: its size, if known. Throws NoRoom if the disk is too full.
  std::unique_ptr<server::Upload> upload(const std::string& digest, std::optional<int64_t> bytes);
  // Where unfinished files are, on the same disk.
  std::filesystem::path work() const { return folder_ / "unfinished"; }
  // Moves a finished file here and returns its digest. Throws io, and cancelled (core/cancel.h).
  std::string take(const std::filesystem::path& file) const;

  // Removes old blobs that `used` does not know, and what killed processes left.
  void remove_unused(const std::function<bool(const std::string& digest)>& used) const;
  bool remove(const std::string& digest) const;

 private:
  class File;
  // Bytes that the uploads of this process have yet to write.
  struct Promises {
    std::mutex mutex;
    int64_t bytes = 0;  // guarded by mutex
  };

  const std::filesystem::path folder_;
  const std::shared_ptr<Promises> promises_ = std::make_shared<Promises>();
};

}  // namespace rbee::tools

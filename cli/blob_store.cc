#include "cli/blob_store.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "cli/work_folder.h"
#include "rbee/core/error.h"
#include "rbee/core/hex.h"
#include "rbee/hub/digest.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using server::NoRoom;

constexpr std::string_view kBegin = "sha256-";
constexpr std::chrono::hours kOld{24};
constexpr int64_t kSpare = int64_t{64} << 20;  // bytes of the disk that stay free

// Nothing if the system does not say.
std::optional<int64_t> free_bytes(fs::path folder) {
  while (!folder.empty() && !fs::exists(folder)) folder = folder.parent_path();
  struct statvfs facts = {};
  if (statvfs(folder.c_str(), &facts) != 0) return std::nullopt;
  return static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize);
}

[[noreturn]] void fail_write(int error) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    throw NoRoom(cat("the file cannot be written: ", std::strerror(error)));
  }
  fail(Code::io, "models", "the file cannot be written: ", std::strerror(error));
}

void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_write(errno);
  const bool good = fsync(descriptor) == 0;
  const int error = errno;
  close(descriptor);
  if (!good) fail_write(error);
}

void move_file(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) fail_write(errno);
  sync_folder(to.parent_path());
}

}  // namespace

// Written in a folder of its own, and moved at the end.
class BlobStore::File final : public server::Upload {
 public:
  File(const BlobStore& store, std::string digest, std::optional<int64_t> bytes)
      : folder_(store.folder_),
        target_(store.path_of(digest)),
        digest_(std::move(digest)),
        promises_(store.promises_),
        known_(bytes.has_value()),
        rest_(bytes.value_or(0)) {
    const std::scoped_lock lock(promises_->mutex);
    check_room(rest_);
    promises_->bytes += rest_;
  }
  ~File() override {
    if (descriptor_ >= 0) close(descriptor_);
    const std::scoped_lock lock(promises_->mutex);
    promises_->bytes -= rest_;
  }

  void write(std::string_view bytes) override {
    begin();
    account(static_cast<int64_t>(bytes.size()));
    sum_.add(bytes);
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_write(errno);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  void keep() override {
    begin();
    const std::string sum = sum_.end();
    check(sum == digest_, "digest", "digest mismatch, expected \"sha256:", digest_,
          "\", got \"sha256:", sum, "\"");
    if (fsync(descriptor_) != 0) fail_write(errno);
    move_file(work_->path() / "blob", target_);
  }

 private:
  void begin() {
    if (descriptor_ >= 0) return;
    work_.emplace(folder_ / "unfinished");
    const fs::path path = work_->path() / "blob";
    descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail_write(errno);
  }

  // With the mutex held.
  void check_room(int64_t bytes) const {
    const std::optional<int64_t> free = free_bytes(folder_);
    if (!free || bytes <= *free - promises_->bytes - kSpare) return;
    throw NoRoom(cat("the disk has ", std::max<int64_t>(0, *free - promises_->bytes - kSpare),
                     " bytes free for models"));
  }

  void account(int64_t bytes) {
    const std::scoped_lock lock(promises_->mutex);
    if (!known_) check_room(bytes);
    const int64_t kept = std::min(bytes, rest_);
    rest_ -= kept;
    promises_->bytes -= kept;
  }

  const fs::path folder_, target_;
  const std::string digest_;
  const std::shared_ptr<Promises> promises_;
  const bool known_;
  int64_t rest_;  // of its size, not written yet
  hub::Sha256 sum_;
  std::optional<WorkFolder> work_;
  int descriptor_ = -1;
};

fs::path BlobStore::path_of(const std::string& digest) const {
  return folder_ / cat(kBegin, digest);
}

bool BlobStore::has(const std::string& digest) const {
  std::error_code error;
  return fs::is_regular_file(path_of(digest), error);
}

bool BlobStore::touch(const std::string& digest) const {
  std::error_code error;
  if (!has(digest)) return false;
  fs::last_write_time(path_of(digest), fs::file_time_type::clock::now(), error);
  return true;
}

std::unique_ptr<server::Upload> BlobStore::upload(const std::string& digest,
                                                  std::optional<int64_t> bytes) {
  return std::make_unique<File>(*this, digest, bytes);
}

std::string BlobStore::take(const fs::path& file) const {
  std::string digest = hub::sha256_of_file(file);
  move_file(file, path_of(digest));
  return digest;
}

bool BlobStore::remove(const std::string& digest) const {
  std::error_code error;
  return fs::remove(path_of(digest), error);
}

void BlobStore::remove_unused(const std::function<bool(const std::string& digest)>& used) const {
  WorkFolder::sweep(work());
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin) || used(name.substr(kBegin.size()))) continue;
    const fs::file_time_type written = fs::last_write_time(entry.path(), error);
    if (error || now - written < kOld) continue;
    fs::remove(entry.path(), error);
  }
}

}  // namespace rbee::tools

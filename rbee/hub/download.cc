#include "rbee/hub/download.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "rbee/core/byte_text.h"
#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "rbee/hub/digest.h"
#include "rbee/hub/parts.h"

namespace rbee::hub {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 6;          // of a connection, one after another without a byte between them
constexpr int kLongestPause = 16;  // seconds

struct Source {
  std::string_view repo, commit;
  const RepoFile& file;
};

// Fetches all parts that are missing.
class Fetch {
 public:
  Fetch(const Settings& settings, const Source& source, FileInfo info, PartFile& parts,
        ProgressMeter& meter)
      : settings_(settings),
        source_(source),
        info_(std::move(info)),
        parts_(parts),
        meter_(meter),
        cancelled_(cancel_flag()) {}

  // False if the server ignores ranges, so that parts cannot be fetched.
  bool run(int connections) {
    const auto count = static_cast<size_t>(std::clamp<int64_t>(parts_.count(), 1, connections));
    std::vector<std::thread> threads;
    for (size_t i = 1; i < count; ++i) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    check_cancelled("hub");
    return !no_ranges_;
  }

 private:
  void work() {
    try {
      Client client(settings_);
      for (int64_t part = next(); part >= 0; part = next()) {
        if (!fetch_part(client, part)) return;
        const std::scoped_lock lock(mutex_);
        parts_.set_whole(part);
      }
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
  }

  // -1: none is left.
  int64_t next() {
    const std::scoped_lock lock(mutex_);
    while (next_ < parts_.count() && parts_.is_whole(next_)) ++next_;
    return stop_ || next_ >= parts_.count() ? -1 : next_++;
  }

  FileInfo info() {
    const std::scoped_lock lock(mutex_);
    return info_;
  }

  // Signed addresses expire, so a new try asks for a new one.
  void ask_again(Client& client) {
    FileInfo fresh = client.file_info(source_.repo, source_.commit, source_.file.path);
    const std::scoped_lock lock(mutex_);
    if (fresh.etag != info_.etag) {
      fail(Code::io, "hub", printable_line(source_.file.path), " changed while it was fetched");
    }
    info_ = std::move(fresh);
  }

  // False if another connection failed meanwhile.
  bool fetch_part(Client& client, int64_t part) {
    int64_t at = parts_.begin(part);
    for (int tried = 1; at < parts_.end(part) && !stop_; ++tried) {
      const int64_t before = at;
      try {
        if (tried > 1) ask_again(client);
        fetch_from(client, part, at);
        if (at < parts_.end(part) && !stop_) fail(Code::io, "hub", "the connection ended early");
      } catch (const Error& error) {
        if (at > before) tried = 1;
        if (error.code() != Code::io || disk_error_ != 0 || tried == kTries) throw;
        if (stop_) break;
        const int pause = std::min(1 << (tried - 1), kLongestPause);
        log(LogLevel::warn, "a download broke off; it goes on",
            {{"file", printable_line(source_.file.path)},
             {"at", cat(at)},
             {"seconds", cat(pause)},
             {"error", error.what()}});
        for (int second = 0; second < pause && going_on(); ++second) {
          std::this_thread::sleep_for(std::chrono::seconds(1));
        }
      }
    }
    return at == parts_.end(part);
  }

  // Nothing new may have come, which lowers the speed. False: another connection failed, or nobody
  // wants the file any more.
  bool going_on() {
    meter_.add(0, true);
    return !has_to_stop();
  }

  // The connections have threads of their own, which have no CancelScope.
  bool has_to_stop() {
    if (cancelled_ != nullptr && *cancelled_) stop_ = true;
    return stop_;
  }

  // Moves `at` by what came.
  void fetch_from(Client& client, int64_t part, int64_t& at) {
    const int64_t end = parts_.end(part);
    bool too_much = false;
    const auto sink = [&](std::string_view bytes) {
      too_much = static_cast<int64_t>(bytes.size()) > end - at;
      if (too_much || has_to_stop()) return false;
      if (!parts_.write(at, bytes.data(), bytes.size())) {
        disk_error_ = errno;
        return false;
      }
      at += static_cast<int64_t>(bytes.size());
      meter_.add(static_cast<int64_t>(bytes.size()), true);
      return true;
    };
    FileInfo source = info();
    source.size = source_.file.size;
    const bool ranged = client.fetch(source, at, end, sink, [this] { return going_on(); });
    if (disk_error_ != 0) {
      fail(Code::io, "hub", printable_line(source_.file.path),
           " cannot be written: ", std::strerror(disk_error_));
    }
    if (too_much) fail(Code::io, "hub", "the server sends more than was asked for");
    if (ranged) return;
    // What came of the whole file comes again.
    meter_.add(parts_.begin(part) - at, false);
    at = parts_.begin(part);
    if (parts_.count() > 1) no_ranges_ = stop_ = true;
  }

  const Settings& settings_;
  const Source source_;
  std::mutex mutex_;  // guards info_, next_, failure_, and the list of parts
  FileInfo info_;
  PartFile& parts_;
  ProgressMeter& meter_;
  const std::atomic<bool>* const cancelled_;  // of the caller's CancelScope; null: none
  int64_t next_ = 0;
  std::exception_ptr failure_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> no_ranges_ = false;
  std::atomic<int> disk_error_ = 0;
};

// What the listing promises; empty if the bytes are those.
std::string difference(const fs::path& path, const RepoFile& file) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size != static_cast<uint64_t>(file.size)) {
    return cat("has ", error ? 0 : size, " bytes, ", file.size, " are promised");
  }
  const bool large = !file.sha256.empty();
  if (!large && file.blob_id.empty()) return {};
  const std::string sum = large ? sha256_of_file(path) : git_blob_of_file(path);
  const std::string& promised = large ? file.sha256 : file.blob_id;
  if (sum == promised) return {};
  return cat("has the ", large ? "SHA-256 " : "SHA-1 of git ", sum, ", promised is ", promised);
}

// As the hub's ETag: the promised sum. Another server's ETags may be the same for files that
// differ, so a blob that nobody promised a sum for has its size in its name.
std::string blob_name(const RepoFile& file, const std::string& etag) {
  if (!file.sha256.empty()) return file.sha256;
  return file.blob_id.empty() ? cat(etag, "-", file.size) : file.blob_id;
}

void fetch_blob(Client& client, const Source& source, const FileInfo& info, const fs::path& place,
                ProgressMeter& meter, const DownloadOptions& options) {
  const fs::path unfinished = place.string() + ".rbee.incomplete";
  const int64_t size = source.file.size;
  auto parts = std::make_unique<PartFile>(unfinished, size, options.part_bytes);
  meter.add(parts->whole_bytes(), false);
  for (int tried = 1;;) {
    check_free_space(place.parent_path(), size - parts->whole_bytes());
    if (!Fetch(client.settings(), source, info, *parts, meter).run(options.connections)) {
      meter.add(-parts->whole_bytes(), false);
      parts = std::make_unique<PartFile>(unfinished, size, size);
      continue;
    }
    const std::string wrong = difference(unfinished, source.file);
    if (wrong.empty()) break;
    meter.add(-size, false);
    parts->clear();
    const std::string words = cat(printable_line(source.file.path), " ", wrong);
    if (tried++ == 2) fail(Code::io, "hub", words, "; what came is not used");
    log(LogLevel::warn, "a file came with other bytes than promised; it is fetched again",
        {{"file", words}});
  }
  parts->finish(place);
}

}  // namespace

void check_free_space(const fs::path& folder, int64_t bytes) {
  fs::path at = folder;
  std::error_code error;
  while (!fs::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  const fs::space_info space = fs::space(at, error);
  if (error || bytes <= 0 || space.available >= static_cast<uint64_t>(bytes)) return;
  fail(Code::io, folder.string(), bytes_to_text(bytes), " are needed and ",
       bytes_to_text(static_cast<int64_t>(space.available)),
       " are free; rbee rm deletes models, and HF_HUB_CACHE names another folder");
}

void download_file(Client& client, const Cache& cache, std::string_view repo,
                   std::string_view commit, const RepoFile& file, ProgressMeter& meter,
                   const DownloadOptions& options) {
  const FileInfo info = client.file_info(repo, commit, file.path);
  const bool same = info.commit == commit && (info.size < 0 || info.size == file.size);
  if (!same) {
    fail(Code::io, "hub", printable_line(file.path), " is another file than the listing says");
  }
  cache.prepare(repo);
  const std::string name = blob_name(file, info.etag);
  const FileLock lock(cache.lock(repo, name));
  const fs::path place = cache.blob(repo, name);
  std::error_code error;
  if (fs::is_regular_file(place, error) && difference(place, file).empty()) {
    meter.add(file.size, false);
  } else {
    fetch_blob(client, {repo, commit, file}, info, place, meter, options);
  }
  cache.link(repo, commit, file.path, name);
}

}  // namespace rbee::hub

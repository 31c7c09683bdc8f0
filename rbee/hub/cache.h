#pragma once
// Hugging Face's cache on disk, as huggingface_hub lays it out, so that both share its files:
//
//   <cache>/models--org--repo/                            models--repo without an organisation
//   <cache>/models--org--repo/blobs/<name>                a file, by its promised sum: the hub's
//   ETag
//                             refs/<revision>             the commit of a branch or tag
//                             snapshots/<commit>/<file>   a relative link to a blob
//                             .no_exist/<commit>/<file>   empty: the commit has no such file
//                             trees/<commit>.json         the files of the commit
//   <cache>/.locks/models--org--repo/<name>.lock          held while the blob is fetched

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/hub/listing.h"

namespace rbee::hub {

// A file that a process holds with flock(), as Python's filelock does. It stays when released, so
// that all who wait have the same one.
class FileLock {
 public:
  // Waits until it is free, for so long at most if that is given, and logs that it waits. Throws io
  // if the file cannot be made.
  explicit FileLock(const std::filesystem::path& path,
                    std::optional<std::chrono::milliseconds> patience = std::nullopt);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // False if it was not free in time.
  bool is_ours() const { return ours_; }
  // Whether a process holds it now.
  static bool is_held(const std::filesystem::path& path);

 private:
  int descriptor_ = -1;
  bool ours_ = false;
};

struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;  // branches and tags that lead to it
  std::vector<RepoFile> files;    // of the snapshot, with their sizes; no sums
};

struct CachedRepo {
  std::string repo;   // "org/repo" or "repo"
  int64_t bytes = 0;  // of its blobs, each counted once
  std::vector<CachedRevision> revisions;
};

// Every path that a method returns is below root(): names are checked first, and folders on the way
// that are links are refused.
class Cache {
 public:
  explicit Cache(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path repo_folder(std::string_view repo) const;
  std::filesystem::path blob(std::string_view repo, std::string_view name) const;
  std::filesystem::path lock(std::string_view repo, std::string_view name) const;
  std::filesystem::path snapshot(std::string_view repo, std::string_view commit) const;
  std::filesystem::path snapshot_file(std::string_view repo, std::string_view commit,
                                      std::string_view file) const;

  // The commit of a branch or tag as last heard; of a commit itself. Absent if unknown.
  std::optional<std::string> commit_of(std::string_view repo, std::string_view revision) const;
  // The files of a commit, as listed by the hub; absent if no listing is kept.
  std::optional<std::vector<RepoFile>> listing(std::string_view repo,
                                               std::string_view commit) const;
  // Whether the snapshot has the file, with the size of the listing.
  bool has_file(std::string_view repo, std::string_view commit, const RepoFile& file) const;

  // Write what their names say. Throw io.
  void set_commit(std::string_view repo, std::string_view revision, std::string_view commit) const;
  void set_listing(std::string_view repo, std::string_view commit,
                   const std::vector<RepoFile>& files) const;
  void set_absent(std::string_view repo, std::string_view commit, std::string_view file) const;
  // The snapshot's link to a blob, in the place of one to another blob.
  void link(std::string_view repo, std::string_view commit, std::string_view file,
            std::string_view name) const;
  // Makes the folders of a blob and its lock, and the tag by which backup programs know a cache.
  void prepare(std::string_view repo) const;

  // All repositories of models, by name.
  std::vector<CachedRepo> list() const;
  // Absent if it is not in the cache.
  std::optional<CachedRepo> find(std::string_view repo) const;
  // Throws io if another process fetches one of the repository's files.
  void check_not_fetched(std::string_view repo) const;
  // Deletes the repository's folder and its locks. False if it is not in the cache. Throws io if
  // another process fetches one of its files.
  bool remove(std::string_view repo) const;

 private:
  void write(const std::filesystem::path& path, std::string_view text) const;
  void make_folders(const std::filesystem::path& folder) const;

  std::filesystem::path root_;
};

}  // namespace rbee::hub

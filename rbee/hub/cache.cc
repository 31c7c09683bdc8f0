#include "rbee/hub/cache.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <set>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "rbee/hub/hub_json.h"
#include "rbee/hub/name.h"

namespace rbee::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModels = "models--";
constexpr uint64_t kMaxRef = 4096;  // bytes of a branch's file
constexpr const char* kTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag created by huggingface_hub.\n"
    "# For information about cache directory tags, see:\n"
    "#\thttps://bford.info/cachedir/\n";

std::string folder_name(std::string_view repo) {
  check_repo(repo);
  const size_t slash = repo.find('/');
  if (slash == std::string_view::npos) return cat(kModels, repo);
  return cat(kModels, repo.substr(0, slash), "--", repo.substr(slash + 1));
}

// The repository of a folder's name; empty if it is none.
std::string repo_of(const std::string& name) {
  if (!name.starts_with(kModels)) return {};
  std::string repo = name.substr(kModels.size());
  const size_t at = repo.find("--");  // without an organisation it is not there
  if (at != std::string::npos) repo.replace(at, 2, "/");
  try {
    check_repo(repo);
  } catch (const Error&) {
    return {};
  }
  return repo;
}

void check_blob_name(std::string_view name) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  const bool valid = !name.empty() && name.size() <= 200 && name.front() != '.' &&
                     std::ranges::all_of(name, plain);
  if (!valid) fail(Code::io, "hub", "the ETag '", printable_line(name), "' cannot name a file");
}

void check_commit(std::string_view commit) {
  if (!is_commit(commit)) {
    fail(Code::io, "hub", "'", printable_line(commit), "' is no commit of 40 hexadecimal digits");
  }
}

std::string random_suffix() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;
  std::string out;
  for (int i = 0; i < 8; ++i) out += kDigits[random() & 15];
  return out;
}

void check_io(bool good, const fs::path& path, std::string_view what) {
  if (!good) fail(Code::io, path.string(), what, ": ", std::strerror(errno));
}

int64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

// Empty if it cannot be one, such as a file that is too large for it.
std::string read_commit(const fs::path& ref) {
  try {
    std::string commit = read_file(ref, kMaxRef);
    return is_commit(commit) ? commit : std::string();
  } catch (const Error&) {
    return {};
  }
}

// Of a snapshot. A link whose blob is gone is no file.
std::vector<RepoFile> files_below(const fs::path& snapshot) {
  std::vector<RepoFile> out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(snapshot, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!fs::is_regular_file(it->path(), ignored)) continue;
    out.push_back({.path = it->path().lexically_relative(snapshot).string(),
                   .size = size_of(it->path()),
                   .blob_id = {}});
  }
  std::ranges::sort(out, {}, &RepoFile::path);
  return out;
}

}  // namespace

fs::path Cache::repo_folder(std::string_view repo) const {
  return root_ / folder_name(repo);
}

fs::path Cache::blob(std::string_view repo, std::string_view name) const {
  check_blob_name(name);
  return repo_folder(repo) / "blobs" / name;
}

fs::path Cache::lock(std::string_view repo, std::string_view name) const {
  check_blob_name(name);
  return root_ / ".locks" / folder_name(repo) / cat(name, ".lock");
}

fs::path Cache::snapshot(std::string_view repo, std::string_view commit) const {
  check_commit(commit);
  return repo_folder(repo) / "snapshots" / commit;
}

fs::path Cache::snapshot_file(std::string_view repo, std::string_view commit,
                              std::string_view file) const {
  check_file(file);
  return snapshot(repo, commit) / file;
}

std::optional<std::string> Cache::commit_of(std::string_view repo,
                                            std::string_view revision) const {
  if (is_commit(revision)) return std::string(revision);
  check_revision(revision);
  const std::string commit = read_commit(repo_folder(repo) / "refs" / revision);
  return commit.empty() ? std::nullopt : std::optional(commit);
}

std::optional<std::vector<RepoFile>> Cache::listing(std::string_view repo,
                                                    std::string_view commit) const {
  check_commit(commit);
  const fs::path path = repo_folder(repo) / "trees" / cat(commit, ".json");
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  try {
    return listing_from_json(read_file(path, kMaxJson));
  } catch (const Error& unreadable) {
    log(LogLevel::warn, "a kept listing of files cannot be read; the hub is asked again",
        {{"file", path.string()}, {"error", unreadable.what()}});
    return std::nullopt;
  }
}

bool Cache::has_file(std::string_view repo, std::string_view commit, const RepoFile& file) const {
  const fs::path path = snapshot_file(repo, commit, file.path);
  std::error_code error;
  return fs::is_regular_file(path, error) && size_of(path) == file.size;
}

// Without a link on the way: one that leads out of the cache would take the file with it.
void Cache::make_folders(const fs::path& folder) const {
  std::error_code error;
  fs::create_directories(root_, error);
  if (error) fail(Code::io, root_.string(), "the cache's folder cannot be made: ", error.message());
  fs::path at = root_;
  for (const fs::path& part : folder.lexically_relative(root_)) {
    at /= part;
    const fs::file_status status = fs::symlink_status(at, error);
    if (status.type() == fs::file_type::not_found) fs::create_directory(at, error);
    if (!fs::is_directory(fs::symlink_status(at, error))) {
      fail(Code::io, at.string(), "this has to be a folder, and is a file or a link");
    }
  }
}

// In one step for those who read it.
void Cache::write(const fs::path& path, std::string_view text) const {
  make_folders(path.parent_path());
  const fs::path unfinished = path.string() + "." + random_suffix() + ".tmp";
  std::ofstream out(unfinished, std::ios::binary);
  out << text;
  out.close();
  check_io(out.good(), path, "it cannot be written");
  check_io(rename(unfinished.c_str(), path.c_str()) == 0, path, "it cannot be written");
}

void Cache::set_commit(std::string_view repo, std::string_view revision,
                       std::string_view commit) const {
  check_revision(revision);
  check_commit(commit);
  if (revision == commit || commit_of(repo, revision) == commit) return;
  write(repo_folder(repo) / "refs" / revision, commit);
}

void Cache::set_listing(std::string_view repo, std::string_view commit,
                        const std::vector<RepoFile>& files) const {
  check_commit(commit);
  write(repo_folder(repo) / "trees" / cat(commit, ".json"), listing_to_json(files));
}

void Cache::set_absent(std::string_view repo, std::string_view commit,
                       std::string_view file) const {
  check_commit(commit);
  check_file(file);
  const fs::path path = repo_folder(repo) / ".no_exist" / commit / file;
  std::error_code error;
  if (!fs::exists(path, error)) write(path, "");
}

void Cache::link(std::string_view repo, std::string_view commit, std::string_view file,
                 std::string_view name) const {
  const fs::path from = snapshot_file(repo, commit, file), to = blob(repo, name);
  const fs::path target = to.lexically_relative(from.parent_path());
  make_folders(from.parent_path());
  std::error_code error;
  if (fs::read_symlink(from, error) == target) return;
  fs::remove(from, error);  // a link to another blob, or a file that was cut off
  fs::create_symlink(target, from, error);
  if (error && !fs::is_regular_file(from)) {
    fail(Code::io, from.string(), "the link cannot be made: ", error.message());
  }
}

void Cache::prepare(std::string_view repo) const {
  make_folders(repo_folder(repo) / "blobs");
  make_folders(root_ / ".locks" / folder_name(repo));
  const fs::path tag = root_ / "CACHEDIR.TAG";
  std::error_code error;
  if (!fs::exists(tag, error)) write(tag, kTag);
}

std::optional<CachedRepo> Cache::find(std::string_view repo) const {
  const fs::path folder = repo_folder(repo);
  std::error_code error;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  CachedRepo out{.repo = std::string(repo)};
  for (const fs::path& blob : children(folder / "blobs")) out.bytes += size_of(blob);
  for (const fs::path& snapshot : children(folder / "snapshots")) {
    if (!is_commit(snapshot.filename().string())) continue;
    out.revisions.push_back(
        {.commit = snapshot.filename().string(), .refs = {}, .files = files_below(snapshot)});
  }
  const fs::path refs = folder / "refs";
  for (const RepoFile& ref : files_below(refs)) {
    const std::string commit = read_commit(refs / ref.path);
    for (CachedRevision& revision : out.revisions) {
      if (revision.commit == commit) revision.refs.push_back(ref.path);
    }
  }
  return out;
}

std::vector<CachedRepo> Cache::list() const {
  std::vector<CachedRepo> out;
  for (const fs::path& folder : children(root_)) {
    const std::string repo = repo_of(folder.filename().string());
    if (repo.empty()) continue;
    if (auto found = find(repo)) out.push_back(std::move(*found));
  }
  return out;
}

void Cache::check_not_fetched(std::string_view repo) const {
  for (const fs::path& lock : children(root_ / ".locks" / folder_name(repo))) {
    if (FileLock::is_held(lock)) fail(Code::io, cat("hf:", repo), "another process fetches it");
  }
}

bool Cache::remove(std::string_view repo) const {
  const fs::path folder = repo_folder(repo);
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return false;
  check_not_fetched(repo);
  const fs::path locks = root_ / ".locks" / folder_name(repo);
  fs::remove_all(folder, error);
  if (error) fail(Code::io, folder.string(), "it cannot be deleted: ", error.message());
  fs::remove_all(locks, error);
  return true;
}

}  // namespace rbee::hub

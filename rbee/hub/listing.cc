#include "rbee/hub/listing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/hub/hub_json.h"
#include "rbee/hub/name.h"

namespace rbee::hub {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormatVersion = 1;

int64_t size_of(const json& object, const char* key) {
  const auto found = object.find(key);
  const bool is_there = found != object.end() && found->is_number_integer();
  const int64_t size = is_there ? integer_of(object, key) : -1;
  if (size < 0 || size > kMaxFileBytes) fail(Code::io, "hub", "a listed file has no possible size");
  return size;
}

bool is_safe(const std::string& path) {
  try {
    check_file(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Counts in `left_out` what it does not add.
void add(std::vector<RepoFile>& files, RepoFile file, size_t& left_out) {
  if (files.size() + left_out == kMaxFiles) fail(Code::io, "hub", "too many files are listed");
  if (is_safe(file.path)) {
    files.push_back(std::move(file));
  } else {
    ++left_out;
  }
}

}  // namespace

void parse_tree(std::string_view text, std::vector<RepoFile>& files, size_t& left_out) {
  const json page = parse_json(text, "a listing of files");
  if (!page.is_array()) fail(Code::io, "hub", "a listing of files is no array");
  for (const json& entry : page) {
    if (!entry.is_object() || text_of(entry, "type") != "file") continue;
    RepoFile file{.path = text_of(entry, "path"),
                  .size = size_of(entry, "size"),
                  .blob_id = text_of(entry, "oid"),
                  .xet_hash = text_of(entry, "xetHash")};
    if (const auto lfs = entry.find("lfs"); lfs != entry.end() && lfs->is_object()) {
      file.sha256 = text_of(*lfs, "oid");
      file.size = size_of(*lfs, "size");
    }
    add(files, std::move(file), left_out);
  }
}

void log_left_out(size_t left_out) {
  if (left_out == 0) return;
  log(LogLevel::warn, "files of the repository have names that are not safe; they are left out",
      {{"files", cat(left_out)}});
}

std::string listing_to_json(std::vector<RepoFile> files) {
  std::ranges::sort(files, {}, &RepoFile::path);
  ordered_json listed = ordered_json::object();
  for (const RepoFile& file : files) {
    ordered_json entry{{"size", file.size}, {"blob_id", file.blob_id}};
    if (!file.sha256.empty()) {
      entry["lfs_sha256"] = file.sha256;
      entry["lfs_size"] = file.size;
    }
    if (!file.xet_hash.empty()) entry["xet_hash"] = file.xet_hash;
    listed[file.path] = std::move(entry);
  }
  const ordered_json out{{"format_version", kFormatVersion}, {"files", std::move(listed)}};
  return out.dump(1, ' ', true, ordered_json::error_handler_t::replace);
}

std::vector<RepoFile> listing_from_json(std::string_view text) {
  const json whole = parse_json(text, "a listing of files");
  const bool known = whole.is_object() && integer_of(whole, "format_version") == kFormatVersion &&
                     whole.contains("files") && whole.at("files").is_object();
  if (!known) fail(Code::io, "hub", "a listing of files has another form");
  std::vector<RepoFile> out;
  size_t left_out = 0;
  for (const auto& [path, entry] : whole.at("files").items()) {
    if (!entry.is_object()) fail(Code::io, "hub", "a listed file is no object");
    RepoFile file{.path = path,
                  .size = size_of(entry, entry.contains("lfs_size") ? "lfs_size" : "size"),
                  .blob_id = text_of(entry, "blob_id"),
                  .sha256 = text_of(entry, "lfs_sha256"),
                  .xet_hash = text_of(entry, "xet_hash")};
    add(out, std::move(file), left_out);
  }
  log_left_out(left_out);
  return out;
}

}  // namespace rbee::hub

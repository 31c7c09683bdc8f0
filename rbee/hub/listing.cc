#include "rbee/hub/listing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "rbee/hub/name.h"

namespace rbee::hub {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormatVersion = 1;

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t size_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer() || found->get<int64_t>() < 0) {
    fail(Code::io, "hub", "a listed file has no size");
  }
  return found->get<int64_t>();
}

bool keep(const std::string& path) {
  try {
    check_file(path);
    return true;
  } catch (const Error&) {
    log(LogLevel::warn, "a file of the repository has a name that is not safe; it is left out",
        {{"file", printable_line(path)}});
    return false;
  }
}

json parsed(std::string_view text) {
  json out = json::parse(text, nullptr, false);
  if (out.is_discarded()) fail(Code::io, "hub", "a listing of files is no JSON");
  return out;
}

}  // namespace

std::vector<RepoFile> parse_tree(std::string_view text) {
  const json page = parsed(text);
  if (!page.is_array()) fail(Code::io, "hub", "a listing of files is no array");
  std::vector<RepoFile> out;
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
    if (keep(file.path)) out.push_back(std::move(file));
  }
  return out;
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
  const json whole = parsed(text);
  const bool known = whole.is_object() && whole.value("format_version", json()) == kFormatVersion &&
                     whole.contains("files") && whole.at("files").is_object();
  if (!known) fail(Code::io, "hub", "a listing of files has another form");
  std::vector<RepoFile> out;
  for (const auto& [path, entry] : whole.at("files").items()) {
    if (!entry.is_object()) fail(Code::io, "hub", "a listed file is no object");
    RepoFile file{.path = path,
                  .size = size_of(entry, entry.contains("lfs_size") ? "lfs_size" : "size"),
                  .blob_id = text_of(entry, "blob_id"),
                  .sha256 = text_of(entry, "lfs_sha256"),
                  .xet_hash = text_of(entry, "xet_hash")};
    if (keep(path)) out.push_back(std::move(file));
  }
  return out;
}

}  // namespace rbee::hub

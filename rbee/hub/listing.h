#pragma once
// The files of a repository at one commit, as the hub lists them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::hub {

struct RepoFile {
  std::string path;        // checked by check_file()
  int64_t size = 0;        // bytes
  std::string blob_id;     // git's SHA-1, of a large file that of its pointer
  std::string sha256{};    // of large files; empty for others
  std::string xet_hash{};  // empty = none; for huggingface_hub alone
};

// Of a page of the hub's /tree. Names that check_file() refuses are left out and logged: nothing of
// ours could open them. Throws io if it is no listing.
std::vector<RepoFile> parse_tree(std::string_view json);

// <cache>/.../trees/<commit>.json, byte for byte as huggingface_hub writes it.
std::string listing_to_json(std::vector<RepoFile> files);
// Throws io if the text is not of that form.
std::vector<RepoFile> listing_from_json(std::string_view json);

}  // namespace rbee::hub

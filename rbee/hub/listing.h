#pragma once
// The files of a repository at one commit, as the hub lists them.

#include <cstddef>
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

// With these limits the sizes of a listing add up within 63 bits.
inline constexpr size_t kMaxFiles = 100'000;                // of a listing
inline constexpr int64_t kMaxFileBytes = int64_t{1} << 46;  // of a file

// Appends a page of the hub's /tree. Names that check_file() refuses are left out and counted in
// `left_out`: nothing of ours could open them. Throws io if it is no listing, or beyond the limits.
void parse_tree(std::string_view json, std::vector<RepoFile>& files, size_t& left_out);
// One line, unless `left_out` is 0.
void log_left_out(size_t left_out);

// <cache>/.../trees/<commit>.json, byte for byte as huggingface_hub writes it.
std::string listing_to_json(std::vector<RepoFile> files);
// Throws io if the text is not of that form, or beyond the limits. Logs as above.
std::vector<RepoFile> listing_from_json(std::string_view json);

}  // namespace rbee::hub

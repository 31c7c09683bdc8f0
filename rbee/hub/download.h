#pragma once
// Fetches a file of the hub into the cache: resumed after any break, over several connections,
// checked against the sums of the listing.

#include <string_view>

#include "rbee/hub/cache.h"
#include "rbee/hub/client.h"
#include "rbee/hub/progress.h"

namespace rbee::hub {

struct DownloadOptions {
  int connections = 4;                     // for files of several parts
  int64_t part_bytes = int64_t{16} << 20;  // a part is fetched whole by one connection
};

// Throws io unless the file system of `folder`, or of the nearest folder above it that exists, has
// `bytes` free.
void check_free_space(const std::filesystem::path& folder, int64_t bytes);

// Makes the snapshot's file. Waits while another process fetches the same blob, and then uses that.
// Reports its bytes to `meter`. Throws as Client does, and io if the bytes are not those of the
// listing, or cannot be written. Throws cancelled if the thread's CancelScope ends it: what came
// stays for the next time.
void download_file(Client& client, const Cache& cache, std::string_view repo,
                   std::string_view commit, const RepoFile& file, ProgressMeter& meter,
                   const DownloadOptions& options = {});

}  // namespace rbee::hub

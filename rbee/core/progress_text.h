#pragma once
// How far a download or a load is, in messages for people.

#include <cstdint>
#include <optional>
#include <string>

namespace rbee {

// "1.25 GB of 4.68 GB (26 %), 35.1 MB/s, 1 min 37 s left". What is unknown is left out.
std::string progress_to_text(int64_t done, int64_t total, std::optional<double> bytes_per_second,
                             std::optional<double> seconds_left);

}  // namespace rbee

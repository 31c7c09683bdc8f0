#pragma once
// When files were written.

#include <cstdint>
#include <string>

namespace rbee {

// Seconds since 1970 of the newest change: of the file, or of all files below the folder. Links
// count as what they lead to. 0 if there is nothing.
int64_t written_at(const std::string& path);

}  // namespace rbee

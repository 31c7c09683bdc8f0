#pragma once
// What Apple's compiler made of kernels, kept between runs in files that Metal calls binary
// archives (Apple developer documentation, "MTLBinaryArchive").

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "backends/metal/objc.h"

namespace rbee::metal {

// What a folder's archives may take, bytes: some times what all kernels of one version do.
inline constexpr int64_t kMostArchiveBytes = int64_t{256} << 20;

// Removes archives of kernels from the folder, those first that were not used for longest, until
// the others take no more than `most_bytes`; and of unfinished ones those that are an hour old.
// Other files stay. What cannot be read or removed is left.
void sweep_archives(const std::filesystem::path& folder, int64_t most_bytes);

class PipelineCache {
 public:
  // `machine`: device and system, in whose name the files are kept. They are in the folder that
  // RBEE_METAL_CACHE names (empty: none are kept), else in ~/Library/Caches/rbee.cpp where the
  // system has ~/Library/Caches.
  PipelineCache(const ObjC& objc, Id device, std::string machine);

  // The pipeline of a function that was compiled from `source`; null with `error` set if Metal
  // gives none. An archive that is missing, damaged or of another compiler is made anew, and then
  // the folder is swept: archives of other versions would stay in it for ever. A folder that
  // cannot be written costs a warning, once.
  Retained pipeline(Id function, std::string_view name, std::string_view source, Id* error) const;

 private:
  std::filesystem::path file_of(std::string_view name, std::string_view source) const;
  Retained archive(const std::filesystem::path& file) const;  // empty path: a new one
  Retained kept(const std::filesystem::path& file, Id descriptor) const;
  // Compiles into a new archive, and writes that.
  Retained made(const std::filesystem::path& file, Id descriptor) const;
  void write(const std::filesystem::path& file, Id archive) const;
  Id url(const std::filesystem::path& file) const;

  const ObjC& objc_;
  Id device_;
  std::string machine_;
  std::filesystem::path folder_;  // empty: nothing is kept
  mutable std::atomic<bool> told_ = false;
};

}  // namespace rbee::metal

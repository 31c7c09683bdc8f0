#include "backends/metal/pipeline_cache.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"

namespace rbee::metal {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  const char* named = std::getenv("RBEE_METAL_CACHE");  // NOLINT(concurrency-mt-unsafe)
  if (named != nullptr) return named;
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home == nullptr) return {};
  const fs::path caches = fs::path(home) / "Library/Caches";
  std::error_code ignored;
  return fs::is_directory(caches, ignored) ? caches / "rbee.cpp" : fs::path();
}

// FNV-1a. Metal compares the function with the archive's, so a sum that two texts share costs a
// compilation and no more.
uint64_t sum_of(std::string_view text, uint64_t sum = 0xcbf29ce484222325) {
  for (const char c : text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return sum;
}

std::string hex(uint64_t number) {
  std::string out(16, '0');
  for (size_t i = out.size(); i-- > 0; number /= 16) out[i] = "0123456789abcdef"[number % 16];
  return out;
}

constexpr std::string_view kEnding = ".metalarchive";
constexpr size_t kSumDigits = 16;
constexpr std::chrono::hours kUnfinished{1};  // longer than any compiler takes

struct ArchiveFile {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes = 0;
};

// Whether file_of() gives such names, or write() such unfinished ones: the folder may be one that
// has other files.
bool is_archive(std::string_view name, bool& unfinished) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const size_t end = name.rfind(kEnding);
  if (end == name.npos || name.find_first_not_of(kDigits) != kSumDigits) return false;
  const std::string_view rest = name.substr(end + kEnding.size());
  unfinished = !rest.empty();
  return name[kSumDigits] == '-' &&
         (rest.empty() || (rest[0] == '.' && rest.find_first_not_of(kDigits, 1) == rest.npos));
}

}  // namespace

void sweep_archives(const fs::path& folder, int64_t most_bytes) {
  std::error_code fault;
  std::vector<ArchiveFile> files;
  int64_t bytes = 0;
  const auto now = fs::file_time_type::clock::now();
  fs::directory_iterator at(folder, fault);
  for (; !fault && at != fs::directory_iterator(); at.increment(fault)) {
    std::error_code ignored;
    bool unfinished = false;
    if (!is_archive(at->path().filename().string(), unfinished)) continue;
    const auto size = static_cast<int64_t>(at->file_size(ignored));
    const auto used = at->last_write_time(ignored);
    if (ignored || !at->is_regular_file(ignored)) continue;
    if (unfinished && now - used > kUnfinished) fs::remove(at->path(), ignored);
    if (unfinished) continue;
    files.push_back({.path = at->path(), .used = used, .bytes = size});
    bytes += size;
  }
  std::ranges::sort(files, {}, &ArchiveFile::used);
  for (const ArchiveFile& file : files) {
    if (bytes <= most_bytes) return;
    if (fs::remove(file.path, fault)) bytes -= file.bytes;
  }
}

PipelineCache::PipelineCache(const ObjC& objc, Id device, std::string machine)
    : objc_(objc), device_(device), machine_(std::move(machine)), folder_(folder()) {}

fs::path PipelineCache::file_of(std::string_view name, std::string_view source) const {
  return folder_ / cat(hex(sum_of(source, sum_of(machine_))), "-", name, kEnding);
}

Id PipelineCache::url(const fs::path& file) const {
  return objc_.send<MetalMessage::file_url>(objc_.class_named("NSURL"), objc_.string(file.c_str()));
}

Retained PipelineCache::archive(const fs::path& file) const {
  const Retained descriptor =
      Retained::owned(objc_, objc_.send<MetalMessage::new_archive_descriptor>(
                                 objc_.class_named("MTLBinaryArchiveDescriptor")));
  if (!file.empty()) objc_.send<MetalMessage::set_url>(descriptor.get(), url(file));
  Id error = nullptr;
  return Retained::owned(objc_,
                         objc_.send<MetalMessage::new_archive>(device_, descriptor.get(), &error));
}

Retained PipelineCache::pipeline(Id function, std::string_view name, std::string_view source,
                                 Id* error) const {
  if (!folder_.empty()) {
    const Retained descriptor =
        Retained::owned(objc_, objc_.send<MetalMessage::new_pipeline_descriptor>(
                                   objc_.class_named("MTLComputePipelineDescriptor")));
    objc_.send<MetalMessage::set_compute_function>(descriptor.get(), function);
    const fs::path file = file_of(name, source);
    if (Retained known = kept(file, descriptor.get())) return known;
    if (Retained now = made(file, descriptor.get())) return now;
  }
  return Retained::owned(objc_, objc_.send<MetalMessage::new_pipeline>(device_, function, error));
}

Retained PipelineCache::kept(const fs::path& file, Id descriptor) const {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  const Retained from = archive(file);
  if (!from) return {};
  objc_.send<MetalMessage::set_archives>(
      descriptor, objc_.send<MetalMessage::array_of>(objc_.class_named("NSArray"), from.get()));
  Id error = nullptr;
  Retained out =
      Retained::owned(objc_, objc_.send<MetalMessage::new_pipeline_from>(
                                 device_, descriptor, kFailOnArchiveMiss, nullptr, &error));
  // For sweep_archives(): when it was used.
  if (out) fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  return out;
}

Retained PipelineCache::made(const fs::path& file, Id descriptor) const {
  objc_.send<MetalMessage::set_archives>(descriptor, nullptr);
  const Retained into = archive({});
  Id error = nullptr;
  if (!into || !objc_.send<MetalMessage::add_pipeline>(into.get(), descriptor, &error)) return {};
  objc_.send<MetalMessage::set_archives>(
      descriptor, objc_.send<MetalMessage::array_of>(objc_.class_named("NSArray"), into.get()));
  Retained out = Retained::owned(objc_, objc_.send<MetalMessage::new_pipeline_from>(
                                            device_, descriptor, uint64_t{0}, nullptr, &error));
  if (out) write(file, into.get());
  return out;
}

// By way of another name, so that other processes find a whole file or none.
void PipelineCache::write(const fs::path& file, Id archive) const {
  std::error_code fault;
  fs::create_directories(folder_, fault);
  const fs::path unfinished = cat(file.string(), ".", getpid());
  Id error = nullptr;
  std::string why;
  if (fault) {
    why = fault.message();
  } else if (!objc_.send<MetalMessage::serialize>(archive, url(unfinished), &error)) {
    why = objc_.error_text(error);
  } else {
    fs::rename(unfinished, file, fault);
    if (fault) why = fault.message();
  }
  if (why.empty()) return sweep_archives(folder_, kMostArchiveBytes);
  fs::remove(unfinished, fault);
  if (told_.exchange(true)) return;
  log(LogLevel::warn, "compiled kernels are not kept, the next start compiles them again",
      {{"folder", folder_.string()}, {"error", why}});
}

}  // namespace rbee::metal

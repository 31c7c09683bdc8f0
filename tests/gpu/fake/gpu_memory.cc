#include "tests/gpu/fake/gpu_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace rbee::fake {
namespace {

constexpr size_t kSpace = size_t{1} << 38;  // addresses, not memory
constexpr int kFresh = 0xcd;

bool same(const std::vector<GpuPiece>& a, const std::vector<GpuPiece>& b) {
  const auto address = [](const GpuPiece& piece) { return piece.address; };
  return std::ranges::equal(a, b, {}, address, address);
}

}  // namespace

GpuMemory& GpuMemory::instance() {
  static auto* const memory = new GpuMemory;
  return *memory;
}

GpuMemory::GpuMemory() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
  file_ = memfd_create("fake Metal", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, kSpace) != 0) std::abort();
  for (std::byte** view : {&host_, &device_}) {
    void* mapped = mmap(nullptr, kSpace, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (mapped == MAP_FAILED) std::abort();
    *view = static_cast<std::byte*>(mapped);
  }
}

void GpuMemory::protect(const GpuPiece& piece, int protection) const {
  auto* view = reinterpret_cast<void*>(piece.address);  // NOLINT(performance-no-int-to-ptr)
  if (mprotect(view, (piece.bytes + page_ - 1) / page_ * page_, protection) != 0) std::abort();
}

GpuPiece GpuMemory::allocate(size_t bytes) {
  const size_t whole = (bytes + page_ - 1) / page_ * page_;
  if (used_ + whole + page_ > kSpace) std::abort();
  const GpuPiece piece{.host = host_ + used_,
                       .address = reinterpret_cast<uint64_t>(device_ + used_),
                       .bytes = bytes};
  used_ += whole + page_;  // what is behind the end is nobody's
  if (mprotect(piece.host, whole, PROT_READ | PROT_WRITE) != 0) std::abort();
  std::memset(piece.host, kFresh, whole);
  return piece;
}

bool GpuMemory::free(const GpuPiece& piece) {
  std::erase_if(resident_, [&](const GpuPiece& r) { return r.address == piece.address; });
  protect(piece, PROT_NONE);
  const size_t whole = (piece.bytes + page_ - 1) / page_ * page_;
  const bool intact = std::all_of(piece.host + piece.bytes, piece.host + whole,
                                  [](std::byte b) { return b == std::byte{kFresh}; });
  if (mprotect(piece.host, whole, PROT_NONE) != 0 ||
      fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece.host - host_,
                static_cast<off_t>(whole)) != 0) {
    std::abort();
  }
  return intact;
}

void GpuMemory::make_resident(const std::vector<GpuPiece>& pieces) {
  if (same(pieces, resident_)) return;
  for (const GpuPiece& piece : resident_) protect(piece, PROT_NONE);
  resident_ = pieces;
  for (const GpuPiece& piece : resident_) protect(piece, PROT_READ | PROT_WRITE);
}

}  // namespace rbee::fake

#pragma once
// The memory of the fake Metal. Each buffer is mapped twice: at the address that the host reads,
// and at the one that kernels get, where it is there only while a command buffer that named it
// runs. So an address of the device that the host follows, or that a kernel follows without the
// buffer being resident or alive, is a fault.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rbee::fake {

struct GpuPiece {
  std::byte* host = nullptr;
  uint64_t address = 0;  // of the device
  size_t bytes = 0;
};

class GpuMemory {
 public:
  static GpuMemory& instance();

  // Filled with a byte that is no zero. Addresses are not used again.
  GpuPiece allocate(size_t bytes);
  // False if something was written behind the piece's end.
  bool free(const GpuPiece& piece);
  // From now on the device has these pieces and no others.
  void make_resident(const std::vector<GpuPiece>& pieces);

 private:
  GpuMemory();
  void protect(const GpuPiece& piece, int protection) const;

  size_t page_;
  int file_ = -1;
  std::byte* host_ = nullptr;
  std::byte* device_ = nullptr;
  size_t used_ = 0;
  std::vector<GpuPiece> resident_;
};

}  // namespace rbee::fake

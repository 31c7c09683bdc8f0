#include "backends/cpu/workspace.h"

#include <cstdlib>
#include <memory>

#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};

struct Workspace {
  std::unique_ptr<std::byte, Free> data;
  int64_t bytes = 0;
};

}  // namespace

std::byte* thread_workspace(int64_t bytes) {
  static thread_local Workspace workspace;
  if (bytes > workspace.bytes) {
    constexpr int64_t kStep = int64_t{1} << 16;
    const int64_t size = (bytes + kStep - 1) / kStep * kStep;
    workspace.data.reset();
    workspace.bytes = 0;
    workspace.data.reset(
        static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(size))));
    if (workspace.data == nullptr) {
      fail(Code::out_of_memory, "workspace", size, " bytes of scratch memory are not to be had");
    }
    workspace.bytes = size;
  }
  return workspace.data.get();
}

}  // namespace rbee::cpu

#pragma once
// Names of kernels: <op>_<dtype>[_<variant>], the same on the host and in RB_KERNEL (portable.h).

#include <cstring>
#include <string_view>

#include "rbee/core/dtype.h"

namespace rbee::gpu {

// A short string without allocation, so that looking up a kernel costs no memory.
class KernelName {
 public:
  constexpr KernelName() = default;
  KernelName(std::string_view op, DType dtype, std::string_view variant = {}) {
    add(op);
    part(name(dtype));
    if (!variant.empty()) part(variant);
  }
  explicit KernelName(std::string_view whole) { add(whole); }

  // Appends "_<text>".
  KernelName& part(std::string_view text) {
    add("_");
    add(text);
    return *this;
  }
  // Appends "_w32" or "_w64": kernels that work across the lanes of a wave exist for both widths.
  KernelName& lanes(int count) { return part(count == 64 ? "w64" : "w32"); }

  const char* c_str() const { return text_; }
  std::string_view view() const { return {text_, length_}; }

 private:
  void add(std::string_view text) {
    const size_t room = sizeof text_ - 1 - length_;
    const size_t count = text.size() < room ? text.size() : room;
    std::memcpy(text_ + length_, text.data(), count);
    length_ += count;
    text_[length_] = '\0';
  }

  char text_[96] = {};
  size_t length_ = 0;
};

}  // namespace rbee::gpu

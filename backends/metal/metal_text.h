#pragma once
// A family's text, cut into its kernels.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace rbee::metal {

// The head, which all kernels need, is followed by the kernels, each behind a line
// "// kernel NAME ...".
class FamilyText {
 public:
  // Throws unsupported for bytes that are no such text, such as a compiled library (MTLB).
  explicit FamilyText(std::span<const std::byte> image);

  // Head and kernel: what is compiled. Empty if there is no such kernel.
  std::string source_of(std::string_view kernel) const;

 private:
  std::string head_;
  std::map<std::string, std::string, std::less<>> kernels_;
};

}  // namespace rbee::metal

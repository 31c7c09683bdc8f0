#include "backends/metal/metal_text.h"

#include "rbee/core/error.h"

namespace rbee::metal {
namespace {

constexpr std::string_view kMark = "// kernel ";

// Where the next kernel's line begins; npos: there is none.
size_t next_kernel(std::string_view text, size_t from) {
  for (size_t at = text.find(kMark, from); at != text.npos; at = text.find(kMark, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return at;
  }
  return text.npos;
}

}  // namespace

FamilyText::FamilyText(std::span<const std::byte> image) {
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  if (text.starts_with("MTLB")) {
    fail(Code::unsupported, "metal", "compiled libraries (MTLB) cannot be loaded, only text");
  }
  size_t at = next_kernel(text, 0);
  if (at == text.npos) fail(Code::unsupported, "metal", "the text has no line \"", kMark, "NAME\"");
  head_ = text.substr(0, at);
  while (at != text.npos) {
    const size_t next = next_kernel(text, at + 1);
    const std::string_view kernel = text.substr(at, next == text.npos ? next : next - at);
    const std::string_view name = kernel.substr(kMark.size());
    kernels_.emplace(name.substr(0, name.find_first_of(" \n")), kernel);
    at = next;
  }
}

std::string FamilyText::source_of(std::string_view kernel) const {
  const auto found = kernels_.find(kernel);
  return found != kernels_.end() ? head_ + found->second : "";
}

}  // namespace rbee::metal

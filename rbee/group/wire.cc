#include "rbee/group/wire.h"

#include <bit>
#include <cstring>

#include "rbee/core/error.h"

namespace rbee::group {
namespace {

constexpr const char* kOp = "group message";

static_assert(std::endian::native == std::endian::little, "messages are copied as they are");

}  // namespace

void WireWriter::append(const void* from, size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(from);
  bytes_.insert(bytes_.end(), begin, begin + bytes);
}

void WireWriter::put_text(std::string_view text) {
  put(static_cast<int64_t>(text.size()));
  append(text.data(), text.size());
}

void WireReader::copy(std::string_view what, void* to, size_t bytes) {
  check(bytes <= rest_.size(), kOp, what, " needs ", bytes, " bytes, ", rest_.size(), " are left");
  if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
  rest_ = rest_.subspan(bytes);
}

int64_t WireReader::take_within(std::string_view what, int64_t least, int64_t most) {
  const auto out = take<int64_t>(what);
  check(out >= least && out <= most, kOp, what, " ", out, " is outside of ", least, " to ", most);
  return out;
}

int64_t WireReader::take_count(std::string_view what, int64_t most, size_t each) {
  const int64_t count = take_within(what, 0, most);
  check(static_cast<uint64_t>(count) <= rest_.size() / each, kOp, what, " has ", count,
        " elements, ", rest_.size(), " bytes are left");
  return count;
}

std::string WireReader::take_text(std::string_view what, int64_t most) {
  std::string out(static_cast<size_t>(take_count(what, most, 1)), '\0');
  copy(what, out.data(), out.size());
  return out;
}

void WireReader::end() const {
  check(rest_.empty(), kOp, rest_.size(), " bytes are behind its end");
}

}  // namespace rbee::group

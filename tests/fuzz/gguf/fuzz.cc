// A GGUF file of any bytes: its header, then every value and tensor read from it.

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "rbee/io/gguf_reader.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/memory_file.h"

namespace {

using rbee::io::Metadata;
using rbee::io::MetaEntry;

// Each getter must refuse a value of another type by an Error; each is called separately.
template <typename Get>
void ask(Get get) {
  try {
    get();
  } catch (const rbee::Error& error) {
    rbee::fuzz::expect_reason(error);
  }
}

size_t read_all(const Metadata& metadata) {
  size_t sum = 0;
  for (const MetaEntry& entry : metadata.entries()) {
    sum += entry.describe_type().size();
    ask([&] { sum += metadata.require_u64(entry.key); });
    ask([&] { sum += static_cast<size_t>(metadata.require_i64(entry.key)); });
    ask([&] { sum += metadata.require_f64(entry.key) > 0; });
    ask([&] { sum += metadata.require_bool(entry.key); });
    ask([&] { sum += metadata.require_string(entry.key).size(); });
    ask([&] { sum += metadata.require_floats(entry.key).size(); });
    ask([&] { sum += metadata.require_ints(entry.key).size(); });
    ask([&] {
      for (const std::string_view text : metadata.require_strings(entry.key)) {
        sum += std::accumulate(text.begin(), text.end(), size_t{0});
      }
    });
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = rbee::fuzz::memory_file(data, size);
  try {
    const rbee::io::GgufContents contents = rbee::io::read_gguf(file);
    volatile size_t sum = read_all(contents.metadata);
    for (const auto& tensor : contents.tensors) {
      for (const std::byte byte : tensor.data) sum = sum + static_cast<size_t>(byte);
    }
  } catch (const rbee::Error& error) {
    rbee::fuzz::expect_reason(error);
  }
  return 0;
}

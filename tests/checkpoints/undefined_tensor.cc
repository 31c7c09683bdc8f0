#include "tests/checkpoints/undefined_tensor.h"

#include <fstream>
#include <string>

#include "rbee/io/checkpoint.h"

namespace rbee::test {

void make_undefined(const std::filesystem::path& file, std::string_view tensor) {
  size_t at = 0, bytes = 0;
  {
    const io::Checkpoint checkpoint = io::Checkpoint::open(file);
    const io::TensorEntry& entry = checkpoint.require(tensor);
    at = static_cast<size_t>(entry.data.data() - entry.file->bytes().data());
    bytes = entry.data.size();
  }
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(static_cast<std::streamoff>(at));
  out << std::string(bytes, '\xff');
}

}  // namespace rbee::test

#pragma once
// Importance matrices ("imatrix"): sums of squares of what a model's matrices were multiplied by,
// as llama.cpp's llama-imatrix writes them
// (https://github.com/ggml-org/llama.cpp/tree/master/tools/imatrix).

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::io {

struct ImportanceEntry {
  std::vector<float> sums;    // (matrices, columns): of squares; an expert is a matrix
  std::vector<float> counts;  // (matrices), or one for all: rows that were summed
};

struct ImportanceMatrix {
  std::map<std::string, ImportanceEntry> entries;  // by the tensor's name in GGUF files
  std::vector<std::string> datasets;               // names of the texts
  int64_t chunks = 0;                              // of the texts, that were read
  // Tokens in a chunk; 0: the file does not say (the older form). Counts are chunks then.
  int64_t chunk_size = 0;

  // The mean square of each column: (columns), or (matrices, columns). A matrix that saw no row has
  // ones. Empty if there is no entry. Throws invalid_argument, naming the entry and the sizes,
  // unless it is for `matrices` of `columns`.
  std::vector<float> importance(const std::string& name, int64_t matrices, int64_t columns) const;
  // Adds another's sums and counts. chunk_size: of this, for entries of the older form. Throws
  // invalid_argument if entries of one name differ in size.
  void add(const ImportanceMatrix& other);
};

enum class ImportanceFormat : uint8_t {
  gguf,  // tensors NAME.in_sum2 and NAME.counts
  dat,   // the older form: means times chunks
};

// Reads either form. Throws as InputFile does, and invalid_argument, naming the file, the field and
// the values, if it is malformed or a number is negative or not finite.
ImportanceMatrix read_importance(const std::filesystem::path& path);

// The file appears when it is whole. In the older form, entries that saw no row are left out, and
// single matrices that saw none have ones. Throws io, and invalid_argument for numbers that the
// form cannot hold.
void write_importance(const ImportanceMatrix& matrix, const std::filesystem::path& path,
                      ImportanceFormat format);

}  // namespace rbee::io

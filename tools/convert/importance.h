#pragma once
// The importance of weights' columns, for the types that search.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rbee/io/gguf_writer.h"
#include "rbee/io/importance_matrix.h"
#include "tools/convert/type_plan.h"

namespace rbee::tools {

struct ImportanceOptions {
  std::filesystem::path file;         // see io::read_importance()
  std::vector<std::string> included;  // only entries with one of these in their names; empty: all
  std::vector<std::string> excluded;  // no entries with one of these
};

class Importance {
 public:
  // Throws as io::read_importance(), and not_found if no entry is left.
  explicit Importance(const ImportanceOptions& options);

  // (columns), or (matrices, columns) of a stack; empty: the tensor's type takes none, or the file
  // has none for it. Throws invalid_argument if the entry is for another shape.
  std::vector<float> of(const TensorPlan& plan) const;
  // Names of the planned matrices in layers whose type takes importance, and which have none.
  // Throws as of().
  std::vector<std::string> missing(std::span<const TensorPlan> plans) const;
  // llama.cpp's keys that say what the file was made with.
  void set_keys(io::GgufWriter& writer) const;

 private:
  std::string file_;
  io::ImportanceMatrix matrix_;
};

}  // namespace rbee::tools

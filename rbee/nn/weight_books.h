#pragma once
// What a model has taken of its checkpoint: figures, progress, and the tensors left over.

#include <array>
#include <cstdint>
#include <unordered_set>

#include "rbee/nn/weight_options.h"

namespace rbee::nn {

struct WeightFigures {
  int64_t parameters = 0;                            // elements of all tensors taken, each once
  int64_t resident_bytes = 0;                        // mapped in place, converted and packed
  std::array<int64_t, kDTypeCount> bytes_by_type{};  // of the tensors taken, as stored
  // The type with the most bytes.
  DType most_common() const;
};

class WeightBooks {
 public:
  // Keeps a reference to both.
  WeightBooks(const io::Checkpoint& checkpoint, const WeightOptions& options);

  // Counts a tensor, once even if it is taken again.
  void take(const io::TensorEntry& entry);
  bool has_taken(const io::TensorEntry& entry) const { return taken_.contains(&entry); }
  void add_resident(int64_t bytes) { figures_.resident_bytes += bytes; }
  const WeightFigures& figures() const { return figures_; }
  // Ends the progress, and logs the names of tensors that the model did not take.
  void finish() const;

 private:
  bool may_stay_unused(std::string_view name) const;

  const io::Checkpoint& checkpoint_;
  const WeightOptions& options_;
  std::unordered_set<const io::TensorEntry*> taken_;
  WeightFigures figures_;
  int64_t done_ = 0;   // bytes
  int64_t total_ = 0;  // bytes
};

}  // namespace rbee::nn

#pragma once
// Turns a checkpoint's bytes into plain tensors on the device: widens, dequantises, unpacks
// integers (GPTQ, AWQ), makes blocks from MXFP4's codes and scales, and applies patches. `name` is
// a tensor's full name in the checkpoint.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rbee/nn/cut_matrix.h"
#include "rbee/nn/weight_books.h"

namespace rbee::nn {

// Rows [first, first + count) of a matrix with `total` rows, for tensors that hold several matrices
// on top of each other.
struct RowSlice {
  int64_t first = 0;
  int64_t count = 0;
  int64_t total = 0;
};

struct PlainMatrix {
  Tensor rows;
  // Gives back the file's pages of the first rows, once they are packed; may be empty.
  std::function<void(int64_t rows)> let_go;
};

// The file's pages that one tensor after another is read from.
class PagesInUse {
 public:
  PagesInUse() = default;
  ~PagesInUse() { let_go(); }
  PagesInUse(const PagesInUse&) = delete;
  PagesInUse& operator=(const PagesInUse&) = delete;

  // Gives back the pages of the tensor before.
  void next(const io::TensorEntry& entry, std::span<const std::byte> bytes);

 private:
  void let_go();

  const io::TensorEntry* entry_ = nullptr;
  std::span<const std::byte> bytes_;
};

// Experts' matrices in Hugging Face's MXFP4. Rows first, first + step, ... are one matrix.
struct Mxfp4Stack {
  const io::TensorEntry* codes;   // (experts, rows, groups, 16)
  const io::TensorEntry* scales;  // (experts, rows, groups)
  Shape matrix;                   // (rows / step, in)
  int64_t experts, rows, groups;
  int64_t first, step;
  MatrixCut cut;  // of the matrix
};

class WeightReader {
 public:
  // Keeps references to all three.
  WeightReader(const io::Checkpoint& checkpoint, const WeightOptions& options, WeightBooks& books)
      : checkpoint_(checkpoint), options_(options), books_(books) {}

  // Calls that take a shape throw not_found naming a missing tensor, and invalid_argument naming
  // both shapes. Sizes of 1 at the ends of a shape do not count. Calls that read throw unsupported
  // for a type that is neither f32, f16, bf16 nor a block type.
  const io::TensorEntry& find(const std::string& name, const Shape& shape) const;

  // With the patch if it touches the tensor, else in place if the device can read it there.
  Tensor whole(const std::string& name, const Shape& shape) const;
  // As stored, without patch: (1, size).
  Tensor row(const std::string& name, int64_t size) const;
  // In block types (f8_g128 for FP8 whose groups share a scale) or floats. `inputs`: of the `in`,
  // as in cut_matrix().
  PlainMatrix matrix(const std::string& name, RowSlice rows, int64_t in,
                     const std::optional<group::Range>& inputs = {}) const;
  // How many neighbouring inputs of a matrix, as matrix() and expert() give it, cannot be parted.
  int64_t input_block(const std::string& name) const;
  // Counts a tensor that the other ranks of the group hold.
  void leave(const std::string& name, const Shape& shape) const;
  // Whether a matrix of packed integers has its inputs in an order by activations (GPTQ's
  // desc_act). Patched ones have none.
  bool has_order(const std::string& name, const Shape& shape) const;
  // Such a matrix in its bits, its inputs group by group.
  Tensor matrix_by_group(const std::string& name, RowSlice rows, int64_t in) const;
  // The order of its inputs: (in) i32. Equal orders one after another share a tensor.
  Tensor order(const std::string& name, const Shape& shape);
  // One matrix of (experts, out, in): a share of one tensor, or a tensor of its own where the name
  // has a '#'. `cut`: the part of that matrix. Throws unsupported if a patch touches it.
  Tensor expert(const std::string& name, int64_t index, const Shape& shape, const MatrixCut& cut,
                PagesInUse& pages) const;
  // A matrix as the file has it, for WeightStream::add(); undefined if kernels cannot read it so.
  Tensor mapped_matrix(const std::string& name, RowSlice rows, int64_t in) const;
  // The same of the matrices of expert(), in parts; none if kernels cannot read them so.
  std::vector<Tensor> mapped_experts(const std::string& name, const Shape& shape) const;
  // `name`_blocks and `name`_scales. Throws as expert() does.
  Mxfp4Stack mxfp4_stack(const std::string& name, const Shape& shape, int64_t first,
                         int64_t step) const;
  Tensor mxfp4_expert(const Mxfp4Stack& stack, int64_t index) const;
  // The scales beside a tensor of NVFP4, `count` of them; none where the file has none.
  std::vector<float> scales(const std::string& name, int64_t count) const;
  bool rounds_inputs(const std::string& name) const;
  bool patched(const std::string& name) const;
  // Gives back the file's pages of the tensor.
  void let_go(const std::string& name) const;

 private:
  const io::TensorEntry& take(const std::string& name, const Shape& shape) const;
  const io::TensorEntry& take_bytes(const std::string& name, const Shape& shape) const;
  void refuse_patch(const std::string& name) const;
  Tensor place(const io::TensorEntry& entry, const Shape& shape) const;
  Tensor mapped(const io::TensorEntry& entry, const Shape& shape) const;
  // Kernels read neither plain FP8 nor packed integers. FP8 becomes the type that layers compute
  // in, or bf16 if that is f32; integers become their entry's type.
  io::TensorEntry readable(io::TensorEntry entry) const;
  bool becomes_f8_blocks(const io::TensorEntry& entry) const;
  // For products, whose kernels also read FP8 in groups that share a scale.
  io::TensorEntry readable_matrix(io::TensorEntry entry) const;

  const io::Checkpoint& checkpoint_;
  const WeightOptions& options_;
  WeightBooks& books_;
  std::vector<int32_t> last_order_;
  Tensor last_order_tensor_;
};

}  // namespace rbee::nn

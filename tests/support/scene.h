#pragma once
// Scene: the tensors of one operation case on one device. A case builds the same scene on every
// device: values depend only on the seed and the order of calls.

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rbee/tensor/tensor.h"

namespace rbee::harness {

// The layout of an operand in memory.
enum class Form : uint8_t {
  contiguous,
  gaps,        // columns 1 to n of a tensor with n + 3: rows with gaps, data off by one element
  transposed,  // the last two axes swapped in memory; rank >= 2
  step2,       // every second element of the last axis; rank <= 4
  pages,       // of a q8_0 cache: backends/shared/kv_page.h
};

struct Layout {
  Shape shape;
  Form form = Form::contiguous;
  uint32_t broadcast = 0;  // bit i: axis i has stride 0 (inputs only)
};
// Prints as "(2, 3) gaps".
void append_to(std::string& out, const Layout& layout);

// Random values of an operand: uniform in [low, high), whole numbers for integer types.
struct Values {
  double low = -2;
  double high = 2;
  double step = 0;         // not 0: low plus multiples of it
  bool one_scale = false;  // blocks of f8_g128 have the same
  bool specials = false;   // starts with NaN, infinities, zeros, the least and the largest number
  std::vector<int64_t> undefined = {};  // elements in memory that are NaN; of q8_0 their blocks are
};

// One operand's elements on the host, row-major in its logical shape.
struct HostArray {
  Shape shape;
  std::vector<double> values;  // block types dequantised; |i64| above 2^53 is rounded

  int64_t size(int axis) const { return shape[axis < 0 ? axis + shape.rank() : axis]; }
  int64_t numel() const { return static_cast<int64_t>(values.size()); }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
};
HostArray host_zeros(const Shape& shape);

class Scene {
 public:
  Scene(Device& device, uint64_t seed) : device_(&device), state_(seed) {}

  Device& device() const { return *device_; }

  // An operand that kernels read. Block types: contiguous, random blocks of small scales.
  View input(const Layout& layout, DType dtype, const Values& values = {});
  // The same with given contiguous values: ids, lengths, tables.
  template <typename T>
  View input_of(const Shape& shape, std::span<const T> values) {
    return add_input(from_host<T>(values, shape, *device_));
  }
  // An operand that kernels write. It starts full of a pattern, so that unwritten elements and
  // writes into gaps show.
  View output(const Layout& layout, DType dtype);
  // An operand that kernels update. It starts with random values, which count as the next of
  // inputs(), and is compared afterwards like an output.
  View in_out(const Layout& layout, DType dtype, const Values& values = {});
  // Keeps a value alive as long as the scene, e.g. the parts of LinearArgs.
  template <typename T>
  const T& hold(T value) {
    auto held = std::make_shared<const T>(std::move(value));
    held_.push_back(held);
    return *held;
  }

  // The cost of the case: bytes read and written once each (broadcast axes counted once) and
  // floating-point operations. A case sets flops, and bytes if the default is wrong.
  double bytes = 0;
  double flops = 0;

  // Sets every output back to its first contents.
  void reset();
  // Values of the inputs (in_out operands: before the run) in order of creation.
  const std::vector<HostArray>& inputs() const { return inputs_; }

  // The types of all operands.
  std::set<DType> dtypes() const;
  // The largest finite magnitude in inputs of other than integer types.
  double largest_operand() const { return largest_; }

  struct Output {
    Tensor stored;                   // the whole allocation, contiguous
    Tensor view;                     // the operand
    std::vector<std::byte> initial;  // bytes of `stored` before the run
  };
  const std::vector<Output>& outputs() const { return outputs_; }

 private:
  struct Operand {
    Tensor stored;
    Tensor view;
  };
  Operand make(const Layout& layout, DType dtype, const std::vector<std::byte>& bytes);
  std::vector<std::byte> random_bytes(const Layout& layout, DType dtype, const Values& values);
  View add_input(Tensor view);
  void keep_values(const Tensor& view);

  Device* device_;
  uint64_t state_;
  std::vector<Tensor> tensors_;
  std::vector<Output> outputs_;
  std::vector<HostArray> inputs_;
  double largest_ = 0;
  std::vector<std::shared_ptr<const void>> held_;
};

// The elements of a tensor on any device, in its logical shape.
HostArray read_values(const Tensor& x);
// The bytes of a contiguous tensor.
std::vector<std::byte> read_bytes(const Tensor& x);

}  // namespace rbee::harness

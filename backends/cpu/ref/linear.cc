#include "backends/cpu/ref/linear.h"

#include <vector>

#include "backends/api/dispatch_blocks.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// Row `row` of the weight (out, in), as doubles: exact for every type.
void read_row(const View& weight, int64_t row, std::vector<double>& out) {
  const int64_t in = weight.size(1);
  out.resize(static_cast<size_t>(in));
  if (!is_quantized(weight.dtype)) {
    dispatch_floats("linear", weight.dtype, [&]<typename T>() {
      const T* values = weight.as<T>() + row * in;
      for (int64_t i = 0; i < in; ++i) out[static_cast<size_t>(i)] = load(values[i]);
    });
    return;
  }
  dispatch_blocks("linear", weight.dtype, [&]<typename Block>() {
    const int64_t blocks = in / Block::kElements;
    const Block* first = weight.as<Block>() + row * blocks;
    for (int64_t b = 0; b < blocks; ++b) {
      double* values = out.data() + b * Block::kElements;
      for (int i = 0; i < Block::kElements; ++i) values[i] = shared::dequantize(first[b], i);
    }
  });
}

template <typename T>
void run_part(const View& x, const LinearPart& part) {
  const int64_t rows = x.size(0), in = x.size(1), out = part.weight.size(0);
  std::vector<double> weight;
  for (int64_t o = 0; o < out; ++o) {
    read_row(part.weight, o, weight);
    const double bias = part.bias ? load(part.bias.as<T>()[o]) : 0.0;
    for (int64_t r = 0; r < rows; ++r) {
      const T* values = x.as<T>() + r * in;
      double sum = 0;
      for (int64_t i = 0; i < in; ++i) sum += load(values[i]) * weight[static_cast<size_t>(i)];
      part.y.as<T>()[r * out + o] = store<T>(sum + bias);
    }
  }
}

const char* refuse(const LinearArgs& args) {
  for (const LinearPart& part : args.parts) {
    if (part.weight.packing != 0) return "reads plain weights only";
  }
  return nullptr;
}

void run(const LinearArgs& args, Stream&) {
  dispatch<float, f16, bf16>("linear", args.x.dtype, [&]<typename T>() {
    for (const LinearPart& part : args.parts) run_part<T>(args.x, part);
  });
}

}  // namespace

const Impl<LinearArgs> ref_linear{.name = "ref", .refuse = &refuse, .run = &run};

}  // namespace rbee::cpu

#include "backends/cpu/fused_linear.h"

#include <vector>

#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/ref/elementwise.h"
#include "backends/cpu/ref/gated.h"
#include "backends/cpu/ref/linear.h"
#include "backends/cpu/ref/rms_norm.h"
#include "backends/cpu/run_first.h"

namespace rbee::cpu {
namespace {

struct Slots {
  Slot<RmsNormArgs> rms_norm;
  Slot<LinearArgs> linear;
  Slot<GatedArgs> gated;
  Slot<BinaryArgs> binary;
};

// A contiguous view like `like` in other memory.
View place(const View& like, void* data) {
  View out = like;
  out.data = data;
  int64_t step = 1;
  for (int axis = out.rank - 1; axis >= 0; --axis) {
    out.strides[axis] = step;
    step *= out.sizes[axis];
  }
  return out;
}

int64_t bytes_of(const View& view) {
  return view.numel() * info(view.dtype).block_bytes;
}

void run(const FusedLinearArgs& args, const Slots& slots, Stream& stream) {
  static thread_local Scratch norm_scratch, up_scratch;
  View x = args.x;
  if (args.norm_weight) {
    x = place(x, norm_scratch.reserve(static_cast<size_t>(bytes_of(x))));
    run_first(slots.rms_norm, RmsNormArgs{args.x, args.norm_weight, x, args.eps}, stream);
  }
  if (!args.gated) {
    run_first(slots.linear, LinearArgs{.x = x, .parts = args.parts}, stream);
  } else {
    LinearPart both[] = {args.parts[0], args.parts[1]};
    both[1].y = place(both[0].y, up_scratch.reserve(static_cast<size_t>(bytes_of(both[0].y))));
    run_first(slots.linear, LinearArgs{.x = x, .parts = both}, stream);
    run_first(slots.gated, GatedArgs{args.gate, both[0].y, both[1].y, both[0].y}, stream);
  }
  if (!args.residual) return;
  const View& y = args.parts[0].y;
  run_first(slots.binary, BinaryArgs{BinaryOp::add, y, args.residual, y}, stream);
}

void run_composed(const FusedLinearArgs& args, Stream& stream) {
  const KernelTable& table = cpu_kernels();
  run(args, {table.rms_norm, table.linear, table.gated, table.binary}, stream);
}

// f32 copies of operands.
class Copies {
 public:
  explicit Copies(Stream& stream) : stream_(stream) {}

  View of(const View& from) {
    if (!from) return from;
    const View to = like(from);
    ref_cast.run({from, to}, stream_);
    return to;
  }
  View like(const View& from) {
    kept_.emplace_back(static_cast<size_t>(from.numel()));
    View to = place(from, kept_.back().data());
    to.dtype = DType::f32;
    return to;
  }

 private:
  Stream& stream_;
  std::vector<std::vector<float>> kept_;
};

void run_ref(const FusedLinearArgs& args, Stream& stream) {
  Copies copies(stream);
  std::vector<LinearPart> parts(args.parts.begin(), args.parts.end());
  for (LinearPart& part : parts) {
    part.bias = copies.of(part.bias);
    part.y = copies.like(part.y);
  }
  FusedLinearArgs in_float = args;
  in_float.x = copies.of(args.x);
  in_float.norm_weight = copies.of(args.norm_weight);
  in_float.residual = copies.of(args.residual);
  in_float.parts = parts;
  run(in_float, {{&ref_rms_norm, 1}, {&ref_linear, 1}, {&ref_gated, 1}, {&ref_binary, 1}}, stream);
  const size_t results = args.gated ? 1 : parts.size();
  for (size_t i = 0; i < results; ++i) ref_cast.run({parts[i].y, args.parts[i].y}, stream);
}

void run_norm(const LinearNormArgs& args, Slot<LinearArgs> linear,
              Slot<AddRmsNormArgs> add_rms_norm, Stream& stream) {
  const LinearPart part{.weight = args.weight, .bias = args.bias, .y = args.sum};
  run_first(linear, LinearArgs{.x = args.x, .parts = {&part, 1}}, stream);
  run_first(add_rms_norm,
            AddRmsNormArgs{args.sum, args.residual, args.norm_weight, args.sum, args.y, args.eps},
            stream);
}

void run_composed_norm(const LinearNormArgs& args, Stream& stream) {
  run_norm(args, cpu_kernels().linear, cpu_kernels().add_rms_norm, stream);
}

void run_ref_norm(const LinearNormArgs& args, Stream& stream) {
  Copies copies(stream);
  const LinearNormArgs in_float{.x = copies.of(args.x),
                                .weight = args.weight,
                                .bias = copies.of(args.bias),
                                .residual = copies.of(args.residual),
                                .norm_weight = copies.of(args.norm_weight),
                                .eps = args.eps,
                                .sum = copies.like(args.sum),
                                .y = copies.like(args.y)};
  run_norm(in_float, {&ref_linear, 1}, {&ref_add_rms_norm, 1}, stream);
  ref_cast.run({in_float.sum, args.sum}, stream);
  ref_cast.run({in_float.y, args.y}, stream);
}

}  // namespace

const Impl<FusedLinearArgs> composed_fused_linear{"composed", never_refuse, run_composed};
const Impl<FusedLinearArgs> ref_fused_linear{"ref", never_refuse, run_ref};
const Impl<LinearNormArgs> composed_linear_norm{"composed", never_refuse, run_composed_norm};
const Impl<LinearNormArgs> ref_linear_norm{"ref", never_refuse, run_ref_norm};

}  // namespace rbee::cpu

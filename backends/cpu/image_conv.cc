#include "backends/cpu/image_conv.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/image_conv_parts.h"
#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/linear/pack.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/thread_pool.h"
#include "rbee/core/dtype.h"

namespace rbee::cpu {
namespace {

// Bytes of a patch that are gathered at a time: 16 outputs' weights for them stay in the
// first-level cache while the pixels of a block pass by.
constexpr int64_t kChunkBytes = 1536;
// Patches that stay in the second-level cache, beside their sums, while the panels pass by; more
// where the kernels take many rows at a time, which want each weight for as many as there can be.
constexpr int64_t kPixelBlock = 96;
constexpr int64_t kBlockUnits = 4;
constexpr int64_t kMaxPanels = 20;  // of one task
// Fewer panels than this would not pay for gathering the patches once more.
constexpr int64_t kMinPanels = 4;
constexpr int64_t kTasksPerThread = 4;  // so that slow threads take fewer
constexpr int64_t kGrain = 1 << 18;     // multiplications below which one thread does it all

// The image as a matrix: row p is what the filters of output pixel p see, (kernel_h, kernel_w, in).
class Patches {
 public:
  explicit Patches(const ImageConvArgs& args)
      : args_(args),
        in_(args.x.size(3)),
        kernel_w_(args.weight.size(2)),
        depth_(args.weight.size(1) * kernel_w_ * in_),
        scale_(args.upsample ? 2 : 1),
        element_bytes_(info(args.x.dtype).block_bytes) {}

  int64_t depth() const { return depth_; }

  // Whether row p is pixel p as it lies in memory, in the kernels' form.
  bool plain(InputForm form) const {
    const View &x = args_.x, &y = args_.y;
    const bool pointwise = depth_ == in_ && args_.stride == 1 && scale_ == 1;
    const bool same_pixels = x.size(1) == y.size(1) && x.size(2) == y.size(2) &&
                             args_.pad_top == 0 && args_.pad_left == 0;
    const bool even = x.stride(3) == 1 && x.stride(1) == x.size(2) * x.stride(2) &&
                      x.stride(0) == x.size(1) * x.stride(1);
    const bool wanted = x.dtype == (form == InputForm::bf16 ? DType::bf16 : DType::f32);
    return pointwise && same_pixels && even && wanted;
  }

  // Inputs [k, k + count) of row p: floats, or bf16 as it is; 0 beyond the depth.
  template <typename T>
  void gather(int64_t p, int64_t k, int64_t count, T* out) const {
    const int64_t height = args_.y.size(1), width = args_.y.size(2);
    const std::byte* image = at(p / (height * width) * args_.x.stride(0));
    const int64_t row = p / width % height * args_.stride - args_.pad_top;
    const int64_t column = p % width * args_.stride - args_.pad_left;
    T* to = gather_row(image, row, column, {k, std::min(k + count, depth_)}, out);
    std::fill(to, out + count, T{});
  }

 private:
  struct Range {
    int64_t begin, end;
  };

  // Element `offset` of x.
  const std::byte* at(int64_t offset) const {
    return args_.x.as<std::byte>() + offset * element_bytes_;
  }

  void copy(const std::byte* from, int64_t count, float* to) const {
    copy_channels(args_.x.dtype, from, args_.x.stride(3), count, to);
  }
  void copy(const std::byte* from, int64_t count, uint16_t* to) const {
    const int64_t step = args_.x.stride(3);
    const auto* values = reinterpret_cast<const uint16_t*>(from);
    if (step == 1) {
      std::copy_n(values, count, to);
      return;
    }
    for (int64_t i = 0; i < count; ++i) to[i] = values[i * step];
  }

  // Inputs `range` of the patch whose first pixel is (row, column); returns where they end.
  template <typename T>
  T* gather_row(const std::byte* image, int64_t row, int64_t column, Range range, T* to) const {
    const View& x = args_.x;
    const int64_t line = kernel_w_ * in_;  // a line of the patch
    const bool whole_lines = scale_ == 1 && column >= 0 && column + kernel_w_ <= x.size(2) &&
                             x.stride(2) == in_ * x.stride(3);
    const int64_t longest = whole_lines ? line : in_;
    for (int64_t k = range.begin; k < range.end;) {
      const int64_t i = row + k / line, j = column + k % line / in_;
      const int64_t count = std::min(longest - k % longest, range.end - k);
      const bool inside = i >= 0 && i < x.size(1) * scale_ && j >= 0 && j < x.size(2) * scale_;
      if (inside) {
        const int64_t pixel = i / scale_ * x.stride(1) + j / scale_ * x.stride(2);
        copy(image + (pixel + k % in_ * x.stride(3)) * element_bytes_, count, to);
      } else {
        std::fill_n(to, count, T{});
      }
      to += count;
      k += count;
    }
    return to;
  }

  const ImageConvArgs& args_;
  int64_t in_, kernel_w_, depth_, scale_, element_bytes_;
};

// How the work is cut: blocks of pixels, and for each of them groups of panels.
struct Plan {
  int64_t chunk;  // inputs of a patch at a time
  int64_t pixels, block, blocks;
  int64_t panels, group, groups;
};

int64_t input_bytes(const PanelKernels& kernels) {
  return kernels.input == InputForm::bf16 ? sizeof(uint16_t) : sizeof(float);
}

Plan plan_of(const ImageConvArgs& args, const LinearIsa& isa, int64_t threads) {
  Plan plan;
  const View& y = args.y;
  plan.chunk = kChunkBytes / input_bytes(*conv_kernels(isa, args.weight.dtype));
  plan.pixels = y.size(0) * y.size(1) * y.size(2);
  const int64_t largest = std::max(kPixelBlock, kBlockUnits * isa.row_unit);
  plan.blocks = (plan.pixels + largest - 1) / largest;
  const int64_t even = (plan.pixels + plan.blocks - 1) / plan.blocks;
  plan.block = (even + isa.row_unit - 1) / isa.row_unit * isa.row_unit;
  plan.blocks = (plan.pixels + plan.block - 1) / plan.block;
  plan.panels = (y.size(3) + kPanelRows - 1) / kPanelRows;
  const int64_t wanted = (kTasksPerThread * threads + plan.blocks - 1) / plan.blocks;
  const int64_t most = std::max<int64_t>(plan.panels / kMinPanels, 1);
  const int64_t least = (plan.panels + kMaxPanels - 1) / kMaxPanels;
  plan.groups = std::max(least, std::min(wanted, most));
  plan.group = (plan.panels + plan.groups - 1) / plan.groups;
  plan.groups = (plan.panels + plan.group - 1) / plan.group;
  return plan;
}

// What all tasks share.
struct Job {
  const ImageConvArgs& args;
  const LinearIsa& isa;
  const PanelKernels& kernels;
  const Plan& plan;
  Patches patches;
  const std::byte* weight;  // packed
};

// A block of pixels with a group of panels.
class Task {
 public:
  Task(const Job& job, int64_t index) : job_(job) {
    const Plan& plan = job.plan;
    first_ = index / plan.groups * plan.block;
    rows_ = std::min(plan.block, plan.pixels - first_);
    panel_ = index % plan.groups * plan.group;
    panels_ = std::min(plan.group, plan.panels - panel_);
    depth_ = packed_inputs(job.args.weight.dtype, job.patches.depth());
  }

  void run(Scratch& scratch) {
    Carver counter(nullptr);
    carve(counter);
    Carver carver(scratch.reserve(counter.used()));
    carve(carver);
    const int64_t chunk = job_.plan.chunk;
    for (int64_t k = 0; k < depth_; k += chunk) add_chunk(k, std::min(chunk, depth_ - k));
    const View& y = job_.args.y;
    const int64_t channel = panel_ * kPanelRows;
    const int64_t count = std::min(panels_ * kPanelRows, y.size(3) - channel);
    for (int64_t r = 0; r < rows_; ++r) {
      float* sums = sums_ + r * panels_ * kPanelRows;
      finish_pixel(job_.args, job_.isa, {first_ + r, channel, count}, sums);
    }
  }

 private:
  bool rounded() const { return job_.kernels.input == InputForm::bf16; }

  void carve(Carver& carver) {
    const int64_t chunk = std::min(depth_, job_.plan.chunk);
    sums_ = carver.take<float>(rows_ * panels_ * kPanelRows);
    patches_ = carver.take<float>((rounded() ? 1 : rows_) * chunk);
    if (rounded()) rounded_ = carver.take<uint16_t>(rows_ * chunk);
    if (job_.kernels.unpack != nullptr) unpacked_.f32 = carver.take<float>(chunk * kPanelRows);
  }

  // Inputs [k, k + count) of the block's patches, in the form that the kernels read.
  InputRows inputs(int64_t k, int64_t count) {
    const View& x = job_.args.x;
    if (job_.patches.plain(job_.kernels.input) && depth_ == job_.patches.depth()) {
      const int64_t stride = x.stride(2), at = first_ * stride + k;
      if (rounded()) return {.bf16 = x.as<uint16_t>() + at, .stride = stride};
      return {.f32 = x.as<float>() + at, .stride = stride};
    }
    for (int64_t r = 0; r < rows_; ++r) gather(r, k, count);
    if (rounded()) return {.bf16 = rounded_, .stride = count};
    return {.f32 = patches_, .stride = count};
  }

  // Row r of the block.
  void gather(int64_t r, int64_t k, int64_t count) {
    if (!rounded()) return job_.patches.gather(first_ + r, k, count, patches_ + r * count);
    uint16_t* to = rounded_ + r * count;
    if (job_.args.x.dtype == DType::bf16) return job_.patches.gather(first_ + r, k, count, to);
    job_.patches.gather(first_ + r, k, count, patches_);
    job_.isa.to_bf16(patches_, count, to);
  }

  void add_chunk(int64_t k, int64_t count) {
    const DType dtype = job_.args.weight.dtype;
    const InputRows x = inputs(k, count);
    const int64_t whole = panel_bytes(dtype, depth_);
    for (int64_t p = 0; p < panels_; ++p) {
      PanelProduct product{.x = x,
                           .rows = rows_,
                           .in = count,
                           .packed = job_.weight + (panel_ + p) * whole + panel_bytes(dtype, k),
                           .panel = unpacked_,
                           .y = sums_ + p * kPanelRows,
                           .y_stride = panels_ * kPanelRows,
                           .accumulate = k > 0};
      if (job_.kernels.unpack != nullptr) {
        job_.kernels.unpack(product.packed, count, unpacked_);
      }
      job_.kernels.rows(product);
    }
  }

  const Job& job_;
  int64_t first_, rows_;    // pixels
  int64_t panel_, panels_;  // of the weight
  int64_t depth_;
  float* sums_ = nullptr;     // (rows, panels, 16)
  float* patches_ = nullptr;  // of the block, or one that is about to be rounded
  uint16_t* rounded_ = nullptr;
  UnpackedPanel unpacked_;
};

thread_local Scratch task_scratch;
void run_conv(const ImageConvArgs& args, const LinearIsa& isa) {
  if (args.y.numel() == 0) return;
  ThreadPool& pool = ThreadPool::shared();
  const Plan plan = plan_of(args, isa, pool.threads());
  const Job job{.args = args,
                .isa = isa,
                .kernels = *conv_kernels(isa, args.weight.dtype),
                .plan = plan,
                .patches = Patches(args),
                .weight = conv_panels(args.weight)};
  const int64_t tasks = plan.blocks * plan.groups;
  const bool small = args.y.numel() * job.patches.depth() < kGrain;
  pool.parallel_for(tasks, small ? tasks : 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) Task(job, i).run(task_scratch);
  });
}

const char* refuse(const ImageConvArgs& args, const LinearIsa& isa, Isa needed) {
  const DType x = args.x.dtype;
  if (x != DType::f32 && x != DType::f16 && x != DType::bf16) return "takes f32, f16 and bf16";
  if (conv_kernels(isa, args.weight.dtype) == nullptr) return "has no kernel for the weight's type";
  if (args.weight.numel() == 0) return "wants inputs";
  return missing_isa(needed);
}

#ifdef __x86_64__
// Tiles would round x of more bits, which costs latents too many: docs/decisions/0011.
const char* refuse_amx(const ImageConvArgs& args) {
  if (args.x.dtype != DType::bf16 || args.weight.dtype != DType::bf16) {
    return "takes x and weights of bf16";
  }
  return refuse(args, linear_amx, Isa::amx);
}
#endif

}  // namespace

const Impl<ImageConvArgs> portable_image_conv{
    .name = "portable",
    .refuse =
        [](const ImageConvArgs& args) { return refuse(args, linear_portable, Isa::portable); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_portable); }};

#ifdef __x86_64__
const Impl<ImageConvArgs> avx2_image_conv{
    .name = "avx2",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_avx2, Isa::avx2); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_avx2); }};
const Impl<ImageConvArgs> avx512_image_conv{
    .name = "avx512",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_avx512, Isa::avx512); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_avx512); }};
const Impl<ImageConvArgs> avx512bf16_image_conv{
    .name = "avx512bf16",
    .refuse =
        [](const ImageConvArgs& args) { return refuse(args, linear_avx512bf16, Isa::avx512bf16); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_avx512bf16); }};
const Impl<ImageConvArgs> amx_image_conv{
    .name = "amx", .refuse = &refuse_amx, .run = [](const ImageConvArgs& args, Stream&) {
      run_conv(args, linear_amx);
    }};
#endif

}  // namespace rbee::cpu

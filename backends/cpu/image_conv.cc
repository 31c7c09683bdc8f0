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

// Inputs of a patch that are gathered at a time: 16 outputs' weights for them stay in the
// first-level cache while the pixels of a block pass by.
constexpr int64_t kChunk = 384;
// Patches that stay in the second-level cache, beside their sums, while the panels pass by.
constexpr int64_t kPixelBlock = 96;
constexpr int64_t kPixelUnit = 12;  // a multiple of the row tiles, 4, 6 and 12
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

  // Whether row p is pixel p as it lies in memory.
  bool plain() const {
    const View &x = args_.x, &y = args_.y;
    const bool pointwise = depth_ == in_ && args_.stride == 1 && scale_ == 1;
    const bool same_pixels = x.size(1) == y.size(1) && x.size(2) == y.size(2) &&
                             args_.pad_top == 0 && args_.pad_left == 0;
    const bool even = x.stride(3) == 1 && x.stride(1) == x.size(2) * x.stride(2) &&
                      x.stride(0) == x.size(1) * x.stride(1);
    return pointwise && same_pixels && even && x.dtype == DType::f32;
  }

  // Inputs [k, k + count) of rows [first, first + rows), `count` floats each; 0 beyond the depth.
  void gather(int64_t first, int64_t rows, int64_t k, int64_t count, float* out) const {
    const int64_t height = args_.y.size(1), width = args_.y.size(2);
    const int64_t end = std::min(k + count, depth_);
    for (int64_t p = first; p < first + rows; ++p, out += count) {
      const std::byte* image = at(p / (height * width) * args_.x.stride(0));
      const int64_t row = p / width % height * args_.stride - args_.pad_top;
      const int64_t column = p % width * args_.stride - args_.pad_left;
      float* to = gather_row(image, row, column, k, end, out);
      std::fill(to, out + count, 0.0f);
    }
  }

 private:
  // Element `offset` of x.
  const std::byte* at(int64_t offset) const {
    return args_.x.as<std::byte>() + offset * element_bytes_;
  }

  // Inputs [k, end) of the patch whose first pixel is (row, column); returns where they end.
  float* gather_row(const std::byte* image, int64_t row, int64_t column, int64_t k, int64_t end,
                    float* to) const {
    const View& x = args_.x;
    const int64_t line = kernel_w_ * in_;  // a line of the patch
    const bool whole_lines = scale_ == 1 && column >= 0 && column + kernel_w_ <= x.size(2) &&
                             x.stride(2) == in_ * x.stride(3);
    const int64_t longest = whole_lines ? line : in_;
    while (k < end) {
      const int64_t i = row + k / line, j = column + k % line / in_;
      const int64_t count = std::min(longest - k % longest, end - k);
      const bool inside = i >= 0 && i < x.size(1) * scale_ && j >= 0 && j < x.size(2) * scale_;
      if (inside) {
        const int64_t pixel = i / scale_ * x.stride(1) + j / scale_ * x.stride(2);
        const int64_t offset = pixel + k % in_ * x.stride(3);
        copy_channels(x.dtype, image + offset * element_bytes_, x.stride(3), count, to);
      } else {
        std::fill_n(to, count, 0.0f);
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
  int64_t pixels, block, blocks;
  int64_t panels, group, groups;
};

Plan plan_of(const ImageConvArgs& args, int64_t threads) {
  Plan plan;
  const View& y = args.y;
  plan.pixels = y.size(0) * y.size(1) * y.size(2);
  plan.blocks = (plan.pixels + kPixelBlock - 1) / kPixelBlock;
  const int64_t even = (plan.pixels + plan.blocks - 1) / plan.blocks;
  plan.block = (even + kPixelUnit - 1) / kPixelUnit * kPixelUnit;
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
    for (int64_t k = 0; k < depth_; k += kChunk) add_chunk(k, std::min(kChunk, depth_ - k));
    const View& y = job_.args.y;
    const int64_t channel = panel_ * kPanelRows;
    const int64_t count = std::min(panels_ * kPanelRows, y.size(3) - channel);
    for (int64_t r = 0; r < rows_; ++r) {
      float* sums = sums_ + r * panels_ * kPanelRows;
      finish_pixel(job_.args, first_ + r, channel, count, sums);
    }
  }

 private:
  void carve(Carver& carver) {
    const int64_t chunk = std::min(depth_, kChunk);
    sums_ = carver.take<float>(rows_ * panels_ * kPanelRows);
    patches_ = carver.take<float>(rows_ * chunk);
    if (job_.kernels.input == InputForm::bf16) rounded_ = carver.take<uint16_t>(rows_ * chunk);
    if (job_.kernels.unpack != nullptr) unpacked_.f32 = carver.take<float>(chunk * kPanelRows);
  }

  // Inputs [k, k + count) of the block's patches, in the form that the kernels read.
  InputRows inputs(int64_t k, int64_t count) {
    const bool rounded = job_.kernels.input == InputForm::bf16;
    const View& x = job_.args.x;
    InputRows rows{.f32 = patches_, .bf16 = rounded_, .stride = count};
    if (!rounded && job_.patches.plain() && depth_ == job_.patches.depth()) {
      rows.f32 = x.as<float>() + first_ * x.stride(2) + k;
      rows.stride = x.stride(2);
      return rows;
    }
    job_.patches.gather(first_, rows_, k, count, patches_);
    if (rounded) job_.isa.to_bf16(patches_, rows_ * count, rounded_);
    return rows;
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
  float* sums_ = nullptr;  // (rows, panels, 16)
  float* patches_ = nullptr;
  uint16_t* rounded_ = nullptr;
  UnpackedPanel unpacked_;
};

thread_local Scratch task_scratch;
void run_conv(const ImageConvArgs& args, const LinearIsa& isa) {
  if (args.y.numel() == 0) return;
  ThreadPool& pool = ThreadPool::shared();
  const Plan plan = plan_of(args, pool.threads());
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
#endif

}  // namespace rbee::cpu

#include "backends/cpu/image_conv.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/image_conv_parts.h"
#include "backends/cpu/image_patches.h"
#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/linear/pack.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/quantized_image.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

// Bytes of a patch that are gathered at a time: 16 outputs' weights for them stay in the
// first-level cache while the pixels of a block pass by.
constexpr int64_t kChunkBytes = 1536;
constexpr int64_t kQuantizedChunk = 768;  // inputs, of two panels
// Patches that stay in the second-level cache, beside their sums, while the panels pass by; more
// where the kernels take many rows at a time, which want each weight for as many as there can be.
constexpr int64_t kPixelBlock = 96;
constexpr int64_t kBlockUnits = 4;
constexpr int64_t kMaxPanels = 20;  // of one task
// Fewer panels than this would not pay for gathering the patches once more.
constexpr int64_t kMinPanels = 4;
constexpr int64_t kTasksPerThread = 4;  // so that slow threads take fewer
constexpr int64_t kGrain = 1 << 18;     // multiplications below which one thread does it all
// Of a rounded image, for the next call: a VAE's large images take hundreds of MiB.
constexpr size_t kKeptBytes = size_t{64} << 20;

// How the work is cut: blocks of pixels, and for each of them groups of panels.
struct Plan {
  int64_t chunk;  // inputs of a patch at a time
  int64_t pixels, block, blocks;
  int64_t panels, group, groups;
};

int64_t chunk_inputs(InputForm form) {
  if (form == InputForm::quantized) return kQuantizedChunk;
  return kChunkBytes / (form == InputForm::bf16 ? sizeof(uint16_t) : sizeof(float));
}

Plan plan_of(const ImageConvArgs& args, const LinearIsa& isa, int64_t threads) {
  Plan plan;
  const View& y = args.y;
  plan.chunk = chunk_inputs(conv_kernels(isa, args.weight.dtype)->input);
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

// Shared by all tasks.
struct Job {
  const ImageConvArgs& args;
  const LinearIsa& isa;
  const PanelKernels& kernels;
  const Plan& plan;
  QuantizedImage quantized;       // empty where the kernels read floats
  Patches patches, scales, sums;  // of the image as the kernels read it
  const std::byte* weight;        // packed
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
  InputForm form() const { return job_.kernels.input; }

  void carve(Carver& carver) {
    const int64_t chunk = std::min(depth_, job_.plan.chunk);
    sums_ = carver.take<float>(rows_ * panels_ * kPanelRows);
    if (form() == InputForm::quantized) {
      q_ = carver.take<int8_t>(rows_ * chunk);
      q_scale_ = carver.take<float>(rows_ * chunk / kGroup);
      q_sum_ = carver.take<float>(rows_ * chunk / kGroup);
    } else {
      patches_ = carver.take<float>((form() == InputForm::bf16 ? 1 : rows_) * chunk);
    }
    if (form() == InputForm::bf16) rounded_ = carver.take<uint16_t>(rows_ * chunk);
    if (job_.kernels.unpack == nullptr) return;
    const int64_t scales = chunk / kGroup * kPanelRows;
    for (UnpackedPanel* panel : {&unpacked_, &next_}) {
      switch (form()) {
        case InputForm::quantized:
          panel->q = carver.take<uint8_t>(chunk * kPanelRows);
          panel->scale = carver.take<float>(scales);
          panel->offset = carver.take<float>(scales);
          break;
        case InputForm::bf16:
          panel->bf16 = carver.take<uint16_t>(chunk * kPanelRows);
          break;
        default:
          panel->f32 = carver.take<float>(chunk * kPanelRows);
          break;
      }
    }
  }

  // Whether row p of the patches is pixel p in memory, of the type that the kernels read.
  bool plain() const {
    if (!job_.patches.plain() || depth_ != job_.patches.depth()) return false;
    if (form() == InputForm::quantized) return true;
    return job_.args.x.dtype == (form() == InputForm::bf16 ? DType::bf16 : DType::f32);
  }

  // Inputs [k, k + count) of the block's patches, in the form that the kernels read.
  InputRows inputs(int64_t k, int64_t count) {
    if (plain()) return plain_inputs(k);
    for (int64_t r = 0; r < rows_; ++r) gather(r, k, count);
    if (form() == InputForm::quantized) {
      return {.q = q_, .scale = q_scale_, .sum32 = q_sum_, .stride = count};
    }
    if (form() == InputForm::bf16) return {.bf16 = rounded_, .stride = count};
    return {.f32 = patches_, .stride = count};
  }

  InputRows plain_inputs(int64_t k) const {
    const View& x = job_.args.x;
    if (form() == InputForm::quantized) {
      const QuantizedImage& image = job_.quantized;
      const int64_t at = first_ * depth_ + k;
      return {.q = image.q.as<int8_t>() + at,
              .scale = image.scale.as<float>() + at / kGroup,
              .sum32 = image.sum32.as<float>() + at / kGroup,
              .stride = depth_};
    }
    const int64_t stride = x.stride(2), at = first_ * stride + k;
    if (form() == InputForm::bf16) return {.bf16 = x.as<uint16_t>() + at, .stride = stride};
    return {.f32 = x.as<float>() + at, .stride = stride};
  }

  // Row r of the block.
  void gather(int64_t r, int64_t k, int64_t count) {
    const int64_t p = first_ + r;
    if (form() == InputForm::quantized) {
      const int64_t group = k / kGroup, groups = count / kGroup;
      job_.patches.gather(p, k, count, q_ + r * count);
      job_.scales.gather(p, group, groups, q_scale_ + r * groups);
      job_.sums.gather(p, group, groups, q_sum_ + r * groups);
      return;
    }
    if (form() != InputForm::bf16) return job_.patches.gather(p, k, count, patches_ + r * count);
    uint16_t* to = rounded_ + r * count;
    if (job_.args.x.dtype == DType::bf16) return job_.patches.gather(p, k, count, to);
    job_.patches.gather(p, k, count, patches_);
    job_.isa.to_bf16(patches_, count, to);
  }

  void add_chunk(int64_t k, int64_t count) {
    const InputRows x = inputs(k, count);
    int64_t p = 0;
    for (; job_.kernels.pair != nullptr && p + 2 <= panels_; p += 2) {
      const PanelProduct first = product(x, p, k, count);
      PanelProduct second = product(x, p + 1, k, count);
      second.panel = next_;
      unpack(first);
      unpack(second);
      job_.kernels.pair(first, second);
    }
    for (; p < panels_; ++p) {
      const PanelProduct one = product(x, p, k, count);
      unpack(one);
      job_.kernels.rows(one);
    }
  }

  // Panel p of the group with inputs [k, k + count).
  PanelProduct product(const InputRows& x, int64_t p, int64_t k, int64_t count) const {
    const DType dtype = job_.args.weight.dtype;
    const int64_t whole = panel_bytes(dtype, depth_);
    return {.x = x,
            .rows = rows_,
            .in = count,
            .packed = job_.weight + (panel_ + p) * whole + panel_bytes(dtype, k),
            .panel = unpacked_,
            .y = sums_ + p * kPanelRows,
            .y_stride = panels_ * kPanelRows,
            .accumulate = k > 0};
  }

  void unpack(const PanelProduct& product) const {
    if (job_.kernels.unpack == nullptr) return;
    job_.kernels.unpack(product.packed, product.in, product.panel);
  }

  const Job& job_;
  int64_t first_, rows_;    // pixels
  int64_t panel_, panels_;  // of the weight
  int64_t depth_;
  float* sums_ = nullptr;     // (rows, panels, 16)
  float* patches_ = nullptr;  // of the block, or one that is about to be rounded
  uint16_t* rounded_ = nullptr;
  int8_t* q_ = nullptr;
  float *q_scale_ = nullptr, *q_sum_ = nullptr;
  UnpackedPanel unpacked_, next_;
};

thread_local Scratch task_scratch;
thread_local Scratch image_scratch;

void run_conv(const ImageConvArgs& args, const LinearIsa& isa) {
  if (args.y.numel() == 0) return;
  ThreadPool& pool = ThreadPool::shared();
  const Plan plan = plan_of(args, isa, pool.threads());
  const PanelKernels& kernels = *conv_kernels(isa, args.weight.dtype);
  QuantizedImage image;
  const bool quantized = kernels.input == InputForm::quantized;
  if (quantized) image = quantize_image(args.x, isa, image_scratch);
  const Job job{.args = args,
                .isa = isa,
                .kernels = kernels,
                .plan = plan,
                .quantized = image,
                .patches = Patches(args, quantized ? image.q : args.x, *isa.rows),
                .scales = Patches(args, image.scale, *isa.rows),
                .sums = Patches(args, image.sum32, *isa.rows),
                .weight = conv_panels(args.weight)};
  const int64_t tasks = plan.blocks * plan.groups;
  const bool small = args.y.numel() * job.patches.depth() < kGrain;
  pool.parallel_for(tasks, small ? tasks : 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) Task(job, i).run(task_scratch);
  });
  image_scratch.limit(kKeptBytes);
}

const char* refuse(const ImageConvArgs& args, const LinearIsa& isa, Isa needed) {
  const DType x = args.x.dtype;
  if (x != DType::f32 && x != DType::f16 && x != DType::bf16) return "takes f32, f16 and bf16";
  if (conv_kernels(isa, args.weight.dtype) == nullptr) return "has no kernel for the weight's type";
  if (args.weight.numel() == 0) return "wants inputs";
  // A block of the weight meets one group of a pixel's channels.
  if (is_quantized(args.weight.dtype) && args.x.size(3) % kGroup != 0) {
    return "takes inputs in groups of 32 with block types";
  }
  return missing_isa(needed);
}

#ifdef __x86_64__
// Products of bf16 would round x of more bits, which costs latents too many: docs/decisions/0011.
const char* refuse_bf16(const ImageConvArgs& args) {
  if (args.x.dtype != DType::bf16 || args.weight.dtype != DType::bf16) return "takes bf16";
  return refuse(args, linear_avx512bf16, Isa::avx512bf16);
}

// With block types x is rounded to 8 bits elsewhere.
const char* refuse_amx(const ImageConvArgs& args) {
  const bool both_bf16 = args.x.dtype == DType::bf16 && args.weight.dtype == DType::bf16;
  if (!both_bf16 && !is_quantized(args.weight.dtype)) return "takes bf16 and block types";
  return refuse(args, linear_amx, Isa::amx);
}
#endif

#ifdef __aarch64__
// As with x86's forms of bf16 and of tiles.
const char* refuse_i8mm(const ImageConvArgs& args) {
  const bool both_bf16 = args.x.dtype == DType::bf16 && args.weight.dtype == DType::bf16;
  if (!both_bf16 && !is_quantized(args.weight.dtype)) return "takes bf16 and block types";
  return refuse(args, linear_i8mm, Isa::i8mm);
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
const Impl<ImageConvArgs> avxvnni_image_conv{
    .name = "avxvnni",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_avxvnni, Isa::avxvnni); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_avxvnni); }};
const Impl<ImageConvArgs> avx512_image_conv{
    .name = "avx512",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_avx512, Isa::avx512); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_avx512); }};
const Impl<ImageConvArgs> avx512bf16_image_conv{
    .name = "avx512bf16", .refuse = &refuse_bf16, .run = [](const ImageConvArgs& args, Stream&) {
      run_conv(args, linear_avx512bf16);
    }};
const Impl<ImageConvArgs> amx_image_conv{
    .name = "amx", .refuse = &refuse_amx, .run = [](const ImageConvArgs& args, Stream&) {
      run_conv(args, linear_amx);
    }};
#endif

#ifdef __aarch64__
const Impl<ImageConvArgs> neon_image_conv{
    .name = "neon",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_neon, Isa::neon); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_neon); }};
const Impl<ImageConvArgs> dotprod_image_conv{
    .name = "dotprod",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_dotprod, Isa::dotprod); },
    .run = [](const ImageConvArgs& args, Stream&) { run_conv(args, linear_dotprod); }};
const Impl<ImageConvArgs> i8mm_image_conv{
    .name = "i8mm", .refuse = &refuse_i8mm, .run = [](const ImageConvArgs& args, Stream&) {
      run_conv(args, linear_i8mm);
    }};
#endif

}  // namespace rbee::cpu

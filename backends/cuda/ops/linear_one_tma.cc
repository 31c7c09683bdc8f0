#include "backends/cuda/ops/linear_one_tma.h"

#include <algorithm>
#include <array>

#include "backends/api/dispatch_blocks.h"
#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/linear_one.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/qkv_append.h"
#include "backends/shared/tensor_one_params.h"

namespace rbee::cuda {
namespace {

constexpr int64_t kTileRows = 2 * int64_t{shared::kOneTileGroups};
// The most of a ring: more comes no sooner, and x waits after what is asked for before it.
constexpr int64_t kRingBytes = int64_t{152} << 10;
// Shared memory of the kernel besides that and a code book, and a Hopper block's limit.
constexpr int64_t kOfBlock = int64_t{3} << 10, kOfHopper = int64_t{227} << 10;
// The least of a block, so that each multiprocessor has one block: else two of a launch could share
// one multiprocessor while another has none.
constexpr int64_t kLeastShared = int64_t{116} << 10;
constexpr int64_t kGroupBytes = 16;  // OneGroup of gpu/kernels/matvec_one_x.h
constexpr int64_t kWord = 2;         // of the maps

// A format's rows and stages of a ring.
struct Format {
  shared::PackedLayout at;
  std::array<int64_t, shared::kOnePlanes> planes;    // bytes of a row
  std::array<int64_t, shared::kOnePlanes> in_stage;  // of these in a stage, whole 16
  int64_t inputs;                                    // of a stage
  int64_t stage_bytes;
  int64_t book_bytes;
};

Format plain_format(int64_t in) {
  using S = shared::PlainStage;
  return {.at = {.row_bytes = in * kWord},
          .planes = {in * kWord},
          .in_stage = {S::kLow},
          .inputs = S::kElements,
          .stage_bytes = kTileRows * S::kBytes,
          .book_bytes = 0};
}

Format format_of(DType weight, int64_t in) {
  if (!is_quantized(weight)) return plain_format(in);
  Format out{};
  dispatch_blocks("linear", weight, [&]<typename Block>() {
    using F = shared::PackedFormat<Block>;
    using S = shared::PackedStage<Block>;
    out = {.at = shared::packed_layout<Block>(in),
           .planes = {in / 8 * F::kLow, in / 8 * F::kHigh, in / F::kScaleSpan * F::kScaleBytes,
                      in / 256 * F::kSuperBytes},
           .in_stage = {S::kLow, S::kHigh, shared::to_16(S::kScale), shared::to_16(S::kSuper)},
           .inputs = S::kElements,
           .stage_bytes = kTileRows * S::kBytes,
           .book_bytes = shared::OneBook<Block>::kBytes};
  });
  return out;
}

int64_t steps_of(const Format& format, int64_t in) {
  return (in + format.inputs - 1) / format.inputs;
}

// TensorOneParams::terms. x times a norm's weight needs more bits than x.
int32_t terms_of(DType x, DType weight, bool norm) {
  if (is_quantized(weight) && weight != DType::f8_g128) return 0;
  // Numbers of bf16 have 8 bits, those of f16 have 11.
  const bool wide = weight == DType::bf16;
  if (x == DType::f32) return wide ? shared::kOneMostTerms : 2;
  return norm || (wide && x == DType::f16) ? 2 : 1;
}

// Of x: its terms and their scales; or its bytes, its groups, and zeros.
int64_t staged_bytes(const Format& format, int64_t in, int32_t terms) {
  const int64_t inputs = steps_of(format, in) * format.inputs;
  if (terms > 0) return inputs * kWord * terms + inputs / shared::kOneScaled * 4;
  return inputs + inputs / 32 * kGroupBytes + 32;
}

void set_maps(const shared::MatvecOnePart& part, const Format& format, CudaDriver& driver,
              shared::TensorMap (&maps)[shared::kOnePlanes]) {
  const std::array<int64_t, shared::kOnePlanes> begin{0, format.at.high, format.at.scale,
                                                      format.at.super};
  const auto pitch = static_cast<uint64_t>(format.at.row_bytes);
  for (size_t i = 0; i < format.planes.size(); ++i) {
    if (format.planes[i] == 0) continue;
    maps[i] = driver.tensor_map(TensorMapTiles{
        .dtype = DType::f16,
        .data = static_cast<const std::byte*>(part.weight) + begin[i],
        .sizes = {static_cast<uint64_t>(format.planes[i] / kWord), static_cast<uint64_t>(part.outs),
                  1, 1},
        .strides = {pitch, pitch, pitch},
        .box = {static_cast<uint32_t>(format.in_stage[i] / kWord), shared::kOneTileGroups, 1, 1},
        .swizzled = false});
  }
}

// Stages that a block asks for at once. An operation of few blocks, such as attention of one query,
// waits for memory: after half of the next kernel's weights no longer than without these stages.
int64_t early_stages(int64_t stages_of_block, const gpu::StreamRecord& front, int64_t blocks) {
  const bool few = front.last_blocks > 0 && front.last_blocks <= blocks / 2;
  return few ? (stages_of_block + 1) / 2 : stages_of_block;
}

void start(const gpu::OneRowLaunch& what, Stream& stream) {
  gpu::GpuDevice& device = gpu::device_of(stream);
  const gpu::Properties& properties = device.properties();
  const Format format = format_of(what.weight, what.params.in);
  shared::TensorOneParams params{};
  params.one = what.params;
  for (int i = 0; i < params.one.part_count; ++i) {
    set_maps(params.one.parts[i], format, static_cast<CudaDriver&>(device.driver()),
             params.maps[i]);
  }
  const int64_t tiles = (params.one.groups + shared::kOneTileGroups - 1) / shared::kOneTileGroups;
  params.terms = terms_of(what.x, what.weight, params.one.norm_weight != nullptr);
  const int64_t staged = staged_bytes(format, params.one.in, params.terms);
  const int64_t besides = kOfBlock + format.book_bytes;
  const int64_t room = std::min(kRingBytes, properties.shared_per_block - besides - staged);
  const int64_t stages = std::clamp<int64_t>(room / format.stage_bytes, 2, shared::kOneMostStages);
  params.tiles = static_cast<int32_t>(tiles);
  params.steps = static_cast<int32_t>(steps_of(format, params.one.in));
  params.stages = static_cast<int32_t>(stages);
  const int64_t blocks = std::min<int64_t>(tiles, properties.multiprocessors);
  params.after_another = what.after_another ? 1 : 0;
  params.before_another = what.before_another ? 1 : 0;
  const gpu::ReadsAhead ahead = what.reads_ahead();
  if (ahead != gpu::ReadsAhead::nothing) {
    params.early = static_cast<int32_t>(early_stages((tiles + blocks - 1) / blocks * params.steps,
                                                     device.streams().of(stream.handle), blocks));
  }
  constexpr const char* kFloats = "matvec_one_tma_floats";
  constexpr gpu::PackedFamilies kFamilies{"matvec_one_tma_small_blocks", "matvec_one_tma_k_blocks",
                                          kFloats, "matvec_one_tma_few_bits"};
  gpu::launch(stream,
              {.op = "linear",
               .family = is_quantized(what.weight) ? kFamilies.of(what.weight) : kFloats,
               .kernel = gpu::KernelName("matvec_one_tma", what.x, name(what.weight)),
               .grid = {.x = static_cast<uint32_t>(blocks)},
               .threads = shared::kOneTensorThreads,
               .shared_bytes = static_cast<uint32_t>(std::max(
                   kLeastShared, format.book_bytes + stages * format.stage_bytes + staged)),
               .reads_ahead = ahead,
               .writes = what.writes()},
              params);
}

const char* refuse_parts(std::span<const LinearPart> parts, DType x, bool norm, bool gated) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const View& weight = parts[i].weight;
    if (!is_quantized(weight.dtype) && weight.dtype != DType::f16 && weight.dtype != DType::bf16) {
      return "takes packed weights, f16 and bf16";
    }
    const int64_t in = weight.size(1);
    const Format format = format_of(weight.dtype, in);
    for (const int64_t bytes : format.planes) {
      if (bytes % kWord != 0) return "reads planes two bytes at a time";
    }
    const int64_t staged = staged_bytes(format, in, terms_of(x, weight.dtype, norm));
    const int64_t besides = kOfBlock + format.book_bytes;
    if (besides + staged + 2 * format.stage_bytes > kOfHopper) return "x is too long";
    if (!gated && i + 1 < parts.size() && weight.size(0) % kTileRows != 0) {
      return "takes parts in multiples of 32 outputs";
    }
  }
  return nullptr;
}

const char* refuse(const LinearArgs& args) {
  if (const char* reason = gpu::refuse_one_row(args)) return reason;
  return refuse_parts(args.parts, args.x.dtype, false, false);
}
void run(const LinearArgs& args, Stream& stream) {
  gpu::run_one_row(args, {.start = start, .fused = false}, stream);
}

const char* refuse_fused(const FusedLinearArgs& args) {
  if (const char* reason = gpu::refuse_one_row(args)) return reason;
  return refuse_parts(args.parts, args.x.dtype, bool{args.norm_weight}, args.gated);
}
void run_fused(const FusedLinearArgs& args, Stream& stream) {
  gpu::run_one_row(args, {.start = start}, stream);
}

// A tile's groups belong to one head, and either all or none of them to a rotation.
const char* refuse_heads(const QkvAppendArgs& args) {
  if (const char* reason = gpu::refuse_qkv_append(args)) return reason;
  const int64_t groups = args.k_cache.size(3) / 2, pairs = args.cos.size(1);
  if (groups % shared::kOneTileGroups != 0 || pairs % shared::kOneTileGroups != 0) {
    return "takes heads in multiples of 32 elements";
  }
  return refuse_parts(args.parts, args.x.dtype, bool{args.norm_weight}, false);
}
void run_heads(const QkvAppendArgs& args, Stream& stream) {
  gpu::run_qkv_append(args, start, stream);
}

}  // namespace

const Impl<LinearArgs> linear_one_tma{"tma_one", refuse, run};
const Impl<FusedLinearArgs> fused_linear_one_tma{"tma_one", refuse_fused, run_fused};
const Impl<QkvAppendArgs> qkv_append_one_tma{"tma_one", refuse_heads, run_heads};

}  // namespace rbee::cuda

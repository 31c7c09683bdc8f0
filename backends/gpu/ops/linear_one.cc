#include "backends/gpu/ops/linear_one.h"

#include <algorithm>
#include <vector>

#include "backends/api/dispatch_blocks.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/rows.h"
#include "backends/shared/matvec_params.h"
#include "backends/shared/packed_weight.h"

namespace rbee::gpu {
namespace {

using shared::MatvecOneParams;

// Alone, with nothing fused, the product is faster than linear_few's from about this many outputs
// on (docs/reference/gpu-speed.md).
constexpr int64_t kManyOuts = 32768;
// Shared memory of the kernel besides x and a code book.
constexpr int64_t kOfBlock = int64_t{2} << 10;
// Bytes of shared memory that the kernel takes at most: what all of AMD's devices have.
constexpr int64_t kMostShared = int64_t{64} << 10;

// The reading of a weight's rows.
struct Reading {
  int64_t pieces = 0;      // of a row
  int64_t trip = 0;        // pieces
  int64_t trip_bytes = 0;  // of one row
  int64_t inputs = 0;      // of a piece
  int64_t book = 0;        // bytes
  int64_t trips() const { return (pieces + trip - 1) / trip; }
};

Reading reading_of(DType weight, int64_t in) {
  Reading reading{.trip = shared::kPlainTrip, .trip_bytes = shared::kPlainTrip * 16};
  if (is_quantized(weight)) {
    reading.trip = shared::kPackedTrip;
    reading.book = book_bytes(weight);
    dispatch_blocks("linear", weight, [&]<typename Block>() {
      reading.inputs = shared::packed_piece<Block>();
      reading.trip_bytes = shared::PackedTrip<Block>::kBytes;
    });
  } else {
    reading.inputs = 16 / info(weight).block_bytes;
  }
  reading.pieces = in / reading.inputs;
  return reading;
}

// Bytes of x in the kernel's form.
int64_t staged_bytes(DType x, DType weight, const Reading& reading) {
  const int64_t inputs = reading.trips() * reading.trip * reading.inputs;
  if (!is_quantized(weight)) return inputs * info(x).block_bytes;
  constexpr int64_t kGroupBytes = 16;  // OneGroup of kernels/matvec_one_quant.h
  return inputs + inputs / 32 * kGroupBytes;
}

const char* refuse_weight(const View& x, const View& weight) {
  if (is_quantized(weight.dtype)) {
    if (weight.packing != kPlanesPacking) return "reads block types packed";
  } else if (weight.dtype != DType::f32 && weight.dtype != DType::f16 &&
             weight.dtype != DType::bf16 && weight.dtype != DType::f8e4m3) {
    return "reads f32, f16, bf16, f8e4m3 and block types";
  } else if (row_bytes(weight.dtype, weight.size(1)) % 16 != 0 || !aligned(weight.data)) {
    return "reads weights 16 bytes at a time";
  }
  const Reading reading = reading_of(weight.dtype, x.size(1));
  if (reading.pieces < reading.trip) return "takes rows that keep a wave busy";
  if (weight.size(0) > (int64_t{1} << 30)) return "takes up to 2^30 outputs";
  return nullptr;
}

const char* refuse_input(const View& x, std::span<const LinearPart> parts) {
  if (x.size(0) != 1) return "takes one row";
  if (!aligned(x.data)) return "reads x 16 bytes at a time";
  for (const LinearPart& part : parts) {
    if (const char* reason = refuse_weight(x, part.weight)) return reason;
  }
  return nullptr;
}

const char* refuse(const LinearArgs& args) {
  for (const LinearPart& part : args.parts) {
    if (!is_quantized(part.weight.dtype)) return "takes packed weights";
  }
  return refuse_one_row(args);
}

template <typename Args>
const char* refuse_on(const Args& args, Stream& stream) {
  return refuse_long_x(args.x, args.parts, stream);
}

// Waves that share a row: the number that spreads the groups evenly over all waves, since the last
// round of groups takes as long as a full one. `rounds` counts in whole rows.
int64_t split_for(int64_t groups, int64_t waves, int64_t trips, int64_t of_block) {
  int64_t best = 1;
  int64_t fewest = 0;
  for (int64_t split = 1; split <= std::min(of_block, trips); split *= 2) {
    const int64_t at_once = waves / split;
    const int64_t share = (trips + split - 1) / split;  // trips of a wave
    const int64_t rounds = (groups + at_once - 1) / at_once * share;
    // Sharing costs a barrier: it must save at least a twentieth.
    if (split == 1 || 20 * rounds < 19 * fewest) {
      best = split;
      fewest = rounds;
    }
  }
  return best;
}

void set_layout(DType weight, int64_t in, MatvecOneParams& params) {
  if (!is_quantized(weight)) {
    params.row_bytes = row_bytes(weight, in);
    return;
  }
  dispatch_blocks("linear", weight, [&]<typename Block>() {
    const shared::PackedLayout at = shared::packed_layout<Block>(in);
    params.row_bytes = at.row_bytes;
    params.high = static_cast<int32_t>(at.high);
    params.scale = static_cast<int32_t>(at.scale);
    params.super = static_cast<int32_t>(at.super);
  });
}

// Trips of a wave under way in shared memory.
int64_t ring_for(const Reading& reading, int64_t staged, int64_t waves, const Properties& device) {
  const int64_t of_trip = waves * shared::kMatvecOuts * reading.trip_bytes;
  const int64_t room = device.shared_per_block - kOfBlock - reading.book - staged;
  return std::clamp<int64_t>(room / of_trip, 1, shared::kMatvecMostRing);
}

// The parts with weights of one type, in launches of at most kMatvecParts.
void add_launches(const FusedLinearArgs& args, DType weight, const OneRow& how,
                  std::vector<OneRowLaunch>& launches) {
  const int64_t in = args.x.size(1);
  MatvecOneParams params{};
  params.x = args.x.data;
  params.norm_weight = args.norm_weight.data;
  params.residual = args.residual.data;
  params.eps = args.eps;
  params.in = static_cast<int32_t>(in);
  params.pieces = static_cast<int32_t>(reading_of(weight, in).pieces);
  params.gate = args.gated ? 1 + static_cast<int32_t>(args.gate) : 0;
  params.x_type = float_number(args.x.dtype);
  set_layout(weight, in, params);
  if (how.heads != nullptr) {
    params.append = 1;
    params.heads = *how.heads;
  }
  const auto add = [&] {
    if (params.groups == 0) return;
    launches.push_back({.x = args.x.dtype, .weight = weight, .params = params, .fused = how.fused});
  };
  for (size_t i = 0; i < args.parts.size(); ++i) {
    const LinearPart& part = args.parts[i];
    const auto outs = static_cast<int32_t>(part.weight.size(0));
    if (part.weight.dtype != weight || outs == 0) continue;
    if (params.part_count == shared::kMatvecParts) {
      add();
      params.part_count = 0;
      params.groups = 0;
    }
    params.parts[params.part_count++] = {.weight = part.weight.data,
                                         .bias = part.bias.data,
                                         .y = part.y.data,
                                         .outs = outs,
                                         .first_group = params.groups,
                                         .kind = static_cast<int32_t>(i)};
    params.groups += (outs + shared::kMatvecOuts - 1) / shared::kMatvecOuts;
  }
  if (args.gated) params.groups = params.parts[0].outs;
  add();
}

void run_fused(const FusedLinearArgs& args, Stream& stream) {
  run_one_row(args, {}, stream);
}

void run(const LinearArgs& args, Stream& stream) {
  run_one_row(args, {.fused = false}, stream);
}

}  // namespace

ReadsAhead OneRowLaunch::reads_ahead() const {
  if (fused) return ReadsAhead::constants;
  return is_quantized(weight) ? ReadsAhead::packed_weights : ReadsAhead::nothing;
}
Writes OneRowLaunch::writes() const {
  return fused ? Writes::results : Writes::floats;
}

void start_one_row(const OneRowLaunch& what, Stream& stream) {
  MatvecOneParams params = what.params;
  const Properties& device = device_of(stream).properties();
  const bool packed = is_quantized(what.weight);
  const Reading reading = reading_of(what.weight, params.in);
  const int64_t threads = packed ? shared::kPackedOneThreads : shared::kPlainOneThreads;
  const int64_t of_block = threads / device.lane_count;
  const int64_t blocks = device.multiprocessors * int64_t{packed ? 1 : shared::kPlainOneBlocks};
  const int64_t split = split_for(params.groups, blocks * of_block, reading.trips(), of_block);
  params.split = static_cast<int32_t>(split);
  int64_t shared_bytes = staged_bytes(what.x, what.weight, reading);
  const bool ring = packed && device.async_copies;
  if (ring) {
    const int64_t trips = ring_for(reading, shared_bytes, of_block, device);
    params.ring = static_cast<int32_t>(trips);
    shared_bytes += trips * of_block * shared::kMatvecOuts * reading.trip_bytes;
  }
  KernelName kernel = packed ? KernelName("matvec_one", what.weight)
                             : KernelName("matvec_one", what.x, name(what.weight));
  constexpr PackedFamilies kFamilies{"matvec_one_small_blocks", "matvec_one_k_blocks",
                                     "matvec_one_e4m3", "matvec_one_few_bits"};
  const int64_t tiles = (params.groups + of_block / split - 1) / (of_block / split);
  launch(stream,
         {.op = "linear",
          .family = packed ? kFamilies.of(what.weight) : "matvec_one",
          .kernel = kernel.lanes(device.lane_count),
          .grid = {.x = static_cast<uint32_t>(std::min(tiles, blocks))},
          .threads = static_cast<uint32_t>(threads),
          .shared_bytes = static_cast<uint32_t>(shared_bytes),
          .reads_ahead = ring ? what.reads_ahead() : ReadsAhead::nothing,
          .writes = what.writes()},
         params);
}

const char* refuse_one_row(const LinearArgs& args) {
  for (const LinearPart& part : args.parts) {
    if (part.weight.size(0) < kManyOuts) return "takes weights of many outputs";
  }
  return refuse_input(args.x, args.parts);
}
const char* refuse_one_row(const FusedLinearArgs& args) {
  if (args.norm_weight && !aligned(args.norm_weight.data)) return "reads norms 16 bytes at a time";
  if (args.gated && args.parts[0].weight.dtype != args.parts[1].weight.dtype) {
    return "takes gate and up of one type";
  }
  return refuse_input(args.x, args.parts);
}
const char* refuse_long_x(const View& x, std::span<const LinearPart> parts, Stream& stream) {
  const int64_t most =
      std::min(kMostShared, device_of(stream).properties().shared_per_block) - kOfBlock;
  for (const LinearPart& part : parts) {
    const Reading reading = reading_of(part.weight.dtype, x.size(1));
    if (staged_bytes(x.dtype, part.weight.dtype, reading) > most - reading.book) {
      return "x is too long";
    }
  }
  return nullptr;
}
void run_one_row(const LinearArgs& args, const OneRow& how, Stream& stream) {
  const FusedLinearArgs fused{.x = args.x, .norm_weight = {}, .residual = {}, .parts = args.parts};
  run_one_row(fused, how, stream);
}
void run_one_row(const FusedLinearArgs& args, const OneRow& how, Stream& stream) {
  std::vector<OneRowLaunch> launches;
  each_weight_type(args.parts, [&](DType weight) { add_launches(args, weight, how, launches); });
  for (size_t i = 0; i < launches.size(); ++i) {
    launches[i].after_another = i > 0;
    launches[i].before_another = i + 1 < launches.size();
    how.start(launches[i], stream);
  }
}

const Impl<LinearArgs> linear_one{"gpu_one", refuse, run, refuse_on<LinearArgs>};
const Impl<FusedLinearArgs> fused_linear_one{"gpu_one", refuse_one_row, run_fused,
                                             refuse_on<FusedLinearArgs>};

}  // namespace rbee::gpu

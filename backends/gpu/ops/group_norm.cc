#include <algorithm>
#include <vector>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/loop.h"
#include "backends/gpu/ops/layer_norm.h"
#include "backends/shared/norm_params.h"

namespace rbee::gpu {
namespace {

// As in kernels/group_norm.cu.
constexpr int64_t kHeld = 4;
enum Operand { kY, kX, kWeight, kBias };

// More parts of a group than this cost more to merge than they save.
constexpr int64_t kMostParts = 256;

// An optional vector, as channels of a group with the same sizes as x's.
View spread(const View& vector, const View& group) {
  View view = group;
  view.data = vector.data;
  view.dtype = group.dtype;
  std::fill_n(view.strides, kMaxRank, 0);
  if (vector) view.strides[0] = vector.stride(0);
  return view;
}

// The channels of one group of one image: (channels, spatial...).
View group_of(const View& view, int64_t channels) {
  View group = view;
  group.rank = static_cast<int8_t>(view.rank - 1);
  std::copy_n(view.sizes + 1, group.rank, group.sizes);
  std::copy_n(view.strides + 1, group.rank, group.strides);
  group.sizes[0] = channels;
  return group;
}

struct Groups {
  int64_t count;     // over all images
  int64_t channels;  // of a group
  Loop<4> space;
  shared::GroupNormParams params;  // without a space
};

Groups groups_of(const GroupNormArgs& args) {
  const int64_t channels = args.x.size(1) / args.groups;
  const View y = group_of(args.y, channels), x = group_of(args.x, channels);
  const View weight = spread(args.weight, x), bias = spread(args.bias, x);
  Groups out{.count = args.x.size(0) * args.groups,
             .channels = channels,
             .space = loop_over<4>({&y, &x, &weight, &bias}),
             .params = {}};
  shared::GroupNormParams& p = out.params;
  p.groups = static_cast<uint32_t>(args.groups);
  p.eps = args.eps;
  p.image_strides[kY] = args.y.stride(0);
  p.image_strides[kX] = args.x.stride(0);
  const View* const operands[] = {&y, &x, &weight, &bias};
  for (int k = 0; k < 4; ++k) p.group_strides[k] = channels * operands[k]->strides[0];
  return out;
}

// True if every group of every image can be read in runs of `each`.
bool groups_pack(const Groups& groups, const View& x, int64_t each) {
  if (x.dtype == DType::f64 || x.dtype == DType::f8e4m3) return false;
  if (groups.space.count() % each != 0 || !packs(groups.space, each)) return false;
  for (int k = 0; k < 4; ++k) {
    if (groups.space.operands[k].strides[0] == 0) continue;
    if (groups.params.group_strides[k] % each != 0 || groups.params.image_strides[k] % each != 0) {
      return false;
    }
  }
  return true;
}

class GroupNorm {
 public:
  GroupNorm(const GroupNormArgs& args, Stream& stream)
      : stream_(stream), dtype_(args.x.dtype), groups_(groups_of(args)) {
    const int64_t each = elements_per_thread(info(dtype_).block_bytes);
    packed_ = groups_pack(groups_, args.x, each);
    const int64_t tile = int64_t{kLoopThreads} * kHeld * (packed_ ? each : 1);
    for_parts(groups_.space, [&](const Loop<4>& space, int64_t) { add(space, tile); });
    for (shared::GroupNormParams& piece : pieces_) piece.all_parts = parts_;
  }

  void run() {
    if (parts_ == 1) return start("whole", pieces_.front());
    const int64_t bytes = dtype_ == DType::f64 ? sizeof(double) : sizeof(float);
    const Scratch moments(stream_, static_cast<size_t>(groups_.count * parts_ * 3 * bytes));
    for (shared::GroupNormParams& piece : pieces_) {
      piece.moments = moments.as<void>();
      start("moments", piece);
    }
    for (const shared::GroupNormParams& piece : pieces_) start("apply", piece);
  }

 private:
  // A group is one piece, unless it has 2^30 elements.
  void add(const Loop<4>& space, int64_t tile) {
    const int64_t tiles = (space.count() + tile - 1) / tile;
    shared::GroupNormParams p = groups_.params;
    p.tiles = blocks_for(tiles, kMostParts);
    p.parts = blocks_for(tiles, p.tiles);
    p.first_part = parts_;
    p.y = space.operands[kY].data;
    p.x = space.operands[kX].data;
    p.weight = space.operands[kWeight].data;
    p.bias = space.operands[kBias].data;
    p.space = strided(space, packed_);
    parts_ += p.parts;
    pieces_.push_back(p);
  }

  void start(const char* stage, const shared::GroupNormParams& params) {
    KernelName kernel("group_norm", dtype_, packed_ ? "packed" : "");
    kernel.part(stage).lanes(device_of(stream_).properties().lane_count);
    launch(stream_,
           {.op = "group_norm",
            .family = "group_norm",
            .kernel = kernel,
            .grid = {.x = static_cast<uint32_t>(groups_.count * params.parts)},
            .threads = kLoopThreads},
           params);
  }

  Stream& stream_;
  DType dtype_;
  Groups groups_;
  bool packed_ = false;
  uint32_t parts_ = 0;  // of a group
  std::vector<shared::GroupNormParams> pieces_;
};

void run_group_norm(const GroupNormArgs& args, Stream& stream) {
  if (args.x.numel() > 0) GroupNorm(args, stream).run();
}

}  // namespace

const Impl<GroupNormArgs> group_norm{"gpu", never_refuse, run_group_norm};

}  // namespace rbee::gpu

#include "backends/cpu/group_collectives.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/api/dispatch.h"
#include "backends/cpu/group_memory.h"
#include "backends/cpu/ref/number.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

enum Kind : uint32_t { kAllReduce = 1, kAllGather, kBroadcast };

GroupMemory& memory_of(const GroupView& group) {
  return *static_cast<GroupMemory*>(group.handle);
}

size_t bytes_of(const View& x) {
  return static_cast<size_t>(row_bytes(x.dtype, x.numel()));
}

const char* refuse_group(const GroupView& group) {
  return group.link == GroupLink::shared_memory ? nullptr : "the ranks share no memory";
}

// Calls piece(offset, bytes) for pieces that fit an area.
template <typename Piece>
void in_pieces(size_t bytes, const Piece& piece) {
  for (size_t at = 0; at < bytes; at += GroupMemory::kAreaBytes) {
    piece(at, std::min(GroupMemory::kAreaBytes, bytes - at));
  }
}

// y[i] = the sum of all ranks' element i, in the order of ranks.
template <typename T>
void add_areas(const GroupMemory& memory, std::byte* to, int64_t count) {
  // i32 wraps; C++ lets only unsigned numbers do so.
  using Wide = std::conditional_t<std::is_same_v<T, int32_t>, uint32_t, float>;
  constexpr int64_t kGrain = 16384;
  ThreadPool::shared().parallel_for(count, kGrain, [&](int64_t begin, int64_t end, int) {
    constexpr int64_t kBlock = 256;
    Wide sums[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      std::fill_n(sums, n, Wide{0});
      for (int rank = 0; rank < memory.ranks(); ++rank) {
        const T* x = reinterpret_cast<const T*>(memory.area_of(rank)) + at;
        for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<Wide>(load(x[i]));
      }
      T* y = reinterpret_cast<T*>(to) + at;
      for (int64_t i = 0; i < n; ++i) y[i] = store<T>(sums[i]);
    }
  });
}

const char* refuse_all_reduce(const AllReduceArgs& args) {
  const DType type = args.x.dtype;
  const bool taken =
      type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::i32;
  if (!taken) return "only f32, f16, bf16 and i32 are added";
  return refuse_group(args.group);
}

void run_all_reduce(const AllReduceArgs& args, Stream&) {
  GroupMemory& memory = memory_of(args.group);
  const size_t bytes = bytes_of(args.x);
  in_pieces(bytes, [&](size_t at, size_t count) {
    std::memcpy(memory.area(), args.x.as<std::byte>() + at, count);
    memory.meet({.kind = kAllReduce, .bytes = bytes});
    dispatch<float, f16, bf16, int32_t>("all_reduce", args.x.dtype, [&]<typename T>() {
      add_areas<T>(memory, args.y.as<std::byte>() + at, static_cast<int64_t>(count / sizeof(T)));
    });
  });
}

void run_all_gather(const AllGatherArgs& args, Stream&) {
  GroupMemory& memory = memory_of(args.group);
  const size_t bytes = bytes_of(args.x);
  in_pieces(bytes, [&](size_t at, size_t count) {
    std::memcpy(memory.area(), args.x.as<std::byte>() + at, count);
    memory.meet({.kind = kAllGather, .bytes = bytes});
    for (int rank = 0; rank < memory.ranks(); ++rank) {
      std::memcpy(args.y.as<std::byte>() + static_cast<size_t>(rank) * bytes + at,
                  memory.area_of(rank), count);
    }
  });
}

void run_broadcast(const BroadcastArgs& args, Stream&) {
  GroupMemory& memory = memory_of(args.group);
  const size_t bytes = bytes_of(args.x);
  const bool root = args.root == memory.rank();
  in_pieces(bytes, [&](size_t at, size_t count) {
    std::byte* x = args.x.as<std::byte>() + at;
    if (root) std::memcpy(memory.area(), x, count);
    memory.meet({.kind = kBroadcast, .bytes = bytes});
    if (!root) std::memcpy(x, memory.area_of(args.root), count);
  });
}

}  // namespace

const Impl<AllReduceArgs> shared_all_reduce{"shared", refuse_all_reduce, run_all_reduce};
const Impl<AllGatherArgs> shared_all_gather{
    "shared", [](const AllGatherArgs& args) { return refuse_group(args.group); }, run_all_gather};
const Impl<BroadcastArgs> shared_broadcast{
    "shared", [](const BroadcastArgs& args) { return refuse_group(args.group); }, run_broadcast};

}  // namespace rbee::cpu

#pragma once
// Tiles that the copy engine fetches into shared memory, and the barriers of a cluster of two
// blocks that signal their arrival (PTX ISA 8.x, sections 5.5, 9.7.9.27 and 9.7.13.15).

#include "backends/cuda/kernels/attention_wgmma.h"
#include "backends/shared/tensor_map_params.h"

namespace rbee {
namespace gpu {

// In both blocks of the cluster, which write or wait at the same place of their shared memory.
constexpr u16 kBothBlocks = 3;

RB_DEVICE u32 block_of_cluster() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
RB_DEVICE u32 cluster_x() {
  u32 x;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(x));
  return x;
}
RB_DEVICE u32 clusters() {
  u32 count;
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
  return count;
}
// All threads of both blocks call it.
RB_DEVICE void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
// Shows barriers that this thread started to the copy engine and the other block.
RB_DEVICE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and lets the phase end when `bytes` more have been copied.
RB_DEVICE void arrive_with_bytes(u64* barrier, u32 bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
// The address of this place of shared memory in the cluster's block `rank`.
RB_DEVICE u32 address_in(u32 place, u32 rank) {
  u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place), "r"(rank));
  return there;
}
// Arrives at a barrier of either block. It does not order this thread's writes, because a release
// to the cluster would wait for all of them.
RB_DEVICE void arrive_there(u32 barrier) {
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}
RB_DEVICE void arrive_at(u64* barrier, u32 rank) {
  arrive_there(address_in(shared_address(barrier), rank));
}

RB_DEVICE void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<u64>(&map)) : "memory");
}

// A box of a map of four axes from (x, y, z, w) on; to both blocks if kBoth.
template <bool kBoth>
RB_DEVICE void copy_box(u32 to, const TensorMap& map, u64* barrier, int x, int y, int z, int w) {
  if (kBoth) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
        "l"(reinterpret_cast<u64>(&map)), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z),
        "r"(w), "h"(kBothBlocks)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(reinterpret_cast<u64>(&map)), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z),
        "r"(w)
        : "memory");
  }
}

// The second-level cache policy for lines that are read once: evict them first, so that data that
// is read again stays.
RB_DEVICE u64 read_once_policy() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
// The same box under a policy.
RB_DEVICE void copy_box(u32 to, const TensorMap& map, u64* barrier, int x, int y, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%3, %4, %5, %5}], [%2], %6;" ::"r"(to),
      "l"(reinterpret_cast<u64>(&map)), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(0),
      "l"(policy)
      : "memory");
}

// The start of a column of pixels in an im2col map.
struct PixelPlace {
  int column, row, image;
};

// A column of pixels, each `tap` away from its place; to both blocks if kBoth.
template <bool kBoth>
RB_DEVICE void copy_pixels(u32 to, const TensorMap& map, u64* barrier, int channel,
                           const PixelPlace& from, u16 tap_column, u16 tap_row) {
  if (kBoth) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(to),
        "l"(reinterpret_cast<u64>(&map)), "r"(shared_address(barrier)), "r"(channel),
        "r"(from.column), "r"(from.row), "r"(from.image), "h"(tap_column), "h"(tap_row),
        "h"(kBothBlocks)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
        "l"(reinterpret_cast<u64>(&map)), "r"(shared_address(barrier)), "r"(channel),
        "r"(from.column), "r"(from.row), "r"(from.image), "h"(tap_column), "h"(tap_row)
        : "memory");
  }
}

}  // namespace gpu
}  // namespace rbee

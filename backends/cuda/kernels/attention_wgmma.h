#pragma once
// The Hopper instructions that attention_wgmma.cu is made of: warpgroup products, transaction-less
// mbarriers and named barriers (PTX ISA 8.x, sections 9.7.15, 9.7.13.15 and 9.7.13.1).
//
// Operands in shared memory are tiles of 128-byte rows under the 128-byte swizzle: 16-byte part c
// of row r lies at part c ^ (r % 8). Wider rows are several such tiles, one after another.

#include "backends/cuda/kernels/attention_ptx.h"

namespace rbee {
namespace gpu {

constexpr int kSwizzleRow = 128;  // bytes

// Byte offset of 16-byte part `part` of row `row` in an operand of `rows` rows.
RB_DEVICE u32 swizzled(int rows, int row, int part) {
  return static_cast<u32>((part / 8 * rows + row) * kSwizzleRow + ((part % 8) ^ (row % 8)) * 16);
}

// A matrix descriptor for the 128-byte swizzle. `stride`: bytes between groups of eight rows.
// `leading`: bytes between tiles, read only where rows run along the product's outer axis.
RB_DEVICE u64 matrix_descriptor(u32 address, u32 leading, u32 stride) {
  return static_cast<u64>((address & 0x3ffffu) >> 4) | static_cast<u64>(leading >> 4) << 16 |
         static_cast<u64>(stride >> 4) << 32 | u64{1} << 62;
}

RB_DEVICE void warpgroup_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
RB_DEVICE void warpgroup_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kPending committed groups are under way.
template <int kPending>
RB_DEVICE void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving registers of a product that is under way across this point.
template <int kCount>
RB_DEVICE void pin(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#define RB_F4(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define RB_F16(c, i) RB_F4(c, i), RB_F4(c, i + 4), RB_F4(c, i + 8), RB_F4(c, i + 12)
#define RB_F32(c, i) RB_F16(c, i), RB_F16(c, i + 16)
#define RB_NAMES32                                                                         \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31"
#define RB_NAMES64                                                                        \
  RB_NAMES32                                                                              \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52," \
  "%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

// Products of 64 rows, of f16 and bf16: c (+)= a * b^T with both from shared memory and 128 rows of
// b, and c += a * b with a in registers and b's rows along the sum, 128 or 64 columns.
#define RB_PRODUCTS(T, type)                                                         \
  template <>                                                                        \
  RB_DEVICE void multiply_rows<T>(float(&c)[64], u64 a, u64 b, bool add) {           \
    asm volatile(                                                                    \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                 \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" RB_NAMES64 \
        "}, %64, %65, p, 1, 1, 0, 0;\n}"                                             \
        : RB_F32(c, 0), RB_F32(c, 32)                                                \
        : "l"(a), "l"(b), "r"(add ? 1 : 0));                                         \
  }                                                                                  \
  template <>                                                                        \
  RB_DEVICE void multiply_columns<T>(float(&c)[64], const u32(&a)[4], u64 b) {       \
    asm volatile(                                                                    \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                                 \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" RB_NAMES64 \
        "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"                               \
        : RB_F32(c, 0), RB_F32(c, 32)                                                \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));               \
  }                                                                                  \
  template <>                                                                        \
  RB_DEVICE void multiply_columns<T>(float(&c)[32], const u32(&a)[4], u64 b) {       \
    asm volatile(                                                                    \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                 \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" RB_NAMES32  \
        "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"                               \
        : RB_F32(c, 0)                                                               \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));               \
  }

template <class T>
RB_DEVICE void multiply_rows(float (&c)[64], u64 a, u64 b, bool add);
template <class T>
RB_DEVICE void multiply_columns(float (&c)[64], const u32 (&a)[4], u64 b);
template <class T>
RB_DEVICE void multiply_columns(float (&c)[32], const u32 (&a)[4], u64 b);
RB_PRODUCTS(f16, "f16")
RB_PRODUCTS(bf16, "bf16")

#endif

// mbarriers: a phase ends when `count` threads have arrived.
RB_DEVICE void start_barrier(u64* barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
RB_DEVICE void arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Arrives when this thread's copies by cp.async so far have.
RB_DEVICE void arrive_after_copies(u64* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Waits for the end of the phase of this parity; phases count from 0.
RB_DEVICE void wait_phase(u64* barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nretry:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra retry;\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
// Shared memory that this thread wrote, or saw copied, is seen by products that begin after this.
RB_DEVICE void publish_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A warpgroup's bound on registers for each thread, a multiple of 8.
template <int kCount>
RB_DEVICE void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
RB_DEVICE void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Named barriers of `threads` threads; id 0 is barrier()'s.
RB_DEVICE void named_wait(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
RB_DEVICE void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace gpu
}  // namespace rbee

#pragma once
// The Hopper instructions for attention: warpgroup products, transaction-less
// mbarriers and named barriers (PTX ISA 8.x, sections 9.7.15, 9.7.13.15 and 9.7.13.1).
//
// Operands in shared memory are tiles of 128-byte rows under the 128-byte swizzle: 16-byte part c
// of row r lies at part c ^ (r % 8). Wider rows are several such tiles, one after another.

#include "backends/cuda/kernels/attention_in_out.h"

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
// Keeps the compiler from moving registers of an unfinished product across this point.
template <int kCount>
RB_DEVICE void pin(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#define RB_AT4(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define RB_AT8(c, i) RB_AT4(c, i), RB_AT4(c, i + 4)
#define RB_AT16(c, i) RB_AT8(c, i), RB_AT8(c, i + 8)
#define RB_F8(c) RB_AT8(c, 0)
#define RB_F16(c) RB_AT16(c, 0)
#define RB_F20(c) RB_F16(c), RB_AT4(c, 16)
#define RB_F32(c) RB_F16(c), RB_AT16(c, 16)
#define RB_F40(c) RB_F32(c), RB_AT8(c, 32)
#define RB_F64(c) RB_F32(c), RB_AT16(c, 32), RB_AT16(c, 48)
#define RB_F80(c) RB_F64(c), RB_AT16(c, 64)
#define RB_F128(c) RB_F80(c), RB_AT16(c, 80), RB_AT16(c, 96), RB_AT16(c, 112)
#define RB_NAMES8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define RB_NAMES16 RB_NAMES8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define RB_NAMES20 RB_NAMES16 ",%16,%17,%18,%19"
#define RB_NAMES32 RB_NAMES20 ",%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define RB_NAMES40 RB_NAMES32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define RB_NAMES64                                                                        \
  RB_NAMES40                                                                              \
  ",%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60," \
  "%61,%62,%63"
#define RB_NAMES80 RB_NAMES64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define RB_NAMES128                                                                       \
  RB_NAMES80                                                                              \
  ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100" \
  ",%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117" \
  ",%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

// Products of 64 rows, of f16 and bf16, with `count` registers of sums, for twice as many columns:
// c (+)= a * b^T with both from shared memory and a row of b for each column, and c += a * b with a
// in registers and b's rows along the sum. In the instruction's text, %<count> and higher numbers
// are the operands after the sums.
#define RB_ROWS(T, type, columns, count, second, third)                                     \
  template <>                                                                               \
  RB_DEVICE void multiply_rows<T>(float(&c)[count], u64 a, u64 b, bool add) {               \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" third                                 \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type \
                 " {" RB_NAMES##count "}, %" #count ", %" second ", p, 1, 1, 0, 0;\n}"      \
                 : RB_F##count(c)                                                           \
                 : "l"(a), "l"(b), "r"(add ? 1 : 0));                                       \
  }
#define RB_COLUMNS(T, type, columns, count, second, third, fourth, fifth, sixth)            \
  template <>                                                                               \
  RB_DEVICE void multiply_columns<T>(float(&c)[count], const u32(&a)[4], u64 b) {           \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" sixth                                 \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type \
                 " {" RB_NAMES##count "}, {%" #count ", %" second ", %" third ", %" fourth  \
                                      "}, %" fifth ", p, 1, 1, 1;\n}"                       \
                 : RB_F##count(c)                                                           \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));             \
  }
#define RB_PRODUCTS(T, type)                                   \
  RB_ROWS(T, type, "16", 8, "9", "10")                         \
  RB_ROWS(T, type, "32", 16, "17", "18")                       \
  RB_ROWS(T, type, "64", 32, "33", "34")                       \
  RB_ROWS(T, type, "80", 40, "41", "42")                       \
  RB_ROWS(T, type, "128", 64, "65", "66")                      \
  RB_ROWS(T, type, "160", 80, "81", "82")                      \
  RB_ROWS(T, type, "256", 128, "129", "130")                   \
  RB_COLUMNS(T, type, "40", 20, "21", "22", "23", "24", "25")  \
  RB_COLUMNS(T, type, "64", 32, "33", "34", "35", "36", "37")  \
  RB_COLUMNS(T, type, "80", 40, "41", "42", "43", "44", "45")  \
  RB_COLUMNS(T, type, "128", 64, "65", "66", "67", "68", "69") \
  RB_COLUMNS(T, type, "160", 80, "81", "82", "83", "84", "85") \
  RB_COLUMNS(T, type, "256", 128, "129", "130", "131", "132", "133")

#define RB_ROWS_OF(count) \
  template <class T>      \
  RB_DEVICE void multiply_rows(float(&c)[count], u64 a, u64 b, bool add);
#define RB_COLUMNS_OF(count) \
  template <class T>         \
  RB_DEVICE void multiply_columns(float(&c)[count], const u32(&a)[4], u64 b);
RB_ROWS_OF(8)
RB_ROWS_OF(16)
RB_ROWS_OF(32)
RB_ROWS_OF(40)
RB_ROWS_OF(64)
RB_ROWS_OF(80)
RB_ROWS_OF(128)
RB_COLUMNS_OF(20)
RB_COLUMNS_OF(32)
RB_COLUMNS_OF(40)
RB_COLUMNS_OF(64)
RB_COLUMNS_OF(80)
RB_COLUMNS_OF(128)
RB_PRODUCTS(f16, "f16")
RB_PRODUCTS(bf16, "bf16")

// The same of 64 rows by 128 in e4m3, 32 elements of each.
RB_DEVICE void multiply_e4m3(float (&c)[64], u64 a, u64 b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" RB_NAMES64
      "}, %64, %65, p, 1, 1;\n}"
      : RB_F64(c)
      : "l"(a), "l"(b), "r"(add ? 1 : 0));
}

#endif

// mbarriers: a phase ends when `count` threads have arrived.
RB_DEVICE void start_barrier(u64* barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
RB_DEVICE void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
RB_DEVICE void arrive(u64* barrier) {
  arrive(shared_address(barrier));
}
// Arrives when this thread's copies by cp.async so far have.
RB_DEVICE void arrive_after_copies(u64* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Waits for the end of the phase of this parity; phases count from 0.
RB_DEVICE void wait_phase(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nretry:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra retry;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
RB_DEVICE void wait_phase(u64* barrier, u32 parity) {
  wait_phase(shared_address(barrier), parity);
}
// Products that begin after this see the shared memory that this thread wrote, or saw copied.
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

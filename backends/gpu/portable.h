#pragma once
// The only header under gpu/ that names a vendor: aliases and inline functions that make one kernel
// source compile for NVIDIA (nvcc) and AMD (clang, without HIP's headers or device library).
//
// Kernels take one parameter struct by value. RB_KERNEL(name, threads, Params, body) makes an entry
// of `threads` per block at most; `p` is the parameter. Kernels whose lanes work together are
// templates over kWave, the lanes of a wave, and are entered through RB_WAVES.

#include "backends/shared/float_types.h"
#include "backends/shared/math.h"
#include "rbee/core/block_types.h"

#if defined(__CUDACC__)
#define RB_DEVICE __device__ __forceinline__
#define RB_SHARED __shared__
#define RB_KERNEL(name, threads, Params, ...)                                                    \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Params p) { \
    ::rbee::gpu::start_next_kernel();                                                            \
    ::rbee::gpu::wait_for_previous_kernel();                                                     \
    __VA_ARGS__;                                                                                 \
  }
// Memory of the block, of the size that the launch gives.
#define RB_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
// The same, for kernels of which a multiprocessor is to hold `blocks` at once.
#define RB_KERNEL_OF(name, threads, blocks, Params, ...)        \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      name(const __grid_constant__ Params p) {                  \
    ::rbee::gpu::start_next_kernel();                           \
    ::rbee::gpu::wait_for_previous_kernel();                    \
    __VA_ARGS__;                                                \
  }
// The same, for kernels that call wait_for_previous_kernel() themselves: before it they read
// nothing but weights.
#define RB_KERNEL_AHEAD(name, threads, blocks, Params, ...)     \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      name(const __grid_constant__ Params p) {                  \
    ::rbee::gpu::start_next_kernel();                           \
    __VA_ARGS__;                                                \
  }
// M(lanes, suffix) for each wave width that the target has.
#define RB_WAVES(M, ...) M(32, w32, ##__VA_ARGS__)
#else
#define RB_DEVICE __attribute__((device)) __attribute__((always_inline)) inline
#define RB_SHARED __attribute__((shared))
#define RB_KERNEL(name, threads, Params, ...)                   \
  extern "C" __attribute__((global)) __attribute__((used))      \
  __attribute__((amdgpu_flat_work_group_size(1, threads))) void \
  name(const Params p) {                                        \
    __VA_ARGS__;                                                \
  }
#define RB_DYNAMIC_SHARED(name) \
  extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char name[]
#define RB_KERNEL_OF(name, threads, blocks, Params, ...) \
  RB_KERNEL(name, threads, Params, __VA_ARGS__)
#define RB_KERNEL_AHEAD(name, threads, blocks, Params, ...) \
  RB_KERNEL(name, threads, Params, __VA_ARGS__)
#if defined(__GFX9__)
#define RB_WAVES(M, ...) M(64, w64, ##__VA_ARGS__)
#else
#define RB_WAVES(M, ...) M(32, w32, ##__VA_ARGS__)
#endif
#endif

// M(suffix, Type) for the dtypes that kernels are made for; suffixes are name(DType).
#define RB_EACH_FLOAT(M, ...)  \
  M(f32, float, ##__VA_ARGS__) \
  M(f16, f16, ##__VA_ARGS__)   \
  M(bf16, bf16, ##__VA_ARGS__)
#define RB_EACH_FLOAT_AND_F64(M, ...) \
  RB_EACH_FLOAT(M, ##__VA_ARGS__)     \
  M(f64, double, ##__VA_ARGS__)
#define RB_EACH_FLOAT_TYPE(M, ...)        \
  RB_EACH_FLOAT_AND_F64(M, ##__VA_ARGS__) \
  M(f8e4m3, f8e4m3, ##__VA_ARGS__)
#define RB_EACH_INTEGER(M, ...) \
  M(u8, u8, ##__VA_ARGS__)      \
  M(u32, u32, ##__VA_ARGS__)    \
  M(i16, i16, ##__VA_ARGS__)    \
  M(i32, i32, ##__VA_ARGS__)    \
  M(i64, i64, ##__VA_ARGS__)
#define RB_EACH_PLAIN(M, ...)          \
  RB_EACH_FLOAT_TYPE(M, ##__VA_ARGS__) \
  RB_EACH_INTEGER(M, ##__VA_ARGS__)
// The same of rbee/core/block_types.h, whose lists say which types these are: M(suffix, Block).
// They need backends/shared/quant_blocks.h, and those of few bits code_book_blocks.h.
#define RB_WITH_BLOCK(name, Name, elements, bytes, bits, ggml, M, ...) \
  M(name, Block##Name, ##__VA_ARGS__)
#define RB_EACH_SMALL_BLOCK(M, ...) RB_SMALL_BLOCK_TYPES(RB_WITH_BLOCK, M, ##__VA_ARGS__)
#define RB_EACH_K_BLOCK(M, ...) RB_K_BLOCK_TYPES(RB_WITH_BLOCK, M, ##__VA_ARGS__)
#define RB_EACH_FEW_BITS(M, ...) RB_FEW_BIT_BLOCK_TYPES(RB_WITH_BLOCK, M, ##__VA_ARGS__)
#define RB_EACH_BLOCK(M, ...)           \
  RB_EACH_SMALL_BLOCK(M, ##__VA_ARGS__) \
  RB_EACH_K_BLOCK(M, ##__VA_ARGS__)

namespace rbee {
namespace gpu {

// A kernel may start before the previous one has ended (NVIDIA, compute capability 9 and later),
// which hides the launch's latency.
RB_DEVICE void start_next_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
RB_DEVICE void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

using namespace shared;  // NOLINT: the formulas are this code's vocabulary

// The type that arithmetic on T is done in.
template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<f16> {
  using type = float;
};
template <>
struct ComputeOf<bf16> {
  using type = float;
};
template <>
struct ComputeOf<f8e4m3> {
  using type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::type;

template <class T>
RB_DEVICE Compute<T> load_value(T x) {
  return x;
}
RB_DEVICE float load_value(f16 x) {
  return to_float(x);
}
RB_DEVICE float load_value(bf16 x) {
  return to_float(x);
}
RB_DEVICE float load_value(f8e4m3 x) {
  return to_float(x);
}
// A computed value as T; float types round to nearest even.
template <class T>
RB_DEVICE T store_value(Compute<T> x) {
  return x;
}
template <>
RB_DEVICE f16 store_value<f16>(float x) {
  return from_float<f16>(x);
}
template <>
RB_DEVICE bf16 store_value<bf16>(float x) {
  return from_float<bf16>(x);
}
template <>
RB_DEVICE f8e4m3 store_value<f8e4m3>(float x) {
  return from_float<f8e4m3>(x);
}

template <class A, class B>
struct SameType {
  static constexpr bool value = false;
};
template <class A>
struct SameType<A, A> {
  static constexpr bool value = true;
};

// Two values rounded to a 16-bit type, the first in the low half.
template <class T>
RB_DEVICE u32 round_pair(float first, float second) {
#if defined(__CUDACC__)
  u32 out;
  if constexpr (SameType<T, f16>::value) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  }
  return out;
#else
  return store_value<T>(first).bits | (static_cast<u32>(store_value<T>(second).bits) << 16);
#endif
}

// Where a thread stands.
#if defined(__CUDACC__)
RB_DEVICE u32 thread_x() {
  return threadIdx.x;
}
RB_DEVICE u32 block_x() {
  return blockIdx.x;
}
RB_DEVICE u32 block_y() {
  return blockIdx.y;
}
RB_DEVICE u32 block_z() {
  return blockIdx.z;
}
RB_DEVICE u32 threads_per_block() {
  return blockDim.x;
}
RB_DEVICE u32 blocks_x() {
  return gridDim.x;
}
RB_DEVICE void barrier() {
  __syncthreads();
}
#else
RB_DEVICE u32 thread_x() {
  return __builtin_amdgcn_workitem_id_x();
}
RB_DEVICE u32 block_x() {
  return __builtin_amdgcn_workgroup_id_x();
}
RB_DEVICE u32 block_y() {
  return __builtin_amdgcn_workgroup_id_y();
}
RB_DEVICE u32 block_z() {
  return __builtin_amdgcn_workgroup_id_z();
}
RB_DEVICE u32 threads_per_block() {
  return __builtin_amdgcn_workgroup_size_x();
}
// The first of the words that the runtime appends to a kernel's arguments (code object v5).
RB_DEVICE u32 blocks_x() {
  using Constant = const __attribute__((address_space(4))) u32;
  return *(Constant*)__builtin_amdgcn_implicitarg_ptr();
}
RB_DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#endif

// A thread's index in the whole grid's first axis, and how many there are.
RB_DEVICE i64 grid_thread() {
  return static_cast<i64>(block_x()) * threads_per_block() + thread_x();
}
RB_DEVICE i64 grid_threads() {
  return static_cast<i64>(blocks_x()) * threads_per_block();
}

// 16 bytes moved at once; the address is a multiple of 16.
struct alignas(16) Bytes16 {
  u32 words[4];
};
template <class T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(T));
  T values[kCount];
};
template <class T>
RB_DEVICE Pack<T> load128(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <class T>
RB_DEVICE void store128(T* to, const Pack<T>& values) {
  *reinterpret_cast<Pack<T>*>(to) = values;
}

// 4, 8 or 16 bytes, aligned to their size, that are read once: they do not push out of the caches
// what is read again.
template <int kWords>
RB_DEVICE void load_once(const u8* from, u32 (&words)[kWords]) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4, "sizes of a load");
#if defined(__CUDACC__)
  if constexpr (kWords == 4) {
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(from));
  } else if constexpr (kWords == 2) {
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "l"(from));
  } else {
    asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(words[0]) : "l"(from));
  }
#else
  using Vector = u32 __attribute__((ext_vector_type(kWords)));
  const Vector loaded = __builtin_nontemporal_load(reinterpret_cast<const Vector*>(from));
  for (int i = 0; i < kWords; ++i) words[i] = loaded[i];
#endif
}

// Asynchronous copies to shared memory. On targets without them, kernels keep prefetched data in
// registers.
#if defined(__CUDACC__)
constexpr bool kAsyncCopies = true;

RB_DEVICE u32 shared_address(const void* data) {
  return static_cast<u32>(__cvta_generic_to_shared(data));
}
// The first `valid` of 16 bytes, and zeros behind them. Both addresses are multiples of 16.
RB_DEVICE void copy_async16(u32 to, const void* from, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(valid)
               : "memory");
}
RB_DEVICE void copy_async16_if(bool wanted, u32 to, const void* from, int valid) {
  asm volatile(
      "{\n\t.reg .pred wanted;\n\tsetp.ne.s32 wanted, %3, 0;\n\t"
      "@wanted cp.async.cg.shared.global [%0], [%1], 16, %2;\n\t}" ::"r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(valid), "r"(static_cast<int>(wanted))
      : "memory");
}
// The copies since the last call become a group.
RB_DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most kPending groups of this thread's copies are outstanding.
template <int kPending>
RB_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
#else
constexpr bool kAsyncCopies = false;
// Templates name these, but nothing calls them.
__attribute__((device)) u32 shared_address(const void* data);
__attribute__((device)) void copy_async16(u32 to, const void* from, int valid);
__attribute__((device)) void copy_async16_if(bool wanted, u32 to, const void* from, int valid);
__attribute__((device)) void commit_copies();
template <int kPending>
__attribute__((device)) void wait_copies();
#endif

// Makes shared memory written by a wave's lanes visible to its lanes; all lanes take part.
RB_DEVICE void wave_barrier() {
#if defined(__CUDACC__)
  __syncwarp();
#else
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#endif
}

// Keeps the compiler from moving the loads above down to their use, which saves registers but
// leaves few loads outstanding. All lanes of a wave take part.
RB_DEVICE void loads_before() {
#if defined(__CUDACC__)
  __syncwarp();
#else
  __builtin_amdgcn_sched_barrier(0);
#endif
}

// Element i of words that hold neighbouring floats of type T.
template <class T, int kWords>
RB_DEVICE T element(const u32 (&words)[kWords], int i) {
  if constexpr (sizeof(T) == 4) {
    return float_of_bits(words[i]);
  } else if constexpr (sizeof(T) == 2) {
    return T{static_cast<u16>(words[i / 2] >> (16 * (i % 2)))};
  } else {
    return T{static_cast<u8>(words[i / 4] >> (8 * (i % 4)))};
  }
}

// Exchanges between the lanes of a wave; all lanes take part.
#if defined(__CUDACC__)
template <int kWave>
RB_DEVICE u32 shuffle_xor(u32 x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
template <int kWave>
RB_DEVICE u32 shuffle(u32 x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}
#else
template <int kWave>
RB_DEVICE u32 lane_index() {
  if constexpr (kWave == 64) {
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  } else {
    return __builtin_amdgcn_mbcnt_lo(~0u, 0u);
  }
}
#if defined(RBEE_METAL)
// Names that tools/metal prints as Metal's own functions; AMD's instruction would hide the mask.
extern "C" __attribute__((device)) __attribute__((const)) u32 rb_metal_shuffle(u32 x, u32 lane);
extern "C" __attribute__((device)) __attribute__((const)) u32 rb_metal_shuffle_xor(u32 x, u32 mask);
template <int kWave>
RB_DEVICE u32 shuffle(u32 x, int lane) {
  return rb_metal_shuffle(x, static_cast<u32>(lane));
}
template <int kWave>
RB_DEVICE u32 shuffle_xor(u32 x, int mask) {
  return rb_metal_shuffle_xor(x, static_cast<u32>(mask));
}
#else
template <int kWave>
RB_DEVICE u32 shuffle(u32 x, int lane) {
  return static_cast<u32>(__builtin_amdgcn_ds_bpermute(lane << 2, static_cast<int>(x)));
}
template <int kWave>
RB_DEVICE u32 shuffle_xor(u32 x, int mask) {
  return shuffle<kWave>(x, static_cast<int>(lane_index<kWave>()) ^ mask);
}
#endif
#endif
template <int kWave>
RB_DEVICE float shuffle_xor(float x, int mask) {
  return float_of_bits(shuffle_xor<kWave>(bits_of_float(x), mask));
}
template <int kWave>
RB_DEVICE float shuffle(float x, int lane) {
  return float_of_bits(shuffle<kWave>(bits_of_float(x), lane));
}
template <int kWave>
RB_DEVICE i32 shuffle_xor(i32 x, int mask) {
  return static_cast<i32>(shuffle_xor<kWave>(static_cast<u32>(x), mask));
}
template <int kWave>
RB_DEVICE u64 shuffle_xor(u64 x, int mask) {
  const u64 low = shuffle_xor<kWave>(static_cast<u32>(x), mask);
  const u64 high = shuffle_xor<kWave>(static_cast<u32>(x >> 32), mask);
  return low | (high << 32);
}
template <int kWave>
RB_DEVICE i64 shuffle_xor(i64 x, int mask) {
  return static_cast<i64>(shuffle_xor<kWave>(static_cast<u64>(x), mask));
}
template <int kWave>
RB_DEVICE double shuffle_xor(double x, int mask) {
  return __builtin_bit_cast(double, shuffle_xor<kWave>(__builtin_bit_cast(u64, x), mask));
}

struct Sum {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Every lane gets combine() over kWidth neighbouring lanes.
template <int kWave, int kWidth = kWave, class T, class Combine>
RB_DEVICE T wave_reduce(T x, Combine combine) {
  for (int mask = kWidth / 2; mask > 0; mask /= 2) x = combine(x, shuffle_xor<kWave>(x, mask));
  return x;
}
template <int kWave, int kWidth = kWave, class T>
RB_DEVICE T wave_sum(T x) {
  return wave_reduce<kWave, kWidth>(x, Sum{});
}
template <int kWave, int kWidth = kWave, class T>
RB_DEVICE T wave_max(T x) {
  return wave_reduce<kWave, kWidth>(x, Max{});
}

// Every thread gets combine() over the block's threads_per_block() threads, a multiple of kWave.
// `slots`: kBlock / kWave values of shared memory, free to be used again after the call's end.
template <int kWave, int kBlock, class T, class Combine>
RB_DEVICE T block_reduce(T x, T* slots, Combine combine) {
  x = wave_reduce<kWave>(x, combine);
  if constexpr (kBlock == kWave) return x;
  const u32 wave = thread_x() / kWave;
  const u32 waves = threads_per_block() / kWave;
  if (thread_x() % kWave == 0) slots[wave] = x;
  barrier();
  x = slots[0];
  for (u32 i = 1; i < waves; ++i) x = combine(x, slots[i]);
  barrier();
  return x;
}
template <int kWave, int kBlock, class T>
RB_DEVICE T block_sum(T x, T* slots) {
  return block_reduce<kWave, kBlock>(x, slots, Sum{});
}
template <int kWave, int kBlock, class T>
RB_DEVICE T block_max(T x, T* slots) {
  return block_reduce<kWave, kBlock>(x, slots, Max{});
}

// What this thread wrote before the one is seen after the other by the threads that learn of it
// from memory of the same device, whichever block they belong to.
RB_DEVICE void release_to_device() {
#if defined(__CUDACC__)
  __threadfence();
#else
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
#endif
}
RB_DEVICE void acquire_from_device() {
#if defined(__CUDACC__)
  __threadfence();
#else
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
#endif
}

// Adds to memory that other threads add to as well; returns what was there.
RB_DEVICE void atomic_add(float* to, float x) {
#if defined(__CUDACC__)
  atomicAdd(to, x);
#else
  __scoped_atomic_fetch_add(to, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
#endif
}
RB_DEVICE u32 atomic_add(u32* to, u32 x) {
#if defined(__CUDACC__)
  return atomicAdd(to, x);
#else
  return __scoped_atomic_fetch_add(to, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
#endif
}

}  // namespace gpu
}  // namespace rbee

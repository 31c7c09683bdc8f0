#pragma once
// Measures the physical limits of this machine, which benchmarks print beside their figures.
// Arithmetic limits are those of the instruction sets that kernels may use (cpu_features.h).

#include <cstdint>

namespace rbee::cpu {

struct Peak {
  double read_bytes_per_second = 0;  // streaming reads from memory
  double f32_flops = 0;              // fused multiply-add, counted as two
  double bf16_flops = 0;             // bf16 products; 0 if the processor has none
  double int8_ops = 0;               // 8-bit products, multiply and add counted as two
};

// Bytes per second at which `threads` threads together read the same `bytes` repeatedly, from a
// cache if they fit. Best of several passes.
double measure_read(int threads, int64_t bytes);

// Runs each unit on `threads` threads at once, for about `seconds`, best of three. Each thread
// reads 128 MiB.
Peak measure_peak(int threads, double seconds = 0.05);

// One unit's inner loop: runs `rounds` rounds on the calling thread and returns the operations
// done. Call it only if the processor has the instructions.
using PeakLoop = double (*)(int64_t rounds);
double peak_f32_portable(int64_t rounds);
double peak_f32_avx2(int64_t rounds);
double peak_int8_avx2(int64_t rounds);
double peak_int8_avxvnni(int64_t rounds);
double peak_f32_avx512(int64_t rounds);
double peak_int8_avx512(int64_t rounds);
double peak_bf16_avx512bf16(int64_t rounds);
double peak_int8_amx(int64_t rounds);
double peak_bf16_amx(int64_t rounds);
double peak_f32_neon(int64_t rounds);
double peak_int8_neon(int64_t rounds);
double peak_int8_dotprod(int64_t rounds);
double peak_int8_i8mm(int64_t rounds);
double peak_bf16_i8mm(int64_t rounds);

}  // namespace rbee::cpu

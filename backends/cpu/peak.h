#pragma once
// Physical limits of this machine, measured: what benchmarks print beside their figures. Those of
// arithmetic are of the instruction sets that kernels may use (cpu_features.h).

#include <cstdint>

namespace rbee::cpu {

struct Peak {
  double read_bytes_per_second = 0;  // streaming reads from memory
  double f32_flops = 0;              // fused multiply-add, counted as two
  double bf16_flops = 0;             // bf16 products; 0 where the processor has none
  double int8_ops = 0;               // 8-bit products, multiply and add counted as two
};

// Bytes a second at which `threads` threads together read the same `bytes` again and again; what
// fits into a cache is read from there. Best of several passes.
double measure_read(int threads, int64_t bytes);

// Runs each unit on `threads` threads at once, for about `seconds` each, best of three. Reads go
// over 128 MiB a thread.
Peak measure_peak(int threads, double seconds = 0.05);

// One unit's inner loop: runs `rounds` rounds on the calling thread and returns the operations
// done. Call only where the processor has the instructions.
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

}  // namespace rbee::cpu

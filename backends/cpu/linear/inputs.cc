#include "backends/cpu/linear/inputs.h"

#include <algorithm>

#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

// Fewer elements than this are converted by the caller alone.
constexpr int64_t kElementsPerTask = 16384;

struct Buffers {
  int8_t* q = nullptr;
  float* scale = nullptr;
  float* sum32 = nullptr;
  float* sum16 = nullptr;
  float* f32 = nullptr;
  uint16_t* bf16 = nullptr;
  uint16_t* split[kSplitParts] = {};
};

struct Plan {
  WantedForms wanted;
  bool copy_f32 = false;   // f32 is wanted, and x is not usable as it is
  bool copy_bf16 = false;  // bf16 is
  int64_t rows = 0, in = 0;
  int64_t even = 0;   // `in`, filled up to an even number
  int64_t whole = 0;  // `in`, filled up to a multiple of 32
};

Plan make_plan(const View& x, const WantedForms& wanted) {
  const int64_t in = x.size(1);
  Plan plan{.wanted = wanted,
            .rows = x.size(0),
            .in = in,
            .even = (in + 1) / 2 * 2,
            .whole = (in + kGroup - 1) / kGroup * kGroup};
  const bool even = plan.even == plan.in;
  plan.copy_bf16 = wanted.bf16 && (x.dtype != DType::bf16 || !even);
  const bool from_f32 = wanted.f32 || wanted.quantized || wanted.split || plan.copy_bf16;
  plan.copy_f32 = from_f32 && (x.dtype != DType::f32 || !even);
  return plan;
}

Buffers carve(Carver& carver, const Plan& plan) {
  Buffers buffers;
  if (plan.wanted.quantized) {
    const int64_t groups = plan.rows * plan.in / kGroup;
    buffers.q = carver.take<int8_t>(plan.rows * plan.in);
    buffers.scale = carver.take<float>(groups);
    buffers.sum32 = carver.take<float>(groups);
    buffers.sum16 = carver.take<float>(2 * groups);
  }
  if (plan.copy_f32) buffers.f32 = carver.take<float>(plan.rows * plan.even);
  if (plan.copy_bf16) buffers.bf16 = carver.take<uint16_t>(plan.rows * plan.even);
  for (uint16_t*& part : buffers.split) {
    if (plan.wanted.split) part = carver.take<uint16_t>(plan.rows * plan.whole);
  }
  return buffers;
}

// Row `row` of x as f32: in place, or in the buffer.
const float* f32_row(const View& x, const Plan& plan, int64_t row, const FloatRows& rows,
                     float* buffer) {
  if (!plan.copy_f32) return x.as<float>() + row * plan.in;
  float* out = buffer + row * plan.even;
  const int64_t bytes = row * plan.in * info(x.dtype).block_bytes;
  rows.widen(x.dtype, x.as<std::byte>() + bytes, plan.in, out);
  if (plan.even != plan.in) out[plan.in] = 0;
  return out;
}

void convert_row(const View& x, const Plan& plan, int64_t row, const Buffers& to,
                 const LinearIsa& isa) {
  const float* values = f32_row(x, plan, row, *isa.rows, to.f32);
  if (plan.wanted.quantized) {
    const int64_t groups = plan.in / kGroup;
    isa.quantize(values, plan.in,
                 {.q = to.q + row * plan.in,
                  .scale = to.scale + row * groups,
                  .sum32 = to.sum32 + row * groups,
                  .sum16 = to.sum16 + row * 2 * groups});
  }
  if (plan.copy_bf16) isa.to_bf16(values, plan.even, to.bf16 + row * plan.even);
  if (plan.wanted.split) {
    const int64_t first = row * plan.whole;
    isa.split(values, plan.in, {to.split[0] + first, to.split[1] + first, to.split[2] + first});
  }
}

}  // namespace

Inputs prepare_inputs(const View& x, const WantedForms& wanted, const LinearIsa& isa,
                      Scratch& scratch) {
  const Plan plan = make_plan(x, wanted);
  Carver counter(nullptr);
  carve(counter, plan);
  Carver carver(scratch.reserve(counter.used()));
  const Buffers to = carve(carver, plan);
  if (plan.copy_f32 || wanted.quantized || plan.copy_bf16 || wanted.split) {
    const int64_t grain = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(plan.in, 1));
    ThreadPool::shared().parallel_for(plan.rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) convert_row(x, plan, row, to, isa);
    });
  }
  Inputs inputs;
  inputs.quantized = {
      .q = to.q, .scale = to.scale, .sum32 = to.sum32, .sum16 = to.sum16, .stride = plan.in};
  const bool own_f32 = !plan.copy_f32 && x.dtype == DType::f32;
  const bool own_bf16 = wanted.bf16 && !plan.copy_bf16;
  inputs.f32 = {.f32 = own_f32 ? x.as<float>() : to.f32, .stride = plan.even};
  inputs.bf16 = {.bf16 = own_bf16 ? x.as<uint16_t>() : to.bf16, .stride = plan.even};
  inputs.split = {.split = {to.split[0], to.split[1], to.split[2]}, .stride = plan.whole};
  return inputs;
}

InputRows part_of(const InputRows& x, int64_t row, int64_t k) {
  InputRows part = x;
  const int64_t first = row * x.stride + k;
  if (x.q != nullptr) {
    part.q += first;
    part.scale += first / 32;
    part.sum32 += first / 32;
    part.sum16 += first / 16;
  }
  if (x.f32 != nullptr) part.f32 += first;
  if (x.bf16 != nullptr) part.bf16 += first;
  for (const uint16_t*& split : part.split) {
    if (split != nullptr) split += first;
  }
  return part;
}

}  // namespace rbee::cpu

#pragma once
// Converts x to the forms that kernels of packed weights read.

#include "backends/api/view.h"
#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/linear/scratch.h"

namespace rbee::cpu {

struct Inputs {
  InputRows quantized, f32, bf16, split;

  const InputRows& form(InputForm wanted) const {
    switch (wanted) {
      case InputForm::quantized:
        return quantized;
      case InputForm::bf16:
        return bf16;
      case InputForm::split:
        return split;
      case InputForm::f32:
        break;
    }
    return f32;
  }
};

struct WantedForms {
  bool quantized = false, f32 = false, bf16 = false, split = false;
};

// Converts x (rows, in) on all threads. The result is in `scratch`, except f32 as f32, and bf16 as
// bf16 with an even `in`: these are x itself.
Inputs prepare_inputs(const View& x, const WantedForms& wanted, const LinearIsa& isa,
                      Scratch& scratch);

// The same rows from `row` on, and from input `k` on: a multiple of 32.
InputRows part_of(const InputRows& x, int64_t row, int64_t k);

}  // namespace rbee::cpu

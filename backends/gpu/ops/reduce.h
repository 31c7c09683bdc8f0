#pragma once
// reduce.cc, softmax.cc, argsort.cc and top_k.cc

#include "backends/api/args_reduce.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Every plain dtype, any axes, any strides. Deterministic.
extern const Impl<ReduceArgs> reduce;
// Every float dtype, any strides.
extern const Impl<SoftmaxArgs> softmax;
// Every plain dtype, rows of up to 2^30 elements.
extern const Impl<ArgsortArgs> argsort;
// All that the seam promises; any strides.
extern const Impl<TopKArgs> top_k;

}  // namespace rbee::gpu

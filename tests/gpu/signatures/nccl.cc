// Compiles if backends/gpu/ccl_functions.h agrees with nccl.h.

#include <nccl.h>

#include "backends/gpu/ccl_functions.h"
#include "tests/gpu/signatures/same_kind.h"

namespace rbee::gpu {

struct Declared {
#define RB_MEMBER(name, parameters) CclResultOf<struct name>::type(*name) parameters;
  RB_CCL_FUNCTIONS(RB_MEMBER)
#undef RB_MEMBER
};
#define RB_COMPARE(name, parameters) RB_SAME_SIGNATURE(decltype(Declared::name), ::nccl##name);
RB_CCL_FUNCTIONS(RB_COMPARE)
#undef RB_COMPARE

static_assert(sizeof(CclUniqueId) == sizeof(ncclUniqueId));
RB_SAME_VALUE(kCclSuccess, ncclSuccess);
RB_SAME_VALUE(kCclInvalidArgument, ncclInvalidArgument);
RB_SAME_VALUE(kCclInvalidUsage, ncclInvalidUsage);
RB_SAME_VALUE(kCclU8, ncclUint8);
RB_SAME_VALUE(kCclI32, ncclInt32);
RB_SAME_VALUE(kCclF16, ncclFloat16);
RB_SAME_VALUE(kCclF32, ncclFloat32);
RB_SAME_VALUE(kCclBf16, ncclBfloat16);
RB_SAME_VALUE(kCclSum, ncclSum);
static_assert(kCclOldest == NCCL_VERSION(2, 18, 0));

}  // namespace rbee::gpu

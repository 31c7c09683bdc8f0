#pragma once
// The entry points of NCCL that are used (NCCL documentation, "NCCL API"); RCCL exports the same
// names: a prefix, then what stands here. Handles are opaque pointers here; tests/gpu/signatures
// compares the declarations with NCCL's header.

#include <cstddef>

namespace rbee::gpu {

struct CclOpaque;
using CclComm = CclOpaque*;    // ncclComm_t
using CclStream = CclOpaque*;  // cudaStream_t, hipStream_t: what the drivers call a stream

struct CclUniqueId {
  char internal[128];
};

// F(exported name without the prefix, parameters)
#define RB_CCL_FUNCTIONS(F)                                                \
  F(GetVersion, (int*))                                                    \
  F(GetUniqueId, (CclUniqueId*))                                           \
  F(CommInitRank, (CclComm*, int, CclUniqueId, int))                       \
  F(CommAbort, (CclComm))                                                  \
  F(CommGetAsyncError, (CclComm, int*))                                    \
  F(AllReduce, (const void*, void*, size_t, int, int, CclComm, CclStream)) \
  F(AllGather, (const void*, void*, size_t, int, CclComm, CclStream))      \
  F(Broadcast, (const void*, void*, size_t, int, int, CclComm, CclStream)) \
  F(GetErrorString, (int))                                                 \
  F(GetLastError, (CclComm))

// What they return: two of them texts, the others a status, 0 for success.
template <typename Name>
struct CclResultOf {
  using type = int;
};
struct GetErrorString;
struct GetLastError;
template <>
struct CclResultOf<GetErrorString> {
  using type = const char*;
};
template <>
struct CclResultOf<GetLastError> {
  using type = const char*;
};

// Values of NCCL's enumerations.
enum CclStatus : int { kCclSuccess = 0, kCclInvalidArgument = 4, kCclInvalidUsage = 5 };
enum CclType : int { kCclU8 = 1, kCclI32 = 2, kCclF16 = 6, kCclF32 = 7, kCclBf16 = 9 };
inline constexpr int kCclSum = 0;
// 2.18: the first whose version number counts as documented and whose aborts end captured work.
inline constexpr int kCclOldest = 21800;

}  // namespace rbee::gpu

#pragma once
// Every message that is sent to Apple's objects, with the exact types of its method (Apple
// developer documentation, "Metal" and "Foundation"). tests/gpu/signatures/metal.py compares the
// table with Apple's headers. Only numbers, pointers and small plain structures travel: no blocks,
// and no structure as a result.

#include <cstdint>

namespace rbee::metal {

struct Object;
using Id = Object*;  // of any class; also a class itself
struct SelectorData;
using Selector = SelectorData*;

struct MTLSize {
  uint64_t width, height, depth;
};
struct NSRange {
  uint64_t location, length;
};

// F(name here, receiver, selector, result, (parameters)); the receiver of a class's own method has
// a "+" in front.
#define RB_METAL_MESSAGES(F)                                                                       \
  F(device_name, "MTLDevice", "name", Id, ())                                                      \
  F(supports_family, "MTLDevice", "supportsFamily:", bool, (int64_t))                              \
  F(working_set_size, "MTLDevice", "recommendedMaxWorkingSetSize", uint64_t, ())                   \
  F(allocated_size, "MTLDevice", "currentAllocatedSize", uint64_t, ())                             \
  F(max_buffer_length, "MTLDevice", "maxBufferLength", uint64_t, ())                               \
  F(max_threadgroup_memory, "MTLDevice", "maxThreadgroupMemoryLength", uint64_t, ())               \
  F(new_queue, "MTLDevice", "newCommandQueue", Id, ())                                             \
  F(new_buffer, "MTLDevice", "newBufferWithLength:options:", Id, (uint64_t, uint64_t))             \
  F(new_library, "MTLDevice", "newLibraryWithSource:options:error:", Id, (Id, Id, Id*))            \
  F(new_pipeline, "MTLDevice", "newComputePipelineStateWithFunction:error:", Id, (Id, Id*))        \
  F(new_pipeline_from, "MTLDevice",                                                                \
    "newComputePipelineStateWithDescriptor:options:reflection:error:", Id,                         \
    (Id, uint64_t, Id*, Id*))                                                                      \
  F(new_archive, "MTLDevice", "newBinaryArchiveWithDescriptor:error:", Id, (Id, Id*))              \
  F(add_pipeline, "MTLBinaryArchive", "addComputePipelineFunctionsWithDescriptor:error:", bool,    \
    (Id, Id*))                                                                                     \
  F(serialize, "MTLBinaryArchive", "serializeToURL:error:", bool, (Id, Id*))                       \
  F(new_archive_descriptor, "+MTLBinaryArchiveDescriptor", "new", Id, ())                          \
  F(set_url, "MTLBinaryArchiveDescriptor", "setUrl:", void, (Id))                                  \
  F(new_pipeline_descriptor, "+MTLComputePipelineDescriptor", "new", Id, ())                       \
  F(set_compute_function, "MTLComputePipelineDescriptor", "setComputeFunction:", void, (Id))       \
  F(set_archives, "MTLComputePipelineDescriptor", "setBinaryArchives:", void, (Id))                \
  F(file_url, "+NSURL", "fileURLWithPath:", Id, (Id))                                              \
  F(array_of, "+NSArray", "arrayWithObject:", Id, (Id))                                            \
  F(new_shared_event, "MTLDevice", "newSharedEvent", Id, ())                                       \
  F(contents, "MTLBuffer", "contents", void*, ())                                                  \
  F(gpu_address, "MTLBuffer", "gpuAddress", uint64_t, ())                                          \
  F(new_function, "MTLLibrary", "newFunctionWithName:", Id, (Id))                                  \
  F(max_threads, "MTLComputePipelineState", "maxTotalThreadsPerThreadgroup", uint64_t, ())         \
  F(execution_width, "MTLComputePipelineState", "threadExecutionWidth", uint64_t, ())              \
  F(static_memory, "MTLComputePipelineState", "staticThreadgroupMemoryLength", uint64_t, ())       \
  F(command_buffer, "MTLCommandQueue", "commandBuffer", Id, ())                                    \
  F(compute_encoder, "MTLCommandBuffer", "computeCommandEncoder", Id, ())                          \
  F(blit_encoder, "MTLCommandBuffer", "blitCommandEncoder", Id, ())                                \
  F(encode_signal, "MTLCommandBuffer", "encodeSignalEvent:value:", void, (Id, uint64_t))           \
  F(encode_wait, "MTLCommandBuffer", "encodeWaitForEvent:value:", void, (Id, uint64_t))            \
  F(commit, "MTLCommandBuffer", "commit", void, ())                                                \
  F(wait_until_completed, "MTLCommandBuffer", "waitUntilCompleted", void, ())                      \
  F(status, "MTLCommandBuffer", "status", uint64_t, ())                                            \
  F(error, "MTLCommandBuffer", "error", Id, ())                                                    \
  F(gpu_end_time, "MTLCommandBuffer", "GPUEndTime", double, ())                                    \
  F(end_encoding, "MTLCommandEncoder", "endEncoding", void, ())                                    \
  F(set_pipeline, "MTLComputeCommandEncoder", "setComputePipelineState:", void, (Id))              \
  F(set_bytes, "MTLComputeCommandEncoder", "setBytes:length:atIndex:", void,                       \
    (const void*, uint64_t, uint64_t))                                                             \
  F(set_threadgroup_memory, "MTLComputeCommandEncoder",                                            \
    "setThreadgroupMemoryLength:atIndex:", void, (uint64_t, uint64_t))                             \
  F(use_resources, "MTLComputeCommandEncoder", "useResources:count:usage:", void,                  \
    (const Id*, uint64_t, uint64_t))                                                               \
  F(dispatch, "MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:", void,     \
    (MTLSize, MTLSize))                                                                            \
  F(copy_buffer, "MTLBlitCommandEncoder",                                                          \
    "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", void,                          \
    (Id, uint64_t, Id, uint64_t, uint64_t))                                                        \
  F(fill_buffer, "MTLBlitCommandEncoder", "fillBuffer:range:value:", void, (Id, NSRange, uint8_t)) \
  F(new_options, "+MTLCompileOptions", "new", Id, ())                                              \
  F(set_language, "MTLCompileOptions", "setLanguageVersion:", void, (uint64_t))                    \
  F(set_fast_math, "MTLCompileOptions", "setFastMathEnabled:", void, (bool))                       \
  F(string_from, "+NSString", "stringWithUTF8String:", Id, (const char*))                          \
  F(string_text, "NSString", "UTF8String", const char*, ())                                        \
  F(error_text, "NSError", "localizedDescription", Id, ())                                         \
  F(error_code, "NSError", "code", int64_t, ())                                                    \
  F(array_count, "NSArray", "count", uint64_t, ())                                                 \
  F(array_at, "NSArray", "objectAtIndex:", Id, (uint64_t))                                         \
  F(process_info, "+NSProcessInfo", "processInfo", Id, ())                                         \
  F(system_version, "NSProcessInfo", "operatingSystemVersionString", Id, ())

enum class MetalMessage : uint8_t {
#define RB_NAME(name, receiver, selector, result, parameters) name,
  RB_METAL_MESSAGES(RB_NAME)
#undef RB_NAME
      count
};

// The texts of the selectors, by MetalMessage.
inline constexpr const char* kSelectors[] = {
#define RB_TEXT(name, receiver, selector, result, parameters) selector,
    RB_METAL_MESSAGES(RB_TEXT)
#undef RB_TEXT
};

constexpr const char* selector_of(MetalMessage message) {
  return kSelectors[static_cast<int>(message)];
}

// The method behind a message, as a function: the receiver and the selector come first.
template <typename Signature>
struct Method;
template <typename Result, typename... Parameters>
struct Method<Result(Parameters...)> {
  using Returns = Result;
  using Function = Result (*)(Id, Selector, Parameters...);
};

template <MetalMessage message>
struct MethodOf;
#define RB_METHOD(name, receiver, selector, result, parameters) \
  template <>                                                   \
  struct MethodOf<MetalMessage::name> : Method<result parameters> {};
RB_METAL_MESSAGES(RB_METHOD)
#undef RB_METHOD

// Values of Apple's enumerations, whose names stand behind them.
inline constexpr int64_t kFamilyMetal3 = 5001;     // MTLGPUFamilyMetal3: macOS 13
inline constexpr int64_t kFamilyApple7 = 1007;     // MTLGPUFamilyApple7: M1, then one a generation
inline constexpr int64_t kFamilyApple10 = 1010;    // MTLGPUFamilyApple10
inline constexpr uint64_t kLanguage3_0 = 196608;   // MTLLanguageVersion3_0
inline constexpr uint64_t kUsageReadWrite = 3;     // MTLResourceUsageRead, MTLResourceUsageWrite
inline constexpr uint64_t kStorageModeShared = 0;  // MTLResourceStorageModeShared
inline constexpr uint64_t kFailOnArchiveMiss = 4;  // MTLPipelineOptionFailOnBinaryArchiveMiss
inline constexpr uint64_t kStatusCompleted = 4;    // MTLCommandBufferStatusCompleted
inline constexpr uint64_t kStatusError = 5;        // MTLCommandBufferStatusError

}  // namespace rbee::metal

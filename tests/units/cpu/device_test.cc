#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "backends/api/kernel_table.h"
#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/workspace.h"
#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

Device& cpu() {
  register_backend(cpu_backend());
  return get_device({DeviceKind::cpu, 0});
}

TEST(CpuDevice, IsTheOnlyOneOfItsKind) {
  EXPECT_EQ(cpu_backend().device_count(), 1);
  EXPECT_EQ(cpu_backend().unavailable_reason(), "");
  EXPECT_EQ(&cpu(), &cpu());
  EXPECT_THROW(get_device({DeviceKind::cpu, 1}), Error);
  EXPECT_THROW(get_device({DeviceKind::cuda, 0}), Error);
}

TEST(CpuDevice, TellsWhatItIs) {
  EXPECT_NE(cpu().description().find(" thread"), std::string::npos);
  const MemoryInfo memory = cpu().memory();
  EXPECT_GT(memory.total, 0);
  EXPECT_GT(memory.free, 0);
  EXPECT_LE(memory.free, memory.total);
  EXPECT_TRUE(cpu().host_accessible());
}

TEST(CpuDevice, CopiesAndFills) {
  Stream& stream = cpu().default_stream();
  auto* data = static_cast<char*>(cpu().allocate(6, stream));
  cpu().copy(data, "hello", 6, CopyKind::host_to_device, stream);
  EXPECT_STREQ(data, "hello");
  cpu().fill_bytes(data, 'x', 5, stream);
  EXPECT_STREQ(data, "xxxxx");
  cpu().copy(nullptr, nullptr, 0, CopyKind::device_to_device, stream);
  cpu().free(data, 6, stream);
  cpu().free(nullptr, 0, stream);
}

TEST(CpuDevice, KeepsNothingThatWasFreedWhenItIsTrimmed) {
  constexpr size_t kBytes = size_t{32} << 20;
  const CachingAllocator& allocator = static_cast<CpuDevice&>(cpu()).allocator();
  Stream& stream = cpu().default_stream();
  cpu().free(cpu().allocate(kBytes, stream), kBytes, stream);
  EXPECT_GE(allocator.stats().cached, kBytes);
  trim_memory();
  EXPECT_EQ(allocator.stats().cached, 0u);
}

TEST(CpuDevice, EventsAreImmediateAndCaptureIsRefused) {
  Stream stream = cpu().create_stream();
  void* event = cpu().create_event();
  cpu().record_event(event, stream);
  cpu().wait_event(event, stream);
  cpu().destroy_event(event);
  cpu().synchronize(stream);
  EXPECT_FALSE(cpu().supports_capture());
  EXPECT_EQ(cpu().capture_refusal(), "a CPU runs steps as they are queued");
  EXPECT_THROW(cpu().begin_capture(stream), Error);
  EXPECT_THROW(cpu().end_capture(stream), Error);
  EXPECT_THROW(cpu().launch_capture(nullptr, stream), Error);
  cpu().destroy_capture(nullptr);
  cpu().destroy_stream(stream);
}

TEST(CpuDevice, EverySlotIsFilled) {
  const KernelTable& t = cpu().kernels();
  const bool filled[] = {
      !t.affine.empty(),
      !t.unary.empty(),
      !t.binary.empty(),
      !t.compare.empty(),
      !t.where.empty(),
      !t.cast.empty(),
      !t.copy.empty(),
      !t.copy2d.empty(),
      !t.fill.empty(),
      !t.gated.empty(),
      !t.reduce.empty(),
      !t.softmax.empty(),
      !t.argsort.empty(),
      !t.top_k.empty(),
      !t.rms_norm.empty(),
      !t.add_rms_norm.empty(),
      !t.layer_norm.empty(),
      !t.group_norm.empty(),
      !t.conv1d.empty(),
      !t.conv2d.empty(),
      !t.conv_transpose1d.empty(),
      !t.conv_transpose2d.empty(),
      !t.im2col.empty(),
      !t.col2im1d.empty(),
      !t.pool2d.empty(),
      !t.upsample.empty(),
      !t.image_conv.empty(),
      !t.image_group_norm.empty(),
      !t.gather.empty(),
      !t.scatter.empty(),
      !t.index_select.empty(),
      !t.index_add.empty(),
      !t.embedding.empty(),
      !t.matmul.empty(),
      !t.linear.empty(),
      !t.pack_weight.empty(),
      !t.rope.empty(),
      !t.attention.empty(),
      !t.paged_attention.empty(),
      !t.kv_append.empty(),
      !t.rope_append.empty(),
      !t.qkv_append.empty(),
      !t.random.empty(),
      t.plan_packing != nullptr,
  };
  for (size_t i = 0; i < std::size(filled); ++i) EXPECT_TRUE(filled[i]) << "slot " << i;
}

TEST(Workspace, GrowsAndStaysAligned) {
  std::byte* first = thread_workspace(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(thread_workspace(50), first);
  std::byte* large = thread_workspace(1 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 64, 0u);
  std::memset(large, 1, 1 << 20);
  EXPECT_EQ(thread_workspace(1 << 20), large);
}

TEST(SetThreadCount, ChecksItsRange) {
  EXPECT_THROW(set_thread_count(-1), Error);
  EXPECT_THROW(set_thread_count(1025), Error);
}

}  // namespace
}  // namespace rbee::cpu

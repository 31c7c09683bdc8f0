#include "backends/cpu/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/peak.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Topology, CpuLists) {
  EXPECT_THAT(parse_cpu_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("x"), IsEmpty());
  EXPECT_THAT(parse_cpu_list("1,2;3"), ElementsAre(1, 2));
  EXPECT_THAT(parse_cpu_list("7-3"), IsEmpty());
  EXPECT_THAT(parse_cpu_list("0-99999999"), IsEmpty());
}

TEST(Topology, EachProcessorBelongsToOneCore) {
  std::set<int> seen;
  for (const std::vector<int>& core : physical_cores()) {
    ASSERT_FALSE(core.empty());
    for (int cpu : core) EXPECT_TRUE(seen.insert(cpu).second) << cpu;
  }
  EXPECT_GE(default_thread_count(), 1);
  EXPECT_LE(default_thread_count(), static_cast<int>(seen.size()));
  EXPECT_FALSE(processor_name().empty());
}

TEST(CpuFeatures, TheEnvironmentOnlyLowersTheLevel) {
  EXPECT_LE(cpu_isa(), detect_isa());
  EXPECT_EQ(missing_isa(Isa::portable), nullptr);
  EXPECT_EQ(missing_isa(cpu_isa()), nullptr);
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512bf16, Isa::amx}) {
    EXPECT_EQ(missing_isa(isa) == nullptr, isa <= cpu_isa()) << name(isa);
  }
}

TEST(Peak, TheUnitsOfThisProcessorAreMeasured) {
  const Peak peak = measure_peak(1, 0.002);
  EXPECT_GT(peak.read_bytes_per_second, 1e8);
  EXPECT_GT(peak.f32_flops, 1e8);
  EXPECT_GT(measure_read(1, 1000), 1e8);  // below one line of each stream
  EXPECT_GT(measure_read(2, 1 << 20), 1e8);
  EXPECT_EQ(peak.int8_ops > 0, detect_isa() >= Isa::avx2);
  EXPECT_EQ(peak.bf16_flops > 0, detect_isa() >= Isa::avx512bf16);
}

}  // namespace
}  // namespace rbee::cpu

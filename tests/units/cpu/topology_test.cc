#include "backends/cpu/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "backends/cpu/control_groups.h"
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

// A cgroup tree as the kernel presents it.
class GroupFiles {
 public:
  explicit GroupFiles(const std::string& own_group) { write("proc/self/cgroup", own_group); }
  ~GroupFiles() { std::filesystem::remove_all(root_); }
  GroupFiles(const GroupFiles&) = delete;
  GroupFiles& operator=(const GroupFiles&) = delete;

  GroupFiles& write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << '\n';
    return *this;
  }
  ControlGroups groups() const { return ControlGroups(root_); }

 private:
  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("groups-" + std::to_string(getpid()));
};

TEST(ControlGroups, TheTightestOfThoseAboveCounts) {
  GroupFiles files("12:cpu:/elsewhere\n0::/system.slice/a.service");
  const std::string folder = "sys/fs/cgroup/system.slice/";
  EXPECT_EQ(files.groups().processors(), 0);
  EXPECT_FALSE(files.groups().memory());
  files.write(folder + "a.service/cpu.max", "max 100000")
      .write(folder + "cpu.max", "250000 100000");
  EXPECT_EQ(files.groups().processors(), 3);
  files.write(folder + "a.service/cpu.max", "150000 100000");
  EXPECT_EQ(files.groups().processors(), 2);
  files.write(folder + "memory.max", "9000").write(folder + "memory.current", "4000");
  files.write(folder + "a.service/memory.max", "max");
  files.write(folder + "a.service/memory.current", "1000");
  ASSERT_TRUE(files.groups().memory());
  EXPECT_EQ(files.groups().memory()->limit, 9000);
  EXPECT_EQ(files.groups().memory()->free, 5000);
  files.write(folder + "a.service/memory.max", "900");
  EXPECT_EQ(files.groups().memory()->limit, 900);
  EXPECT_EQ(files.groups().memory()->free, 0);
}

// The name is the host's; the folders are the container's.
TEST(ControlGroups, OfAContainerAreAtTheRoot) {
  for (const char* own : {"0::/", "0::/docker/abc"}) {
    GroupFiles files(own);
    files.write("sys/fs/cgroup/cpu.max", "100000 100000");
    EXPECT_EQ(files.groups().processors(), 1) << own;
  }
}

// CTest runs this with the machine's own level and with RBEE_CPU_ISA at several levels.
TEST(CpuFeatures, TheEnvironmentLowersTheLevel) {
  const IsaSet supported = supported_isas();
  Isa wanted = Isa::i8mm;  // above all others
  const char* text = std::getenv("RBEE_CPU_ISA");
  for (const Isa isa : kIsas) {
    if (text != nullptr && name(isa) == text) wanted = isa;
  }
  EXPECT_EQ(cpu_isa(), supported.highest(wanted));
  for (const Isa isa : kIsas) {
    EXPECT_EQ(missing_isa(isa) == nullptr, isa <= cpu_isa() && supported.has(isa)) << name(isa);
  }
}

#if defined(__linux__) && defined(__x86_64__)
// The kernel's flags of the first processor.
TEST(CpuFeatures, LevelsAreThoseThatTheSystemLists) {
  std::ifstream in("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; flags.empty() && std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (words >> word && word == "flags")
      flags.insert(std::istream_iterator<std::string>(words), {});
  }
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo has no flags";
  const auto all = [&](std::initializer_list<const char*> wanted) {
    return std::ranges::all_of(wanted, [&](const char* flag) { return flags.contains(flag); });
  };
  const bool avx2 = all({"avx2", "fma", "f16c"});
  const bool avx512 = avx2 && all({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"});
  const IsaSet found = supported_isas();
  EXPECT_EQ(found.has(Isa::avx2), avx2);
  EXPECT_EQ(found.has(Isa::avxvnni), avx2 && all({"avx_vnni"}));
  EXPECT_EQ(found.has(Isa::avx512), avx512);
  EXPECT_EQ(found.has(Isa::avx512bf16), avx512 && all({"avx512_bf16"}));
  const bool tiles = all({"amx_tile", "amx_int8", "amx_bf16"});
  EXPECT_TRUE(!found.has(Isa::amx) || tiles);  // a sandbox may refuse it
}
#endif

[[maybe_unused]] IsaSet set_of(std::initializer_list<Isa> isas) {
  IsaSet set;
  for (const Isa isa : isas) set.add(isa);
  return set;
}

#ifdef __x86_64__
TEST(CpuFeatures, VnniWithAvx512DoesNotMeanAvxVnni) {
  const IsaSet zen4 = set_of({Isa::avx2, Isa::avx512, Isa::avx512bf16});
  EXPECT_EQ(zen4.highest(), Isa::avx512bf16);
  EXPECT_EQ(zen4.highest(Isa::avxvnni), Isa::avx2);
  const IsaSet alder_lake = set_of({Isa::avx2, Isa::avxvnni});
  EXPECT_EQ(alder_lake.highest(), Isa::avxvnni);
  EXPECT_EQ(alder_lake.highest(Isa::avx512), Isa::avxvnni);
  EXPECT_EQ(alder_lake.highest(Isa::avx2), Isa::avx2);
  EXPECT_EQ(IsaSet().highest(), Isa::portable);
}
#endif

#ifdef __aarch64__
// Of the processors that tests/arm64 names: what each has, as its manual says. Their kernels would
// end in SIGILL on one that lacks an instruction.
TEST(CpuFeatures, OfTheProcessorThatQemuShows) {
  const char* processor = std::getenv("RBEE_TEST_ARM_CPU");
  if (processor == nullptr) GTEST_SKIP() << "RBEE_TEST_ARM_CPU names none";
  const std::map<std::string, Isa> best{{"cortex-a72", Isa::neon},
                                        {"cortex-a76", Isa::dotprod},
                                        {"neoverse-n1", Isa::dotprod},
                                        {"max,sve=off", Isa::i8mm},
                                        {"max", Isa::i8mm}};
  EXPECT_EQ(supported_isas().highest(), best.at(processor));
}

TEST(CpuFeatures, LevelsOfArm) {
  const IsaSet a76 = set_of({Isa::neon, Isa::dotprod});
  EXPECT_EQ(a76.highest(), Isa::dotprod);
  EXPECT_EQ(a76.highest(Isa::neon), Isa::neon);
  EXPECT_EQ(a76.highest(Isa::portable), Isa::portable);
  EXPECT_TRUE(supported_isas().has(Isa::neon));
}
#endif

TEST(Peak, TheUnitsOfThisProcessorAreMeasured) {
  const Peak peak = measure_peak(1, 0.002);
  EXPECT_GT(peak.read_bytes_per_second, 1e8);
  EXPECT_GT(peak.f32_flops, 1e8);
  EXPECT_GT(measure_read(1, 1000), 1e6);  // less than one line per stream
  EXPECT_GT(measure_read(2, 1 << 20), 1e8);
  const auto usable = [](Isa isa) { return missing_isa(isa) == nullptr; };
#ifdef __aarch64__
  EXPECT_EQ(peak.int8_ops > 0, usable(Isa::neon));
  EXPECT_EQ(peak.bf16_flops > 0, usable(Isa::i8mm));
#else
  EXPECT_EQ(peak.int8_ops > 0, usable(Isa::avx2));
  EXPECT_EQ(peak.bf16_flops > 0, usable(Isa::avx512bf16));
#endif
}

}  // namespace
}  // namespace rbee::cpu

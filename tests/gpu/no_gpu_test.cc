// The messages of AMD's driver if its runtime finds no GPU.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backends/rocm/hip_driver.h"

namespace rbee::rocm {
namespace {

using ::testing::HasSubstr;

class NoGpu : public ::testing::Test {
 protected:
  ~NoGpu() override { std::filesystem::remove(node_); }
  std::string reason() const { return why_no_gpu(node_.c_str()); }

  std::string node_ = ::testing::TempDir() + "kfd." + std::to_string(getpid());
};

TEST_F(NoGpu, WithoutTheKernelsDriver) {
  EXPECT_EQ(reason(),
            "there is no " + node_ + ": load the amdgpu driver, or give it to the container");
}

TEST_F(NoGpu, ForAUserWhoMayNotOpenIt) {
  std::ofstream(node_).close();
  std::filesystem::permissions(node_, std::filesystem::perms::none);
  const bool root = geteuid() == 0;
  if (root) ASSERT_EQ(seteuid(65534), 0);  // root may open everything
  const std::string seen = reason();
  if (root) ASSERT_EQ(seteuid(0), 0);
  EXPECT_THAT(seen, HasSubstr("this user may not open " + node_));
}

TEST_F(NoGpu, ForAUserWhoMayOpenIt) {
  std::ofstream(node_).close();
  EXPECT_THAT(reason(), HasSubstr("is the runtime older than the card"));
}

}  // namespace
}  // namespace rbee::rocm

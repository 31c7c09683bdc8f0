// The files by which ranks say what they do.
#include "rbee/group/rank_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "rbee/core/cat.h"

namespace rbee::group {
namespace {

namespace fs = std::filesystem;

class Ranks : public ::testing::Test {
 protected:
  ~Ranks() override { fs::remove_all(folder_); }

  const fs::path folder_ = fs::temp_directory_path() / cat("rbee-rank-state-test-", getpid());
};

TEST_F(Ranks, SayWhatTheyDoAndAreGoneWithTheirProcess) {
  EXPECT_TRUE(ranks_here(folder_).empty());
  auto state = std::make_unique<RankState>(2, 4, folder_);
  for (const RankPhase phase : {RankPhase::waits, RankPhase::loading, RankPhase::follows}) {
    state->set(phase);
    const std::vector<RankReport> found = ranks_here(folder_);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].process, getpid());
    EXPECT_EQ(found[0].rank, 2);
    EXPECT_EQ(found[0].ranks, 4);
    EXPECT_EQ(found[0].phase, phase);
    EXPECT_FALSE(found[0].stopped);
  }
  state.reset();
  EXPECT_TRUE(ranks_here(folder_).empty());
}

TEST_F(Ranks, ThatAreStoppedOrKilledAreTold) {
  const RankState own(1, 3, folder_);
  const pid_t child = fork();
  if (child == 0) {
    const RankState state(2, 3, folder_);
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  std::vector<RankReport> found = ranks_here(folder_);
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[1].rank, 2);
  EXPECT_TRUE(found[1].stopped);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  found = ranks_here(folder_);
  ASSERT_EQ(found.size(), 1);
  EXPECT_FALSE(fs::exists(folder_ / std::to_string(child)));
}

TEST_F(Ranks, AFolderThatOthersMayEnterIsNotUsed) {
  fs::create_directory(folder_);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const RankState state(1, 2, folder_);
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_TRUE(ranks_here(folder_).empty());
}

}  // namespace
}  // namespace rbee::group

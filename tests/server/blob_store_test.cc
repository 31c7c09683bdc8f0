// Files that clients upload, on the disk.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/blob_store.h"
#include "cli/work_folder.h"
#include "rbee/core/error.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using tools::BlobStore;
using tools::WorkFolder;

// printf abc | sha256sum
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class BlobStoreTest : public ::testing::Test {
 protected:
  BlobStoreTest() { fs::remove_all(folder_); }
  ~BlobStoreTest() override { fs::remove_all(folder_); }

  size_t unfinished() const {
    std::error_code error;
    const fs::directory_iterator all(store_.work(), error);
    return error ? 0 : static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / cat("blobs-", getpid());
  BlobStore store_{folder_};
};

TEST_F(BlobStoreTest, KeepsWhatHasTheSum) {
  EXPECT_FALSE(store_.has(kAbc));
  auto upload = store_.upload(kAbc, 3);
  upload->write("a");
  upload->write("bc");
  EXPECT_EQ(unfinished(), 1U);
  EXPECT_FALSE(store_.has(kAbc));
  upload->keep();
  upload.reset();
  EXPECT_TRUE(store_.touch(kAbc));
  EXPECT_EQ(fs::file_size(store_.path_of(kAbc)), 3U);
  EXPECT_EQ(unfinished(), 0U);
  EXPECT_TRUE(store_.remove(kAbc));
  EXPECT_FALSE(store_.touch(kAbc));
}

TEST_F(BlobStoreTest, LeavesNothingOfOthers) {
  auto wrong = store_.upload(kAbc, std::nullopt);
  wrong->write("abd");
  EXPECT_THROW(wrong->keep(), Error);
  wrong.reset();
  auto cut = store_.upload(kAbc, 3);
  cut->write("ab");
  cut.reset();
  EXPECT_FALSE(store_.has(kAbc));
  EXPECT_EQ(unfinished(), 0U);
}

// More than any disk has; what was announced counts until it is written.
TEST_F(BlobStoreTest, AsksForRoomBefore) {
  EXPECT_THROW((void)store_.upload(kAbc, int64_t{1} << 60), server::NoRoom);
  const auto free = static_cast<int64_t>(fs::space(fs::path(::testing::TempDir())).available);
  const int64_t most = free / 4 * 3;
  auto first = store_.upload(kAbc, most);
  EXPECT_THROW((void)store_.upload(kAbc, most), server::NoRoom);
  first.reset();
  EXPECT_NO_THROW((void)store_.upload(kAbc, most));
}

TEST_F(BlobStoreTest, RemovesOldOnesThatNobodyUses) {
  for (const char* name : {"old", "new", "used"}) {
    fs::create_directories(folder_);
    std::ofstream(store_.path_of(name)) << name;
  }
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(25);
  fs::last_write_time(store_.path_of("old"), long_ago);
  fs::last_write_time(store_.path_of("used"), long_ago);
  store_.remove_unused([](const std::string& digest) { return digest == "used"; });
  EXPECT_FALSE(store_.has("old"));
  EXPECT_TRUE(store_.has("new"));
  EXPECT_TRUE(store_.has("used"));
}

// One process is killed, the other one lives.
TEST_F(BlobStoreTest, SweepsWhatKilledProcessesLeft) {
  const pid_t child = fork();
  if (child == 0) {
    const WorkFolder folder(store_.work());
    std::ofstream(folder.path() / "file") << "a";
    _exit(0);  // without the destructor
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const WorkFolder ours(store_.work());
  EXPECT_EQ(unfinished(), 2U);
  WorkFolder::sweep(store_.work());
  EXPECT_EQ(unfinished(), 2U);  // they may be made just now
  for (const auto& entry : fs::directory_iterator(store_.work())) {
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  WorkFolder::sweep(store_.work());
  EXPECT_EQ(unfinished(), 1U);
  EXPECT_TRUE(fs::exists(ours.path()));
}

}  // namespace
}  // namespace rbee::testing

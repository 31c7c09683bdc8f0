#include "rbee/core/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "rbee/core/error.h"

namespace rbee {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::StartsWith;

class InputFileTest : public testing::Test {
 protected:
  InputFileTest() {
    std::string name = (fs::temp_directory_path() / "rbee-core-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~InputFileTest() override { fs::remove_all(folder_); }

  fs::path path(const char* name) const { return folder_ / name; }
  fs::path write(const char* name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

 private:
  fs::path folder_;
};

struct Refusal {
  std::string code;
  std::string text;
};

Refusal refusal(const fs::path& path, uint64_t limit = kMaxTextFile) {
  try {
    read_file(path, limit);
  } catch (const Error& error) {
    return {std::string(name(error.code())), error.what()};
  }
  return {};
}

TEST_F(InputFileTest, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", path("link"));
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, path("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::pair<fs::path, const char*> cases[] = {
      {path("fifo"), "fifo: a FIFO, not a file"},
      {path("link"), "link: a FIFO, not a file"},
      {path("socket"), "socket: a socket, not a file"},
      {path(""), ": a folder, not a file"},
      {"/dev/null", "/dev/null: a device, not a file"}};
  for (const auto& [what, text] : cases) {
    EXPECT_THAT(refusal(what).text, EndsWith(text));
    EXPECT_EQ(refusal(what).code, "io") << what;
  }
  ::close(listener);
}

TEST_F(InputFileTest, MissingFilesAreNotFound) {
  EXPECT_EQ(refusal(path("none")).code, "not_found");
  EXPECT_EQ(refusal(write("file", "") / "below").code, "not_found");
  EXPECT_THAT(refusal(path("none")).text, EndsWith("none: cannot be opened: No such file or "
                                                   "directory"));
}

TEST_F(InputFileTest, ReadsTheWholeFile) {
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(read_file(write("large", large)), large);
  EXPECT_EQ(read_file(write("empty", "")), "");
  // Its size is unknown before it is read.
  EXPECT_THAT(read_file("/proc/self/status"), StartsWith("Name:"));
}

TEST_F(InputFileTest, LargerOnesThanAllowedAreRefused) {
  const fs::path file = write("file", "12345");
  EXPECT_EQ(read_file(file, 5), "12345");
  EXPECT_EQ(refusal(file, 4).code, "invalid_argument");
  EXPECT_THAT(refusal(file, 4).text, EndsWith("its 5 bytes are more than the 4 allowed"));
  EXPECT_THAT(refusal("/proc/self/status", 4).text, EndsWith("more than the 4 bytes allowed"));
}

}  // namespace
}  // namespace rbee

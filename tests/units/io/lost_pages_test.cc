// Mapped files that another process truncates while they are read.

#include "rbee/io/lost_pages.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "rbee/io/mapped_file.h"
#include "rbee/io/output_file.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

using testing::ExitedWithCode;
using testing::MatchesRegex;

constexpr size_t kBytes = size_t{1} << 20;

class LostPages : public ScratchFolder {
 protected:
  std::shared_ptr<const MappedFile> cut_file(const char* name) const {
    auto file = MappedFile::open(write(name, std::string(kBytes, 'x')));
    std::filesystem::resize_file(path(name), 1000);
    return file;
  }
};

void report_and_exit(const char* file) {
  std::fprintf(stderr, "lost %s\n", file);
  ::_exit(3);
}

std::byte last_byte(const MappedFile& file) {
  return static_cast<const volatile std::byte*>(file.bytes().data())[kBytes - 1];
}

TEST_F(LostPages, AreOfTheFileThatIsNamed) {
  const auto file = cut_file("model\x1b[31m.gguf");
  EXPECT_EXIT(
      {
        handle_lost_pages(report_and_exit);
        last_byte(*file);
      },
      ExitedWithCode(3), MatchesRegex("lost [^\n]*/model\\\\x1b\\[31m.gguf\n"));
}

TEST_F(LostPages, TakeUnfinishedFilesAlong) {
  const auto file = cut_file("in");
  const auto empty = MappedFile::open(write("empty", ""));
  const auto quantize = [&](auto work) {
    handle_lost_pages(report_and_exit);
    OutputFile done(path("done"));
    done.finish();
    OutputFile out(path("out"));
    work(out);
  };
  const testing::Matcher<const std::string&> names_it = MatchesRegex("lost [^\n]*/in\n");
  EXPECT_EXIT(quantize([&](OutputFile&) { last_byte(*file); }), ExitedWithCode(3), names_it);
  EXPECT_THAT(files(), testing::ElementsAre("done", "empty", "in"));
  // The system's write() reads the pages itself and says "bad address".
  EXPECT_EXIT(quantize([&](OutputFile& out) { out.write(file->bytes()); }), ExitedWithCode(3),
              names_it);
  EXPECT_THAT(files(), testing::ElementsAre("done", "empty", "in"));
}

TEST_F(LostPages, OfManyFilesTheRightOneIsNamed) {
  std::vector<std::shared_ptr<const MappedFile>> others;
  for (int i = 0; i < 100; ++i) others.push_back(MappedFile::open(write(cat("f", i), "bytes")));
  const auto file = cut_file("cut");
  others.clear();
  others.push_back(MappedFile::open(path("f1")));
  EXPECT_EXIT(
      {
        handle_lost_pages(report_and_exit);
        last_byte(*file);
      },
      ExitedWithCode(3), "lost .*/cut\n");
}

// A bus error in memory that is not a MappedFile.
void raise_bus_error(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto* bytes =
      static_cast<const volatile char*>(::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file, 0));
  [[maybe_unused]] const char last = bytes[kBytes - 1];
}

TEST_F(LostPages, OtherBusErrorsGoWhereTheyWent) {
  write("small", "bytes");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, [](int) { ::_exit(7); });
        handle_lost_pages(report_and_exit);
        handle_lost_pages(report_and_exit);
        raise_bus_error(path("small"));
      },
      ExitedWithCode(7), "");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        handle_lost_pages(report_and_exit);
        raise_bus_error(path("small"));
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace rbee::io::test

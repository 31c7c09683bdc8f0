// The workers that `rbee` holds: by a link's name, by a command, and names that are not built.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rbee/core/cat.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/server/front_harness.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const fs::path kFolder = fs::path(RBEE).parent_path();

struct Output {
  int status;
  std::string text;
  bool operator==(const Output&) const = default;
};

Output run(const fs::path& program, const std::vector<std::string>& arguments) {
  Process process(program.string(), arguments);
  const int status = process.wait();
  return {status, process.text()};
}

TEST(Programs, ALinkAndACommandAreTheSameWorker) {
  for (const std::string name : {"llm-worker-rbee-cpu", "sd-worker-cpu"}) {
    const Output version = run(kFolder / name, {"--version"});
    EXPECT_EQ(version.status, 0);
    EXPECT_THAT(version.text, StartsWith(name + " "));
    for (const char* flag : {"--version", "--help", "--port=many"}) {
      const Output link = run(kFolder / name, {flag});
      EXPECT_EQ(link.status, std::string_view(flag) == "--port=many" ? 2 : 0) << link.text;
      EXPECT_EQ(run(RBEE, {name, flag}), link) << name << " " << flag;
    }
    EXPECT_THAT(run(RBEE, {"--help"}).text, HasSubstr("\n  " + name));
  }
}

TEST(Programs, TheLinksAreRelativeAndWorkWhereTheFolderIsMoved) {
  for (const char* name : {"llm-worker-rbee-cpu", "sd-worker-cpu"}) {
    EXPECT_EQ(fs::read_symlink(kFolder / name), "rbee");
  }
  const Folder folder;
  const fs::path before = folder.path() / "before", after = folder.path() / "after";
  fs::create_directory(before);
  fs::create_symlink(RBEE, before / "rbee");
  fs::copy_symlink(kFolder / "sd-worker-cpu", before / "sd-worker-cpu");
  fs::rename(before, after);
  EXPECT_THAT(run(after / "sd-worker-cpu", {"--version"}).text, StartsWith("sd-worker-cpu "));
}

TEST(Programs, HaveTheCommandsAndFlagsThatDocumentsShow) {
  const Output checked = run(COMMANDS, {RBEE});
  EXPECT_EQ(checked.status, 0) << checked.text;
}

// Of a device that this build is not for; of a build for all there is none.
TEST(Programs, AWorkerThatIsNotBuiltEndsWithOneLine) {
  const Folder folder;
  for (const std::string device : {"cuda", "rocm", "metal"}) {
    const std::string name = "llm-worker-rbee-" + device;
    if (fs::exists(kFolder / name)) continue;
    const Output command = run(RBEE, {name, "--version"});
    EXPECT_EQ(command.status, 2);
    EXPECT_THAT(command.text, AllOf(StartsWith(cat("rbee: ", name,
                                                   " is not in this build, which "
                                                   "has: llm-worker-rbee-cpu, ")),
                                    EndsWith("\n")));
    EXPECT_EQ(std::ranges::count(command.text, '\n'), 1);
    fs::create_symlink(RBEE, folder.path() / name);
    EXPECT_EQ(run(folder.path() / name, {"--version"}), command);
    const Output serve = run(RBEE, {"serve", "--model", "any", "--device", device});
    EXPECT_EQ(serve.status, 1);
    EXPECT_THAT(serve.text, HasSubstr(cat("model any: ", name, " is not in this build")));
    EXPECT_EQ(run(RBEE, {"serve", "--model", "any", "--device", device + ":1"}).text, serve.text);
  }
}

TEST(Programs, ServeTakesNoOtherDevices) {
  for (const char* device : {"gpu", "metal:", "cuda:x", "cuda:-1", "cuda:1024", "cpu:0 "}) {
    const Output serve = run(RBEE, {"serve", "--model", "any", cat("--device=", device)});
    EXPECT_EQ(serve.status, 1) << device;
    EXPECT_THAT(serve.text,
                HasSubstr(cat("--device: '", device, "' is none of cpu, cuda, rocm, metal")))
        << device;
  }
}

TEST(Programs, ServeNamesThatRequestsCanAskFor) {
  for (const char* flag : {"--name=a b", "--worker-flag=--lora=a b=/p"}) {
    const Output serve = run(RBEE, {"serve", "--model", "any", flag});
    EXPECT_NE(serve.status, 0) << flag;
    EXPECT_THAT(serve.text, HasSubstr("'a b' must be 1 to 128 printable ASCII")) << flag;
  }
}

TEST(Programs, AnotherNameIsTheCommandLine) {
  const Folder folder;
  fs::create_symlink(RBEE, folder.path() / "bee");
  EXPECT_THAT(run(folder.path() / "bee", {"--version"}).text, StartsWith("rbee "));
}

std::string mapped_files(const std::string& process) {
  std::ostringstream out;
  out << std::ifstream("/proc/" + process + "/maps").rdbuf();
  return out.str();
}

TEST(Programs, TheFrontStartsItsOwnProgramAndACpuWorkerOpensNoGpuLibrary) {
  const test::ModelFolder model(test::data_folder());
  const std::string emoji =
      (fs::path(test::data_folder()).parent_path() / "models/tiny-emoji").string();
  Front front(json::array(
      {{{"name", "chat"},
        {"model", model.path().string()},
        {"flags", {"--threads", "1", "--context", "256"}}},
       {{"name", "emoji"}, {"kind", "image"}, {"model", emoji}, {"flags", {"--threads", "1"}}}}));
  front.wait_ready();
  const std::string names[] = {"llm-worker-rbee-cpu", "sd-worker-cpu"};
  for (size_t i = 0; i < std::size(names); ++i) {
    const std::string process = front.workers(i, 1).at(0).at("pid").dump();
    EXPECT_EQ(fs::read_symlink("/proc/" + process + "/exe"), fs::canonical(RBEE));
    std::ifstream command("/proc/" + process + "/cmdline");
    std::string word;
    std::getline(command, word, '\0');
    std::getline(command, word, '\0');
    EXPECT_EQ(word, names[i]);
    EXPECT_THAT(
        mapped_files(process),
        AllOf(HasSubstr("libc.so"), Not(HasSubstr("/libcuda")), Not(HasSubstr("/libcublas")),
              Not(HasSubstr("/libamdhip")), Not(HasSubstr("/libhipblas"))));
  }
}

}  // namespace
}  // namespace rbee::testing

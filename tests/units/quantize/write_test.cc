// Places where files are written; an unfinished file leaves nothing.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "rbee/core/error.h"
#include "tests/units/quantize/scratch.h"
#include "tools/convert/metadata.h"
#include "tools/convert/write_model.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class WriteTest : public Scratch {
 protected:
  // A GGUF file with one matrix of these rows of 256.
  fs::path make_model(const std::string& name, int64_t rows) const {
    std::vector<float> row(256);
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 37) - 18;
    io::GgufWriter writer;
    writer.set_string("general.architecture", "llama");
    writer.add_tensor("blk.0.ffn_up.weight", DType::f32, {rows, 256});
    writer.begin(path(name));
    for (int64_t i = 0; i < rows; ++i) writer.write(std::as_bytes(std::span(row)));
    writer.finish();
    return path(name);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(scratch())) {
      names.push_back(file.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  // The plan's message about a target.
  std::string target_error(const fs::path& from, const fs::path& to) const {
    const auto tensors = as_stored(io::Checkpoint::open(from));
    const auto plans = plan_types(tensors, {.recipe = find_recipe("q8_0")});
    try {
      check_target(plans, to);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

// Runs `rbee quantize`; returns its exit status and its standard error.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, rlim_t file_limit = RLIM_INFINITY) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    process_ = fork();
    if (process_ == 0) {
      const rlimit limit{file_limit, file_limit};
      setrlimit(RLIMIT_FSIZE, &limit);
      // By default the signal would end the process before write() can fail.
      signal(SIGXFSZ, SIG_IGN);
      dup2(ends[1], STDERR_FILENO);
      dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
      std::vector<std::string> words = {RBEE_PROGRAM, "quantize"};
      words.insert(words.end(), arguments.begin(), arguments.end());
      std::vector<char*> argv;
      argv.reserve(words.size() + 1);
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    errors_ = ends[0];
  }
  ~Program() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    close(errors_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const { kill(process_, signal); }

  int wait(std::string* errors) {
    char buffer[512];
    for (ssize_t count = 0; (count = read(errors_, buffer, sizeof buffer)) > 0;) {
      errors->append(buffer, static_cast<size_t>(count));
    }
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t process_ = -1;
  int errors_ = -1;
};

TEST_F(WriteTest, NeverReplacesTheInput) {
  const fs::path from = make_model("m.gguf", 1);
  fs::create_symlink(from, path("link.gguf"));
  fs::create_hard_link(from, path("hard.gguf"));
  EXPECT_THAT(target_error(from, from), HasSubstr("is the input"));
  EXPECT_THAT(target_error(from, path("link.gguf")), HasSubstr("link.gguf: is the input"));
  EXPECT_THAT(target_error(from, path("hard.gguf")), HasSubstr("is the input"));
  EXPECT_THAT(target_error(path("link.gguf"), from), HasSubstr("is the input"));
  EXPECT_THAT(target_error(from, scratch()), HasSubstr("is a folder"));
  EXPECT_THAT(target_error(from, path("none") / "m.gguf"), HasSubstr("No such file"));
  EXPECT_EQ(target_error(from, path("other.gguf")), "");
  make_model("other.gguf", 1);
  EXPECT_EQ(target_error(from, path("other.gguf")), "");
}

TEST_F(WriteTest, NoRoom) {
  SourceTensor huge;
  huge.stored.name = "blk.0.ffn_up.weight";
  huge.stored.shape = {int64_t{1} << 40, 256};
  const auto plans = plan_types(std::span(&huge, 1), {.recipe = find_recipe("q8_0")});
  EXPECT_EQ(planned_bytes(plans), (int64_t{1} << 40) * 272);
  try {
    check_target(plans, path("m.gguf"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
    EXPECT_THAT(error.what(), HasSubstr("m.gguf: needs 299067162755072 bytes, the disk has "));
  }
}

TEST_F(WriteTest, ASignalLeavesNothing) {
  const fs::path from = make_model("m.gguf", 1 << 17);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Program program({from.string(), path("q.gguf").string(), "q3_k_s", "-t", "1"});
    // The temporary file exists once the work has begun.
    for (int i = 0; i < 3000 && files().size() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_THAT(files(), ElementsAre("m.gguf", testing::EndsWith(".part")));
    program.send(signal);
    std::string errors;
    EXPECT_EQ(program.wait(&errors), 1);
    EXPECT_EQ(errors, "rbee: convert: stopped\n");
    EXPECT_THAT(files(), ElementsAre("m.gguf"));
  }
}

TEST_F(WriteTest, AnInputThatIsCutLeavesNothing) {
  const fs::path from = make_model("m.gguf", 1 << 17);
  Program program({from.string(), path("q.gguf").string(), "q3_k_s", "-t", "1"});
  for (int i = 0; i < 3000 && files().size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(files(), ElementsAre("m.gguf", testing::EndsWith(".part")));
  fs::resize_file(from, 4096);
  std::string errors;
  EXPECT_EQ(program.wait(&errors), 3);
  EXPECT_THAT(errors, testing::MatchesRegex("rbee: [^\n]*/m.gguf: cannot be read any [^\n]*\n"));
  EXPECT_THAT(files(), ElementsAre("m.gguf"));
}

TEST_F(WriteTest, AFullDiskIsNamed) {
  const fs::path from = make_model("m.gguf", 1 << 10);
  Program program({from.string(), path("q.gguf").string(), "q8_0"}, 100'000);
  std::string errors;
  EXPECT_EQ(program.wait(&errors), 1);
  EXPECT_THAT(errors,
              HasSubstr("q.gguf: cannot be written beyond its first 100000 bytes: File too"));
  EXPECT_THAT(files(), ElementsAre("m.gguf"));
}

// Standard output and error of a command line.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[512];
  while (const size_t count = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, count);
  pclose(pipe);
  return out;
}

TEST_F(WriteTest, NamesOfFilesSteerNoTerminal) {
  io::GgufWriter writer;
  writer.set_string("general.architecture", "\x1b[31mllama");
  writer.set_string("a\x1bkey", "bell\a \u009b \u202e");
  writer.add_tensor("blk.0\x1b]0;title\a.weight", DType::f32, {1, 32});
  writer.begin(path("m.gguf"));
  const std::vector<float> zeros(32);
  writer.write(std::as_bytes(std::span(zeros)));
  writer.finish();
  const std::string file = path("m.gguf").string();
  const std::string program = RBEE_PROGRAM;
  const std::string text = output_of(program + " inspect " + file);
  EXPECT_THAT(text, HasSubstr("architecture  \\x1b[31mllama\n"));
  EXPECT_THAT(text, HasSubstr("a\\x1bkey"));
  EXPECT_THAT(text, HasSubstr("\\x9b \\u202e"));
  EXPECT_THAT(text, HasSubstr("blk.0\\x1b]0;title\\x07.weight"));
  for (const std::string& shown :
       {text, output_of(program + " inspect '" + path("no\x1b.gguf").string() + "'"),
        output_of(program + " quantize " + file + " " + path("q.gguf").string() + " q8_0")}) {
    EXPECT_THAT(shown, Not(HasSubstr("\x1b"))) << shown;
    EXPECT_THAT(shown, HasSubstr("\\x1b"));
  }
}

TEST_F(WriteTest, WrongUse) {
  const fs::path from = make_model("m.gguf", 1);
  const auto expect = [&](const std::vector<std::string>& arguments, const char* part) {
    std::string errors;
    EXPECT_EQ(Program(arguments).wait(&errors), 1);
    EXPECT_THAT(errors, HasSubstr(part));
  };
  const std::string in = from.string(), out = path("q.gguf").string();
  expect({in, out, "q4_z"}, "'q4_z' is none of f32");
  expect({in, path("q.bin").string(), "q4_0"}, "has to end in .gguf or .safetensors");
  expect({in, path("q.safetensors").string(), "f16"}, "a GGUF file becomes a GGUF file");
  expect({path("none.gguf").string(), out, "q4_0"}, "there is no such file");
  expect({in, in, "q4_0"}, "is the input");
  EXPECT_THAT(files(), ElementsAre("m.gguf"));
}

TEST_F(WriteTest, WritesAndSaysHow) {
  const fs::path from = make_model("m.gguf", 3);
  std::string errors;
  EXPECT_EQ(Program({from.string(), path("q.gguf").string(), "Q8_K", "--dry-run"}).wait(&errors),
            0);
  EXPECT_THAT(files(), ElementsAre("m.gguf"));
  for (const auto& [type, number] : {std::pair{"Q4_K_M", 15}, {"q8_k", -1}}) {
    EXPECT_EQ(Program({from.string(), path("q.gguf").string(), type}).wait(&errors), 0);
    const io::Checkpoint made = io::Checkpoint::open(path("q.gguf"));
    EXPECT_EQ(made.metadata().get_i64("general.file_type").value_or(-1), number);
    EXPECT_EQ(made.require("blk.0.ffn_up.weight").dtype, find_recipe(type).base);
  }
  EXPECT_EQ(errors, "");
}

}  // namespace
}  // namespace rbee::tools

// Other people's programs against the CPU picture worker over a tiny random model; see clients/.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "rbee/core/cat.h"
#include "tests/models/image_folder.h"
#include "tests/server/process.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;

std::string python() {
  if (const char* named = std::getenv("RBEE_TEST_PYTHON")) return named;
  const fs::path own = fs::path(CLIENTS) / "../../../build/clients/bin/python";
  return fs::exists(own) ? own.string() : "/usr/bin/python3";
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return cat(name, "=", value == nullptr ? "" : value);
}

class Clients : public ::testing::Test {
 protected:
  Clients() {
    fs::copy(test::image_data("tokenizer"), model_.path() / "tokenizer",
             fs::copy_options::recursive);
  }

  void run(const char* script, const std::vector<std::string>& more = {}) {
    Process worker(SD_WORKER,
                   {"--model-path", model_.path().string(), "--port", "0", "--threads", "1"});
    std::vector<std::string> arguments = {(fs::path(CLIENTS) / script).string(),
                                          cat("http://127.0.0.1:", worker.port())};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process client(python(), arguments, {variable("PATH"), variable("HOME"), "NO_PROXY=*"});
    const int status = client.wait();
    if (status == kSkipped) GTEST_SKIP() << client.text();
    EXPECT_EQ(status, 0) << client.text();
  }

  test::ImageFolder model_{"sd1"};
};

TEST_F(Clients, OpenAisOwnPythonClient) {
  run("openai_client.py");
}

TEST_F(Clients, ThePageInABrowser) {
  run("page.py", {(model_.path() / "screenshots").string()});
}

}  // namespace
}  // namespace rbee::testing

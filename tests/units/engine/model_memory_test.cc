// A language model's memory, estimated from its headers and measured after loading.
#include "rbee/engine/text/model_memory.h"

#include <gtest/gtest.h>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/core/error.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/models/language_model.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kContext = 96;
constexpr int64_t kRoom = int64_t{512} << 20;

fs::path data() {
  return fs::path(test::data_folder()) / "models";
}

// Files, and keys and values of kContext tokens in 16 bits.
int64_t taken_by(const fs::path& path) {
  register_backend(cpu::cpu_backend());
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const auto model = models::load_language_model(
      checkpoint, {.device = &get_device({DeviceKind::cpu, 0}), .context = kContext});
  return checkpoint.file_bytes() + kContext * cache_token_bytes(*model, DType::f16);
}

TEST(ModelMemory, IsThatOfFilesAndContextInEveryFamily) {
  int count = 0;
  for (const auto& family : fs::directory_iterator(data() / "language/data")) {
    for (const char* file : {"hf/model.safetensors", "model.gguf"}) {
      const fs::path stored = family.path() / file;
      if (!fs::exists(stored)) continue;
      ++count;
      const fs::path path = stored.extension() == ".gguf" ? stored : stored.parent_path();
      EXPECT_EQ(text_model_memory(path, {.context = kContext}) - kRoom, taken_by(path)) << path;
    }
  }
  EXPECT_GT(count, 50);
}

TEST(ModelMemory, CountsTheContextThatAWorkerWouldTake) {
  const fs::path path = data() / "language/data/smollm/hf";
  const int64_t none = text_model_memory(path, {.context = 1});
  const int64_t token = text_model_memory(path, {.context = 2}) - none;
  EXPECT_GT(token, 0);
  // The model's own context; its config.json says 64.
  EXPECT_EQ(text_model_memory(path, {}), none + 63 * token);
}

TEST(ModelMemory, SaysThatThereIsNoFile) {
  try {
    text_model_memory("/nowhere/model.gguf", {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
  }
}

}  // namespace
}  // namespace rbee::engine

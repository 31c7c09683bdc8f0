// What a token's weights cost, by device, for the limits of `rbee bench`.
#include "cli/token_work.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/io/checkpoint.h"
#include "tests/support/data_folder.h"
#include "tests/units/engine/far_device.h"

namespace rbee::tools {
namespace {

std::string path_of(const char* family) {
  const auto data = std::filesystem::path(test::data_folder()) / "models/language/data";
  return (data / family / "model.gguf").string();
}

TokenWork work_of(const char* family, models::LoadOptions options = {}) {
  register_backend(cpu::cpu_backend());
  engine::FarDevice device;
  options.device = &device;
  options.host = &get_device({DeviceKind::cpu, 0});
  const auto model = models::load_language_model(io::Checkpoint::open(path_of(family)), options);
  return TokenWork(path_of(family), *model);
}

// Sums over a file's tensors: the bytes and weights of experts, of the token table, of the rest.
struct Sums {
  double bytes = 0, weights = 0;
};
Sums sums(const char* family, const char* part, bool with) {
  Sums out;
  const io::Checkpoint checkpoint = io::Checkpoint::open(path_of(family));
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    if (tensor.name == "token_embd.weight" || tensor.name == "output.weight") continue;
    if ((tensor.name.find(part) != std::string::npos) != with) continue;
    out.bytes += static_cast<double>(tensor.data.size());
    out.weights += static_cast<double>(numel(tensor.shape));
  }
  return out;
}

double output_bytes(const char* family) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path_of(family));
  const io::TensorEntry* output = checkpoint.find("output.weight");
  if (output == nullptr) output = checkpoint.find("token_embd.weight");
  return static_cast<double>(output->data.size());
}

TEST(TokenWork, ReadsAllOfADenseModelButTheTable) {
  const TokenWork work = work_of("llama");
  const Sums all = sums("llama", "", true);
  EXPECT_DOUBLE_EQ(work.bytes(1).device, all.bytes + output_bytes("llama"));
  EXPECT_DOUBLE_EQ(work.bytes(32).device, work.bytes(1).device);
  EXPECT_DOUBLE_EQ(work.operations().device, 2 * all.weights);
  EXPECT_EQ(work.bytes(1).host, 0);
  EXPECT_EQ(work.operations().host, 0);
}

// The tiny Mixtral's tokens take 2 of 5 experts.
TEST(TokenWork, CountsTheExpertsThatAreTaken) {
  const TokenWork work = work_of("mixtral");
  const Sums experts = sums("mixtral", "_exps.", true), rest = sums("mixtral", "_exps.", false);
  const double shared = rest.bytes + output_bytes("mixtral");
  ASSERT_GT(experts.bytes, 0);
  EXPECT_DOUBLE_EQ(work.bytes(1).device, shared + experts.bytes * 0.4);
  EXPECT_DOUBLE_EQ(work.bytes(2).device, shared + experts.bytes * 0.64);
  EXPECT_NEAR(work.bytes(64).device, shared + experts.bytes, 1);
  EXPECT_DOUBLE_EQ(work.operations().device, 2 * (rest.weights + experts.weights * 0.4));
}

TEST(TokenWork, IsWhereTheWeightsAre) {
  const TokenWork whole = work_of("mixtral");
  const Sums experts = sums("mixtral", "_exps.", true), first = sums("mixtral", "blk.0.", true);
  const TokenWork all = work_of("mixtral", {.cpu_moe_layers = models::kAllLayers});
  EXPECT_DOUBLE_EQ(all.bytes(1).host, experts.bytes * 0.4);
  EXPECT_DOUBLE_EQ(all.bytes(1).all(), whole.bytes(1).all());
  EXPECT_DOUBLE_EQ(all.operations().host, experts.weights * 0.8);
  const TokenWork one = work_of("mixtral", {.cpu_moe_layers = 1});
  EXPECT_DOUBLE_EQ(one.bytes(1).host,
                   sums("mixtral", "blk.0.ffn_gate_exps.", true).bytes * 0.4 +
                       sums("mixtral", "blk.0.ffn_up_exps.", true).bytes * 0.4 +
                       sums("mixtral", "blk.0.ffn_down_exps.", true).bytes * 0.4);
  // The first layer is on the host whole, and no other layer's experts are.
  const TokenWork layers = work_of("mixtral", {.gpu_layers = 2, .cpu_moe_layers = 1});
  EXPECT_GT(layers.bytes(64).host, one.bytes(64).host);
  EXPECT_NEAR(layers.bytes(64).host, first.bytes, 1);
}

}  // namespace
}  // namespace rbee::tools

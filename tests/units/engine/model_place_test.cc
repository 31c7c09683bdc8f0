// Where a language model goes, on devices that these tests make up.
#include "rbee/engine/text/model_place.h"

#include <gmock/gmock.h>

#include "rbee/core/error.h"
#include "tests/support/data_folder.h"
#include "tests/units/engine/far_device.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kContext = 96;
constexpr int64_t kHuge = int64_t{1} << 40;

int64_t& free_bytes() {
  static int64_t bytes = 0;
  return bytes;
}

Device& no_device(int) {
  fail(Code::internal, "test", "a choice opens no device");
}

class Card final : public FarDevice {
 public:
  std::string description() const override { return "Card"; }
  MemoryInfo memory() const override { return {.total = kHuge, .free = free_bytes()}; }
};

Device& card(int) {
  static Card device;
  return device;
}
std::string no_text() {
  return {};
}

const BackendInfo kBackends[] = {
    {.kind = DeviceKind::cpu,
     .device_count = [] { return 1; },
     .offer = [](int) { return DeviceOffer{.memory = {.free = kHuge}}; },
     .device = no_device,
     .unavailable_reason = no_text,
     .driver_version = no_text},
    {.kind = DeviceKind::cuda,
     .device_count = [] { return 1; },
     .offer = [](int) { return DeviceOffer{.name = "Card", .memory = {.free = free_bytes()}}; },
     .device = card,
     .unavailable_reason = no_text,
     .driver_version = no_text},
};
constexpr DeviceId kCard{DeviceKind::cuda, 0};

std::filesystem::path model(const char* family = "llama") {
  return std::filesystem::path(test::data_folder()) / "models/language/data" / family /
         "model.gguf";
}

ModelPlace place(const PlaceWanted& wanted, int64_t free, const char* family = "llama") {
  free_bytes() = free;
  return place_text_model(kBackends, wanted, model(family), {.context = kContext});
}

int64_t whole() {
  return text_model_memory(model(), {.context = kContext});
}

int64_t layers() {
  return fitting_gpu_layers(model(), {.context = kContext}, kHuge).all;
}

// Memory for all layers but one.
int64_t part() {
  int64_t free = whole();
  while (fitting_gpu_layers(model(), {.context = kContext}, free).count > layers() - 1) free -= 64;
  return free;
}

TEST(ModelPlace, AllOfItWhereItFits) {
  for (const auto& device : {std::optional<DeviceId>(), std::optional(kCard)}) {
    const ModelPlace found = place({.device = device}, whole());
    EXPECT_EQ(cat(found.device), "cuda:0");
    EXPECT_EQ(found.gpu_layers, models::kAllLayers);
    EXPECT_EQ(found.needed, whole());
  }
}

TEST(ModelPlace, AsMuchAsFits) {
  const int64_t free = part();
  for (const auto& device : {std::optional<DeviceId>(), std::optional(kCard)}) {
    const ModelPlace found = place({.device = device}, free);
    EXPECT_EQ(cat(found.device), "cuda:0");
    EXPECT_EQ(found.gpu_layers, layers() - 1);
    EXPECT_EQ(found.free, free);
    EXPECT_THAT(found.reason, HasSubstr(cat(layers() - 1, " of ", layers(),
                                            " layers (the output matrix is one) are on cuda:0 "
                                            "(Card), the CPU computes the others")));
  }
  // A draft model takes its bytes first.
  const int64_t draft = whole() - free;
  EXPECT_EQ(place({.device = kCard, .beside = draft}, whole()).gpu_layers, layers() - 1);
  EXPECT_EQ(place({.device = kCard, .beside = draft}, whole() + draft).gpu_layers,
            models::kAllLayers);
}

TEST(ModelPlace, TheCpuWhereHardlyAnythingFits) {
  const ModelPlace found = place({}, 1000);
  EXPECT_EQ(cat(found.device), "cpu:0");
  EXPECT_THAT(found.reason, HasSubstr("the model runs on cpu:0"));
  // A named device is not left: loading says what is missing.
  EXPECT_EQ(cat(place({.device = kCard}, 1000).device), "cuda:0");
  EXPECT_EQ(place({.device = kCard}, 1000).gpu_layers, models::kAllLayers);
}

TEST(ModelPlace, TheWantedNumber) {
  for (const auto& device : {std::optional<DeviceId>(), std::optional(kCard)}) {
    const ModelPlace found = place({.device = device, .gpu_layers = 2}, 1000);
    EXPECT_EQ(cat(found.device), "cuda:0");
    EXPECT_EQ(found.gpu_layers, 2);
    EXPECT_EQ(cat(place({.device = device, .gpu_layers = 0}, kHuge).device), "cpu:0");
    EXPECT_EQ(place({.device = device, .gpu_layers = models::kAllLayers}, 1000).gpu_layers,
              models::kAllLayers);
  }
  EXPECT_THAT(place({.device = kCard, .gpu_layers = 0}, kHuge).reason, HasSubstr("cuda:0"));
  const ModelPlace on_cpu = place({.device = DeviceId{DeviceKind::cpu, 0}, .gpu_layers = 2}, kHuge);
  EXPECT_EQ(cat(on_cpu.device), "cpu:0");
  EXPECT_EQ(on_cpu.gpu_layers, models::kAllLayers);
}

TEST(ModelPlace, AModelForEmbeddingsStaysTogether) {
  EXPECT_EQ(cat(place({.one_device = true}, part()).device), "cpu:0");
  EXPECT_EQ(place({.device = kCard, .one_device = true}, part()).gpu_layers, models::kAllLayers);
  // llama.cpp's users write a number above all layers for all of them.
  EXPECT_EQ(cat(place({.device = kCard, .gpu_layers = layers(), .one_device = true}, kHuge).device),
            "cuda:0");
  EXPECT_EQ(cat(place({.device = DeviceId{DeviceKind::cpu, 0}, .gpu_layers = 2, .one_device = true},
                      kHuge)
                    .device),
            "cpu:0");
  for (const int64_t layers : {int64_t{1}, int64_t{2}}) {
    try {
      place({.gpu_layers = layers, .one_device = true}, kHuge);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported);
      EXPECT_THAT(error.what(), HasSubstr("gpu_layers"));
    }
  }
}

TEST(ModelPlace, ExpertsOnTheHost) {
  const TextModelOptions options{.context = kContext};
  const int64_t whole = text_model_memory(model("mixtral"), options);
  int64_t less = whole;
  FittingLayers fits;
  while (fits.cpu_moe_layers == 0) {
    less -= 64;
    fits = fitting_gpu_layers(model("mixtral"), options, less, CpuMoe::as_needed);
  }
  ASSERT_EQ(fits.cpu_moe_layers, 1);
  ASSERT_EQ(fits.count, fits.all);
  for (const auto& device : {std::optional<DeviceId>(), std::optional(kCard)}) {
    const ModelPlace all = place({.device = device}, whole, "mixtral");
    EXPECT_EQ(all.cpu_moe_layers, 0);
    const ModelPlace part = place({.device = device}, less, "mixtral");
    EXPECT_EQ(part.gpu_layers, fits.all);
    EXPECT_EQ(part.cpu_moe_layers, 1);
    EXPECT_THAT(part.reason,
                HasSubstr(cat(fits.all, " of ", fits.all,
                              " layers (the output matrix is one) are on cuda:0 (Card), the CPU "
                              "computes the experts of the first 1 layers: ")));
    // What is asked for is what there is.
    const ModelPlace asked = place({.device = device, .cpu_moe_layers = 2}, whole, "mixtral");
    EXPECT_EQ(asked.gpu_layers, models::kAllLayers);
    EXPECT_EQ(asked.cpu_moe_layers, 2);
    EXPECT_LT(asked.needed, whole);
    EXPECT_EQ(place({.device = device, .gpu_layers = 1}, whole, "mixtral").cpu_moe_layers, 0);
    EXPECT_EQ(place({.device = device, .gpu_layers = 1, .cpu_moe_layers = 2}, whole, "mixtral")
                  .cpu_moe_layers,
              2);
    // With no experts on the host whole layers leave.
    const ModelPlace none = place({.device = device, .cpu_moe_layers = 0}, less, "mixtral");
    EXPECT_EQ(none.gpu_layers, fits.all - 1);
    EXPECT_EQ(none.cpu_moe_layers, 0);
  }
  EXPECT_EQ(cat(place({.gpu_layers = 0, .cpu_moe_layers = 2}, whole, "mixtral").device), "cpu:0");
}

void expect_refusal(Code code, const char* part, const PlaceWanted& wanted) {
  try {
    place(wanted, kHuge);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(ModelPlace, RefusesNumbers) {
  expect_refusal(Code::invalid_argument, "gpu_layers", {.gpu_layers = -1});
  expect_refusal(Code::invalid_argument, "cpu_moe_layers", {.cpu_moe_layers = -1});
  expect_refusal(Code::unsupported, "cpu_moe_layers", {.cpu_moe_layers = 1, .one_device = true});
}

}  // namespace
}  // namespace rbee::engine

// If cuBLASLt or hipBLASLt does not start on a device, has no algorithm or fails, the next
// implementation of the slot computes the product.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "backends/api/kernel_table.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/linear_slabs.h"
#include "backends/gpu/ops/lt_products.h"
#include "rbee/ops/run.h"
#include "tests/gpu/fake_library.h"

namespace rbee::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kRows = 9, kDepth = 256, kOuts = 256;

// The library that the slots below use, and how often the implementation after it ran.
gpu::LtLibrary* asked = nullptr;
int next_ran = 0;

template <typename Args>
void run_next(const Args&, Stream&) {
  ++next_ran;
}

const Impl<LinearArgs> kNextLinear{"next", never_refuse, run_next};
const Impl<LinearArgs> kLinears[] = {
    {"lt", [](const LinearArgs& args) { return gpu::refuse_lt_linear(*asked, args); },
     [](const LinearArgs& args, Stream& stream) { gpu::run_lt_linear(*asked, args, stream); },
     [](const LinearArgs& args, Stream& stream) {
       return gpu::refuse_lt_linear_on(*asked, args, stream);
     }},
    kNextLinear};
const Impl<FusedLinearArgs> kFused[] = {
    {"lt", [](const FusedLinearArgs& args) { return gpu::refuse_lt_fused_linear(*asked, args); },
     [](const FusedLinearArgs& args, Stream& stream) {
       gpu::run_lt_fused_linear(*asked, args, stream);
     },
     [](const FusedLinearArgs& args, Stream& stream) {
       return gpu::refuse_lt_fused_linear_on(*asked, args, stream);
     }}};
const Impl<MatmulArgs> kMatmuls[] = {
    {"lt", [](const MatmulArgs& args) { return gpu::refuse_lt_matmul(*asked, args); },
     [](const MatmulArgs& args, Stream& stream) { gpu::run_lt_matmul(*asked, args, stream); },
     [](const MatmulArgs& args, Stream& stream) {
       return gpu::refuse_lt_matmul_on(*asked, args, stream);
     }},
    {"next", never_refuse, run_next}};
const Impl<BinaryArgs> kBinaries[] = {{"next", never_refuse, run_next}};

const KernelTable& kernels(const gpu::Properties&) {
  static const KernelTable table = [] {
    KernelTable t;
    t.linear = kLinears;
    t.fused_linear = kFused;
    t.matmul = kMatmuls;
    t.binary = kBinaries;
    return t;
  }();
  return table;
}

class LtRefusalsTest : public ::testing::TestWithParam<Vendor> {
 protected:
  LtRefusalsTest() : fake_(GetParam()), driver_(fake_.open()) {
    open_fake_products(GetParam());
    library_.emplace(lt_vendor_of(GetParam()));
    asked = &*library_;
    next_ran = 0;
    device_.emplace(
        gpu::Vendor{.driver = driver_.get(), .images = images_of(GetParam()), .kernels = &kernels},
        0);
  }
  ~LtRefusalsTest() override { tell(nullptr); }

  static bool cuda() { return GetParam() == Vendor::cuda; }
  // "CALL STATUS" from now on; null: nothing fails.
  static void tell(const char* what) {
    const std::string path = cat(::testing::TempDir(), "rbee_fake_lt_", getpid());
    setenv("RBEE_FAKE_LT", path.c_str(), 1);
    if (what != nullptr) {
      std::ofstream(path) << what;
    } else {
      std::filesystem::remove(path);
    }
  }
  Stream& stream() { return device_->default_stream(); }
  // A matrix of zeros.
  View matrix(int64_t rows, int64_t columns, DType dtype = DType::f32) {
    std::vector<float>& values = memory_.emplace_back(static_cast<size_t>(rows * columns), 0.0F);
    return {.data = values.data(),
            .dtype = dtype,
            .rank = 2,
            .sizes = {rows, columns},
            .strides = {columns, 1}};
  }
  LinearPart part() {
    return {.weight = matrix(kOuts, kDepth), .bias = {}, .y = matrix(kRows, kOuts)};
  }
  MatmulArgs product() {
    return {.a = matrix(kRows, kDepth), .b = matrix(kDepth, kOuts), .y = matrix(kRows, kOuts)};
  }
  std::string refusal_of(const LinearArgs& args) {
    const char* reason = refusal(kLinears[0], args, stream());
    return reason != nullptr ? reason : "none";
  }

  FakeLibrary fake_;
  std::unique_ptr<gpu::Driver> driver_;
  std::optional<gpu::LtLibrary> library_;
  std::optional<gpu::GpuDevice> device_;
  std::vector<std::vector<float>> memory_;
};

TEST_P(LtRefusalsTest, ALibraryThatDoesNotStartOnTheDeviceLeavesItsSlots) {
  tell("Create 1");
  const LinearPart one = part();
  const LinearArgs args{.x = matrix(kRows, kDepth), .parts = {&one, 1}};
  EXPECT_EQ(refusal_of(args), cuda() ? "cuBLASLt does not start on cuda:0 (status 1)"
                                     : "hipBLASLt does not start on rocm:0 (status 1)");
  run("linear", device_->kernels().linear, args, stream());
  EXPECT_EQ(next_ran, 1);
  run("matmul", device_->kernels().matmul, product(), stream());
  EXPECT_EQ(next_ran, 2);
  try {
    run("linear", Slot<LinearArgs>(kLinears, 1), args, stream());
    ADD_FAILURE() << "nobody takes it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("lt: " + refusal_of(args)));
  }
}

TEST_P(LtRefusalsTest, AProductWithoutAnAlgorithmGoesToTheNext) {
  const LinearPart one = part();
  const LinearArgs args{.x = matrix(kRows, kDepth), .parts = {&one, 1}};
  for (const char* answer : {"MatmulAlgoGetHeuristic 0", "MatmulAlgoGetHeuristic 7"}) {
    library_.emplace(lt_vendor_of(GetParam()));
    tell(answer);
    EXPECT_THAT(refusal_of(args), HasSubstr("LASLt has no algorithm for it"));
    tell(nullptr);
    EXPECT_NE(refusal_of(args), "none") << "it is not asked again";
    next_ran = 0;
    run("linear", device_->kernels().linear, args, stream());
    EXPECT_EQ(next_ran, 1);
    EXPECT_EQ(refusal(kMatmuls[0], product(), stream()), nullptr) << "other products have one";
  }
}

// One implementation computes all parts of a layer.
TEST_P(LtRefusalsTest, OnePartWithoutAnAlgorithmTakesTheOthersAlong) {
  LinearPart parts[] = {part(), part()};
  parts[1].weight = matrix(2 * kOuts, kDepth);
  parts[1].y = matrix(kRows, 2 * kOuts);
  const View x = matrix(kRows, kDepth);
  tell("MatmulAlgoGetHeuristic 0");
  EXPECT_NE(refusal_of({.x = x, .parts = {&parts[1], 1}}), "none");
  tell(nullptr);
  EXPECT_EQ(refusal_of({.x = x, .parts = {&parts[0], 1}}), "none");
  EXPECT_NE(refusal_of({.x = x, .parts = parts}), "none");
}

TEST_P(LtRefusalsTest, AResidualWithoutAnAlgorithmIsLeftToThePlainOperations) {
  const LinearPart one = part();
  const FusedLinearArgs args{.x = matrix(kRows, kDepth),
                             .norm_weight = {},
                             .residual = matrix(kRows, kOuts),
                             .parts = {&one, 1}};
  tell("MatmulAlgoGetHeuristic 0");
  EXPECT_FALSE(try_run("fused_linear", device_->kernels().fused_linear, args, stream()));
}

TEST_P(LtRefusalsTest, ASlabWithoutAnAlgorithmGoesToTheKernel) {
  LinearPart one{.weight = matrix(kOuts, kDepth, DType::f8e4m3),
                 .bias = {},
                 .y = matrix(kRows, kOuts, DType::f16)};
  void* weight = device_->allocate(kOuts * kDepth, stream());
  one.weight.data = weight;
  const LinearArgs args{.x = matrix(kRows, kDepth, DType::f16), .parts = {&one, 1}};
  ASSERT_STREQ(gpu::refuse_linear_slabs(args), nullptr);
  const gpu::SlabProducts products{.library = &*library_, .kernels = {&kNextLinear, 1}};
  gpu::run_linear_slabs(products, args, stream());
  EXPECT_EQ(next_ran, 0);
  library_.emplace(lt_vendor_of(GetParam()));
  tell("MatmulAlgoGetHeuristic 0");
  gpu::run_linear_slabs(products, args, stream());
  EXPECT_EQ(next_ran, 1);
  device_->free(weight, kOuts * kDepth, stream());
}

// A failed plan is not cached and leaves nothing behind.
TEST_P(LtRefusalsTest, APlanThatFailsIsMadeAgain) {
  const MatmulArgs args = product();
  for (const char* call : {"MatmulDescCreate", "MatmulDescSetAttribute", "MatrixLayoutCreate",
                           "MatmulPreferenceCreate", "MatmulPreferenceSetAttribute"}) {
    tell(cat(call, cuda() ? " 14" : " 6").c_str());  // an internal error
    EXPECT_THROW(refusal(kMatmuls[0], args, stream()), Error) << call;
    tell(nullptr);
    EXPECT_EQ(refusal(kMatmuls[0], args, stream()), nullptr) << call;
    library_.emplace(lt_vendor_of(GetParam()));
  }
}

// Statuses have the vendors' numbers: cublas_api.h and hipblas-common.h.
TEST_P(LtRefusalsTest, StatusesBecomeCodes) {
  struct Told {
    Code code;
    int cublas, hipblas;
  };
  const MatmulArgs args = product();
  for (const char* call : {"MatrixLayoutCreate", "Matmul"}) {
    for (const auto& [code, cublas, hipblas] :
         {Told{Code::out_of_memory, 3, 2}, Told{Code::internal, 7, 3}, Told{Code::internal, 1, 1},
          Told{Code::device, 13, 5}, Told{Code::device, 14, 6}}) {
      tell(cat(call, ' ', cuda() ? cublas : hipblas).c_str());
      try {
        run("matmul", device_->kernels().matmul, args, stream());
        ADD_FAILURE() << call << ' ' << cublas;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(cat("Lt", call, ": status ")));
        EXPECT_THAT(error.what(),
                    StartsWith(cuda() ? "matmul: on cuda:0: " : "matmul: on rocm:0: "));
      }
    }
    tell(nullptr);
    run("matmul", device_->kernels().matmul, args, stream());
    EXPECT_EQ(next_ran, 0) << "nothing of it is remembered";
  }
}

// Starting a library allocates and waits, which no capture allows. "Create 1": it would be
// remembered as one that does not start.
TEST_P(LtRefusalsTest, ALibraryIsNotStartedWhileAStepIsCaptured) {
  tell("Create 1");
  const LinearPart one = part();
  const LinearArgs args{.x = matrix(kRows, kDepth), .parts = {&one, 1}};
  const FusedLinearArgs onto{
      .x = args.x, .norm_weight = {}, .residual = matrix(kRows, kOuts), .parts = {&one, 1}};
  const KernelTable& table = device_->kernels();
  device_->begin_capture(stream());
  EXPECT_THAT(refusal_of(args), HasSubstr("LASLt is not started while a step is captured"));
  run("linear", table.linear, args, stream());
  run("matmul", table.matmul, product(), stream());
  EXPECT_EQ(next_ran, 2);
  EXPECT_FALSE(try_run("fused_linear", table.fused_linear, onto, stream()));
  device_->destroy_capture(device_->end_capture(stream()));
  tell(nullptr);
  EXPECT_EQ(refusal_of(args), "none") << "after the capture it starts";
}

// A library that has been started multiplies within a capture, also what it was not asked before.
TEST_P(LtRefusalsTest, AStartedLibraryTakesCapturedProducts) {
  const LinearPart one = part();
  const LinearArgs args{.x = matrix(kRows, kDepth), .parts = {&one, 1}};
  ASSERT_EQ(refusal_of(args), "none");
  tell("Create 1");
  device_->begin_capture(stream());
  run("linear", device_->kernels().linear, args, stream());
  run("matmul", device_->kernels().matmul, product(), stream());
  device_->destroy_capture(device_->end_capture(stream()));
  EXPECT_EQ(next_ran, 0);
}

// Memory that is short now may be free later.
TEST_P(LtRefusalsTest, ALackOfMemoryIsNotRemembered) {
  const MatmulArgs args = product();
  for (const char* call : {"Create", "MatmulAlgoGetHeuristic"}) {
    tell(cat(call, cuda() ? " 3" : " 2").c_str());
    try {
      refusal(kMatmuls[0], args, stream());
      ADD_FAILURE() << call;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::out_of_memory);
    }
    tell(nullptr);
    EXPECT_EQ(refusal(kMatmuls[0], args, stream()), nullptr) << call;
    library_.emplace(lt_vendor_of(GetParam()));
  }
}

TEST_P(LtRefusalsTest, WhatALibraryCannotDescribeGoesToTheNext) {
  for (const int status : {cuda() ? 15 : 7, 8}) {  // not supported, another architecture's
    next_ran = 0;
    tell(cat("MatmulDescSetAttribute ", status).c_str());
    run("matmul", device_->kernels().matmul, product(), stream());
    EXPECT_EQ(next_ran, 1) << status;
    library_.emplace(lt_vendor_of(GetParam()));
  }
}

// Even if the library named an algorithm before.
TEST_P(LtRefusalsTest, AProductThatIsRefusedLateGoesToTheNext) {
  LinearPart one = part();
  const View x = matrix(kRows, kDepth);
  const MatmulArgs args = product();
  const FusedLinearArgs onto{
      .x = x, .norm_weight = {}, .residual = matrix(kRows, kOuts), .parts = {&one, 1}};
  const KernelTable& table = device_->kernels();
  for (const int status : {cuda() ? 15 : 7, 8}) {
    next_ran = 0;
    tell(cat("Matmul ", status).c_str());
    run("linear", table.linear, LinearArgs{.x = x, .parts = {&one, 1}}, stream());
    EXPECT_EQ(next_ran, 1);
    run("matmul", table.matmul, args, stream());
    EXPECT_EQ(next_ran, 2);
    EXPECT_TRUE(try_run("fused_linear", table.fused_linear, onto, stream()));
    EXPECT_EQ(next_ran, 4) << "the layer, then the residual";
    tell(nullptr);
    EXPECT_NE(refusal(kMatmuls[0], args, stream()), nullptr) << "it is not asked again";
    library_.emplace(lt_vendor_of(GetParam()));
  }
}

// With a device's tables, the next implementation uses the device's matrix units.
TEST_P(LtRefusalsTest, BehindTheLibraryStandTheMatrixUnits) {
  tell("Create 1");
  gpu::GpuDevice device(with_driver(GetParam(), *driver_), 0);
  constexpr int64_t kMany = 128;
  const LinearPart one{.weight = matrix(kOuts, kDepth, DType::f16),
                       .bias = {},
                       .y = matrix(kMany, kOuts, DType::f16)};
  const LinearArgs args{.x = matrix(kMany, kDepth, DType::f16), .parts = {&one, 1}};
  std::string taken;
  for (const Impl<LinearArgs>& impl : device.kernels().linear) {
    if (refusal(impl, args, device.default_stream()) == nullptr) taken = cat(taken, impl.name, ' ');
  }
  EXPECT_THAT(taken, ::testing::MatchesRegex(cuda() ? "(tma )?(wgmma )?mma .*" : "mfma .*"));
}

INSTANTIATE_TEST_SUITE_P(Vendors, LtRefusalsTest, ::testing::ValuesIn(built_vendors()),
                         [](const auto& p) { return p.param == Vendor::cuda ? "cuda" : "rocm"; });

}  // namespace
}  // namespace rbee::harness

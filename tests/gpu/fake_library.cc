#include "tests/gpu/fake_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#ifdef RBEE_FAKE_CUDA
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/cuda_driver.h"
#include "backends/cuda/cuda_kernels.h"
#include "backends/cuda/nccl.h"
#endif
#ifdef RBEE_FAKE_HIP
#include "backends/rocm/hip_driver.h"
#include "backends/rocm/hipblaslt.h"
#include "backends/rocm/rccl.h"
#include "backends/rocm/rocm_kernels.h"
#endif

namespace rbee::harness {
namespace {

using Tell = void(uint32_t bytes);

template <typename Base>
class TellingDriver final : public Base {
 public:
  explicit TellingDriver(Tell* tell) : tell_(tell) {}

  void launch(const gpu::KernelLaunch& what, void* stream, const void* params) override {
    tell_(what.params_bytes);
    Base::launch(what, stream, params);
  }

 private:
  Tell* tell_;
};

// `tell`: null if it has none.
template <typename Base>
std::unique_ptr<gpu::Driver> open_as(Tell* tell) {
  if (tell == nullptr) return std::make_unique<Base>();
  return std::make_unique<TellingDriver<Base>>(tell);
}

struct Built {
  const char* library;      // the fake's path
  const char* old_library;  // the oldest version that works
  const char* variable;     // overrides the library's path
  std::unique_ptr<gpu::Driver> (*open)(Tell* tell);
  std::span<const gpu::KernelImage> (*images)();
  const KernelTable& (*kernels)(const gpu::Properties&);
  const gpu::LtVendor* products;
  const char* fake_products;  // path
  const gpu::CclVendor* collectives;
  const char* fake_collectives;  // path
};

const Built* built(Vendor vendor) {
#ifdef RBEE_FAKE_CUDA
  static const Built cuda{.library = RBEE_FAKE_CUDA,
                          .old_library = RBEE_FAKE_CUDA,
                          .variable = "RBEE_CUDA_LIBRARY",
                          .open = &open_as<cuda::CudaDriver>,
                          .images = &cuda::cuda_images,
                          .kernels = &cuda::cuda_kernels,
                          .products = &cuda::kCublasLtVendor,
                          .fake_products = RBEE_FAKE_CUBLASLT,
                          .collectives = &cuda::kNcclVendor,
                          .fake_collectives = RBEE_FAKE_NCCL};
  if (vendor == Vendor::cuda) return &cuda;
#endif
#ifdef RBEE_FAKE_HIP
  static const Built rocm{.library = RBEE_FAKE_HIP,
                          .old_library = RBEE_FAKE_HIP_5,
                          .variable = "RBEE_HIP_LIBRARY",
                          .open = &open_as<rocm::HipDriver>,
                          .images = &rocm::rocm_images,
                          .kernels = &rocm::rocm_kernels,
                          .products = &rocm::kHipblasLtVendor,
                          .fake_products = RBEE_FAKE_HIPBLASLT,
                          .collectives = &rocm::kRcclVendor,
                          .fake_collectives = RBEE_FAKE_RCCL};
  if (vendor == Vendor::rocm) return &rocm;
#endif
  return nullptr;
}

}  // namespace

bool is_built(Vendor vendor) {
  return built(vendor) != nullptr;
}

std::vector<Vendor> built_vendors() {
  std::vector<Vendor> out;
  for (const Vendor vendor : {Vendor::cuda, Vendor::rocm}) {
    if (is_built(vendor)) out.push_back(vendor);
  }
  return out;
}

std::span<const gpu::KernelImage> images_of(Vendor vendor) {
  return built(vendor)->images();
}

gpu::Vendor with_driver(Vendor vendor, gpu::Driver& driver) {
  return {.driver = &driver, .images = images_of(vendor), .kernels = built(vendor)->kernels};
}

const gpu::LtVendor& lt_vendor_of(Vendor vendor) {
  return *built(vendor)->products;
}

const gpu::CclVendor& ccl_vendor_of(Vendor vendor) {
  return *built(vendor)->collectives;
}

const char* fake_ccl_of(Vendor vendor) {
  return built(vendor)->fake_collectives;
}

void open_fake_group(Vendor vendor, int devices) {
  const Built& backend = *built(vendor);
  setenv(backend.variable, backend.library, 1);
  setenv(backend.collectives->override_variable, backend.fake_collectives, 1);
  setenv("RBEE_FAKE_DEVICES", cat(devices).c_str(), 1);
  open_fake_products(vendor);
}

void open_fake_products(Vendor vendor) {
  const gpu::LtVendor& products = lt_vendor_of(vendor);
  setenv(products.override_variable, built(vendor)->fake_products, 1);
  if (products.asked_by != nullptr) setenv(products.asked_by, "1", 1);
}

std::unique_ptr<gpu::Driver> open_driver(Vendor vendor, const char* library) {
  setenv(built(vendor)->variable, library, 1);
  return built(vendor)->open(nullptr);
}

FakeLibrary::FakeLibrary(Vendor vendor, const FakeOptions& options) : vendor_(vendor) {
  const Built& backend = *built(vendor);
  const char* path = options.oldest ? backend.old_library : backend.library;
  setenv(backend.variable, path, 1);
  // An installed real matrix library would compute on memory that is not a GPU's.
  setenv(backend.products->override_variable, "/none", 0);
  library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw std::runtime_error(dlerror());
  find<void(int, const char*, int, int64_t)>("rbee_fake_reset")(
      options.devices, options.architecture, options.lanes, options.memory);
}

FakeLibrary::~FakeLibrary() {
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(live_bytes(), 0);
  EXPECT_EQ(live_objects(), "");
  dlclose(library_);
}

template <typename Function>
Function* FakeLibrary::find(const char* name) const {
  return reinterpret_cast<Function*>(dlsym(library_, name));
}

std::unique_ptr<gpu::Driver> FakeLibrary::open() const {
  return built(vendor_)->open(find<Tell>("rbee_fake_tell_params"));
}

void FakeLibrary::fail(const char* cuda, const char* rocm, int nth, int status,
                       fake::Then then) const {
  find<void(const char*, int, int, fake::Then)>("rbee_fake_fail")(
      vendor_ == Vendor::cuda ? cuda : rocm, nth, status, then);
}

void FakeLibrary::tell_shared(uint32_t bytes) const {
  find<void(uint32_t)>("rbee_fake_tell_shared")(bytes);
}
void FakeLibrary::tell_ptx(int version) const {
  find<void(int)>("rbee_fake_tell_ptx")(version);
}

int64_t FakeLibrary::calls(const char* cuda, const char* rocm) const {
  return find<int64_t(const char*)>("rbee_fake_calls")(vendor_ == Vendor::cuda ? cuda : rocm);
}

int64_t FakeLibrary::live_bytes() const {
  return find<int64_t()>("rbee_fake_live_bytes")();
}

std::string FakeLibrary::live_objects() const {
  return find<const char*()>("rbee_fake_live_objects")();
}

int64_t FakeLibrary::launches() const {
  return find<int64_t()>("rbee_fake_launches")();
}

int FakeLibrary::begin_capture(void* stream, fake::CaptureMode mode) const {
  return find<int(void*, fake::CaptureMode)>("rbee_fake_begin_capture")(stream, mode);
}

void FakeLibrary::set_launch_hook(fake::LaunchHook hook) const {
  find<void(fake::LaunchHook)>("rbee_fake_set_launch_hook")(hook);
}

std::string FakeLibrary::violation() const {
  return find<const char*()>("rbee_fake_violation")();
}

}  // namespace rbee::harness

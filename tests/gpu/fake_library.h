#pragma once
// Opens a fake runtime for one test and controls it. Only this file names the backends; a build has
// one of them or both.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/kernel_table.h"
#include "backends/gpu/ccl_library.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/lt_library.h"
#include "tests/gpu/fake/fake_runtime.h"

namespace rbee::harness {

enum class Vendor : uint8_t { cuda, rocm };

bool is_built(Vendor vendor);
std::vector<Vendor> built_vendors();
// For a backend in this build.
std::span<const gpu::KernelImage> images_of(Vendor vendor);
gpu::Vendor with_driver(Vendor vendor, gpu::Driver& driver);
const gpu::LtVendor& lt_vendor_of(Vendor vendor);
const gpu::CclVendor& ccl_vendor_of(Vendor vendor);
const char* fake_ccl_of(Vendor vendor);  // path of the fake of its collective operations' library
// From now on the linked backend opens the vendor's fakes, with so many devices.
void open_fake_group(Vendor vendor, int devices);
// From now on the backend opens the fake of the vendor's matrix library.
void open_fake_products(Vendor vendor);
// The backend's driver over the library at this path, fake or real.
std::unique_ptr<gpu::Driver> open_driver(Vendor vendor, const char* library);

struct FakeOptions {
  int devices = 1;
  const char* architecture = "gfx942";
  int lanes = 64;
  int64_t memory = int64_t{1} << 30;  // bytes
  bool oldest = false;                // AMD's runtime is version 5
};

class FakeLibrary {
 public:
  explicit FakeLibrary(Vendor vendor, const FakeOptions& options = {});
  // Checks that no mistake was made and that every driver object was released.
  ~FakeLibrary();
  FakeLibrary(const FakeLibrary&) = delete;
  FakeLibrary& operator=(const FakeLibrary&) = delete;

  Vendor vendor() const { return vendor_; }
  // The backend's driver over the fake library; it reports each launch's parameter size.
  std::unique_ptr<gpu::Driver> open() const;
  // The nth call from now on of `cuda` or `rocm`, by vendor, fails with `status`.
  void fail(const char* cuda, const char* rocm, int nth, int status,
            fake::Then then = fake::Then::goes_on) const;
  // NVIDIA: the compute capability times ten that all kernels were compiled for.
  void tell_ptx(int version) const;
  // AMD: the bytes of shared memory that a block may have.
  void tell_shared(uint32_t bytes) const;
  int64_t calls(const char* cuda, const char* rocm) const;
  int64_t live_bytes() const;
  // Objects alive besides device memory; "" for none.
  std::string live_objects() const;
  int64_t launches() const;
  std::string violation() const;
  // Begins a capture in a mode that the backend does not use; returns the vendor's status.
  int begin_capture(void* stream, fake::CaptureMode mode) const;
  // Runs at every launch; null: none.
  void set_launch_hook(fake::LaunchHook hook) const;

 private:
  template <typename Function>
  Function* find(const char* name) const;

  Vendor vendor_;
  void* library_;
};

}  // namespace rbee::harness

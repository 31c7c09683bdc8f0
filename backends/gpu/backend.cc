#include "backends/gpu/backend.h"

#include "rbee/core/error.h"

namespace rbee::gpu {
namespace {

// Errors of `call` name the device.
template <typename Call>
auto of_device(DeviceId id, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    fail(error.code(), "device", id, ": ", error.what());
  }
}

struct Released {
  Driver& driver;
  int ordinal;
  ~Released() { driver.release(ordinal); }
};

}  // namespace

Backend::Backend(std::unique_ptr<Driver> (*open)(), std::span<const KernelImage> images,
                 const KernelTable& (*kernels)(const Properties&))
    : open_(open), vendor_{.driver = nullptr, .images = images, .kernels = kernels} {}

void Backend::open_once() {
  if (tried_) return;
  tried_ = true;
  try {
    driver_ = open_();
    vendor_.driver = driver_.get();
    devices_.resize(static_cast<size_t>(driver_->device_count()));
  } catch (const Error& error) {
    reason_ = error.what();
  }
}

int Backend::device_count() {
  const std::scoped_lock lock(mutex_);
  open_once();
  return static_cast<int>(devices_.size());
}

std::string Backend::unavailable_reason() {
  const std::scoped_lock lock(mutex_);
  open_once();
  return reason_;
}

std::string Backend::driver_version() {
  const std::scoped_lock lock(mutex_);
  open_once();
  return driver_ ? driver_->version() : "";
}

void Backend::require(int ordinal) {
  open_once();
  if (!driver_) throw Error(Code::device, "device", reason_);
  if (ordinal >= 0 && ordinal < static_cast<int>(devices_.size())) return;
  const std::string_view kind = name(driver_->kind());
  const std::string hidden = driver_->hidden_by();
  fail(Code::not_found, "device", kind, ':', ordinal, " is not there, only ", kind, ":0",
       devices_.size() > 1 ? cat(" to ", kind, ':', devices_.size() - 1) : "",
       hidden.empty() ? "" : cat(" (", hidden, " may hide it)"));
}

GpuDevice& Backend::device(int ordinal) {
  const std::scoped_lock lock(mutex_);
  require(ordinal);
  std::unique_ptr<GpuDevice>& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = open_device(ordinal);
  return *device;
}

DeviceOffer Backend::offer(int ordinal) {
  const std::scoped_lock lock(mutex_);
  require(ordinal);
  if (const auto& open = devices_[static_cast<size_t>(ordinal)]) {
    const Properties& known = open->properties();
    return {.name = known.name,
            .architecture = known.architecture,
            .memory = open->memory(),
            .integrated = known.integrated};
  }
  const DeviceId id{driver_->kind(), ordinal};
  const Released released{*driver_, ordinal};
  const Properties properties = of_device(id, [&] {
    driver_->use(ordinal);
    return driver_->properties(ordinal);
  });
  require_kernels(properties, id);
  return of_device(id, [&]() -> DeviceOffer {
    // Of NVIDIA's images only the driver knows whether they have code for the device.
    const KernelImage& image = *smallest_image(vendor_.images, properties.architecture);
    const std::vector<std::byte> bytes = open_image(image);
    driver_->unload_module(driver_->load_module(bytes));
    return {.name = properties.name,
            .architecture = properties.architecture,
            .memory = driver_->memory(),
            .integrated = properties.integrated};
  });
}

void Backend::require_kernels(const Properties& properties, DeviceId id) const {
  const std::span<const KernelImage> images = vendor_.images;
  if (has_image(images, properties.architecture)) return;
  fail(Code::unsupported, "device", id, ": this program has no kernels for ",
       properties.architecture, " (", properties.name, "); it has them for ",
       images.empty() ? "no device" : embedded_architectures(images, images.front().family));
}

std::unique_ptr<GpuDevice> Backend::open_device(int ordinal) {
  const DeviceId id{driver_->kind(), ordinal};
  auto device = of_device(id, [&] { return std::make_unique<GpuDevice>(vendor_, ordinal); });
  require_kernels(device->properties(), id);  // now, not when half of a model is read
  return device;
}

}  // namespace rbee::gpu

#include "backends/gpu/backend.h"

#include "rbee/core/error.h"

namespace rbee::gpu {

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

GpuDevice& Backend::device(int ordinal) {
  const std::scoped_lock lock(mutex_);
  open_once();
  if (!driver_) throw Error(Code::device, "device", reason_);
  if (ordinal < 0 || ordinal >= static_cast<int>(devices_.size())) {
    const std::string_view kind = name(driver_->kind());
    const std::string hidden = driver_->hidden_by();
    fail(Code::not_found, "device", kind, ':', ordinal, " is not there, only ", kind, ":0",
         devices_.size() > 1 ? cat(" to ", kind, ':', devices_.size() - 1) : "",
         hidden.empty() ? "" : cat(" (", hidden, " may hide it)"));
  }
  std::unique_ptr<GpuDevice>& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = open_device(ordinal);
  return *device;
}

std::unique_ptr<GpuDevice> Backend::open_device(int ordinal) {
  const DeviceId id{driver_->kind(), ordinal};
  std::unique_ptr<GpuDevice> device;
  try {
    device = std::make_unique<GpuDevice>(vendor_, ordinal);
  } catch (const Error& error) {
    fail(error.code(), "device", id, ": ", error.what());
  }
  // Now, rather than after half of a model is read.
  const Properties& properties = device->properties();
  const std::span<const KernelImage> images = vendor_.images;
  if (!has_image(images, properties.architecture)) {
    fail(Code::unsupported, "device", id, ": this program has no kernels for ",
         properties.architecture, " (", properties.name, "); it has them for ",
         images.empty() ? "no device" : embedded_architectures(images, images.front().family));
  }
  return device;
}

}  // namespace rbee::gpu

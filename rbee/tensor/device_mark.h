#pragma once
// A point in what a device's default stream was given, which the host can wait for while the device
// goes on with what came later.

#include "rbee/tensor/tensor.h"

namespace rbee {

class DeviceMark {
 public:
  // The device outlives the mark. Throws device where it gives no stream or event.
  explicit DeviceMark(Device& device);
  ~DeviceMark();
  DeviceMark(const DeviceMark&) = delete;
  DeviceMark& operator=(const DeviceMark&) = delete;

  // Behind everything that was queued so far.
  void set();
  // Until the device has done what stood in front of the last set(); at once without one.
  void wait();

 private:
  Device& device_;
  Stream stream_;  // waits for the event, and the host for this stream
  void* event_;
};

}  // namespace rbee

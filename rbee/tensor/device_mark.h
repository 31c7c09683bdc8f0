#pragma once
// A point in a device's default stream. The host can wait for it while the device goes on with
// later work.

#include "rbee/tensor/tensor.h"

namespace rbee {

class DeviceMark {
 public:
  // The device must outlive the mark. Throws device if it gives no stream or event.
  explicit DeviceMark(Device& device);
  ~DeviceMark();
  DeviceMark(const DeviceMark&) = delete;
  DeviceMark& operator=(const DeviceMark&) = delete;

  // Sets the mark after all work queued so far.
  void set();
  // Waits until the device has done all work before the last set(). Without a set() it returns at
  // once.
  void wait();

 private:
  Device& device_;
  Stream stream_;  // waits for the event, and the host for this stream
  void* event_;
};

}  // namespace rbee

#pragma once
// The buffers of a Metal device, found by an address within them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "backends/metal/objc.h"

namespace rbee::metal {

// A place within a buffer; none: `buffer` is null.
struct BufferPlace {
  Id buffer = nullptr;
  uint64_t offset = 0;
  std::byte* host = nullptr;  // where the host reads it
};

class Buffers {
 public:
  explicit Buffers(const ObjC& objc) : objc_(objc) {}

  // Takes over a buffer. Returns its device address.
  void* add_device(Retained buffer, size_t bytes);
  // The same for memory that the host uses; returns where that is.
  void* add_host(Retained buffer, size_t bytes);
  // Gives the buffer back; an empty one if it is not known.
  Retained take_device(const void* data);
  Retained take_host(const void* data);

  // The place of [data, data + bytes) of the device. Throws device if no buffer holds all of it.
  BufferPlace device_place(const void* data, size_t bytes) const;
  // The same for the host's address; none if the memory is not of a buffer.
  BufferPlace host_place(const void* data, size_t bytes) const;

  // All that a kernel may reach. `seen`: the version that the caller has; it and `all` change if
  // there is a newer one.
  bool update(uint64_t& seen, std::vector<Id>& all) const;

 private:
  struct Buffer {
    Retained object;
    size_t bytes = 0;
    std::byte* host = nullptr;
  };
  using Table = std::map<uintptr_t, Buffer>;

  BufferPlace place_in(const Table& table, const void* data, size_t bytes) const;
  Retained take(Table& table, const void* data);

  const ObjC& objc_;
  mutable std::mutex mutex_;
  Table device_, host_;   // by the first address
  uint64_t version_ = 1;  // of device_
};

}  // namespace rbee::metal

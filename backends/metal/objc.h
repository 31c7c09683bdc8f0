#pragma once
// Apple's Objective-C runtime and Metal, opened at run time: nothing of Apple's is needed to build.

#include <string>
#include <utility>

#include "backends/gpu/dynamic_library.h"
#include "backends/metal/metal_messages.h"

namespace rbee::metal {

class ObjC {
 public:
  // Opens Metal.framework and libobjc.A.dylib, or for both the file that RBEE_METAL_LIBRARY names.
  // Throws device with one line naming what is missing.
  ObjC();

  // Sends the message; a message to null does nothing and gives zero. No exception of Objective-C
  // may arise: callers check first what Metal asserts.
  template <MetalMessage message, typename... Arguments>
  typename MethodOf<message>::Returns send(Id to, Arguments... arguments) const {
    using Function = typename MethodOf<message>::Function;
    // A variadic call would pass arguments otherwise on arm64: always the method's own type.
    const auto method = reinterpret_cast<Function>(objc_msgSend);
    return method(to, selectors_[static_cast<int>(message)], arguments...);
  }

  // Throws device if there is no such class.
  Id class_named(const char* name) const;
  // An autoreleased NSString: valid until the pool ends.
  Id string(const char* text) const;
  // The text of an NSString; empty for null.
  std::string text(Id string) const;
  // "description (code)" of an NSError.
  std::string error_text(Id error) const;

  // All GPUs, as an NSArray that the caller releases.
  Id copy_devices() const { return MTLCopyAllDevices(); }
  void retain(Id object) const { objc_retain(object); }
  void release(Id object) const { objc_release(object); }
  void* push_pool() const { return objc_autoreleasePoolPush(); }
  void pop_pool(void* pool) const { objc_autoreleasePoolPop(pool); }

 private:
  gpu::DynamicLibrary metal_, objc_;
  // Named as exported.
  void (*objc_msgSend)() = nullptr;
  Id (*objc_getClass)(const char*) = nullptr;
  Selector (*sel_registerName)(const char*) = nullptr;
  Id (*objc_retain)(Id) = nullptr;
  void (*objc_release)(Id) = nullptr;
  void* (*objc_autoreleasePoolPush)() = nullptr;
  void (*objc_autoreleasePoolPop)(void*) = nullptr;
  Id (*MTLCopyAllDevices)() = nullptr;
  Selector selectors_[static_cast<int>(MetalMessage::count)] = {};
};

// What is autoreleased on this thread during its life ends with it.
class AutoreleasePool {
 public:
  explicit AutoreleasePool(const ObjC& objc) : objc_(objc), pool_(objc.push_pool()) {}
  ~AutoreleasePool() { objc_.pop_pool(pool_); }
  AutoreleasePool(const AutoreleasePool&) = delete;
  AutoreleasePool& operator=(const AutoreleasePool&) = delete;

 private:
  const ObjC& objc_;
  void* pool_;
};

// Owns one reference to an object, or to none.
class Retained {
 public:
  Retained() = default;
  // Takes over the reference that a method whose name begins with "new" or "copy" gave.
  static Retained owned(const ObjC& objc, Id object) { return Retained(objc, object); }
  // Adds a reference to what another owns, such as an autorelease pool.
  static Retained shared(const ObjC& objc, Id object) {
    objc.retain(object);
    return Retained(objc, object);
  }
  Retained(Retained&& from) noexcept
      : objc_(from.objc_), object_(std::exchange(from.object_, nullptr)) {}
  Retained& operator=(Retained&& from) noexcept {
    std::swap(objc_, from.objc_);
    std::swap(object_, from.object_);
    return *this;
  }
  ~Retained() {
    if (object_ != nullptr) objc_->release(object_);
  }

  Id get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Retained(const ObjC& objc, Id object) : objc_(&objc), object_(object) {}

  const ObjC* objc_ = nullptr;
  Id object_ = nullptr;
};

}  // namespace rbee::metal

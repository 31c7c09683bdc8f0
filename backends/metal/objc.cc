#include "backends/metal/objc.h"

#include "rbee/core/error.h"

namespace rbee::metal {
namespace {

constexpr const char* kOverride = "RBEE_METAL_LIBRARY";

}  // namespace

// macOS keeps both in its shared cache: there are no such files, but they open by these names.
ObjC::ObjC()
    : metal_(kOverride, {"/System/Library/Frameworks/Metal.framework/Metal"}),
      objc_(kOverride, {"/usr/lib/libobjc.A.dylib"}) {
  for (const gpu::DynamicLibrary* library : {&metal_, &objc_}) {
    if (*library) continue;
    fail(Code::device, "metal", "Apple's Metal is not installed (", library->reason(), ")");
  }
#define RB_BIND(library, name) library.bind(name, #name)
  RB_BIND(objc_, objc_msgSend);
  RB_BIND(objc_, objc_getClass);
  RB_BIND(objc_, sel_registerName);
  RB_BIND(objc_, objc_retain);
  RB_BIND(objc_, objc_release);
  RB_BIND(objc_, objc_autoreleasePoolPush);
  RB_BIND(objc_, objc_autoreleasePoolPop);
  RB_BIND(metal_, MTLCopyAllDevices);
#undef RB_BIND
  const std::string missing = cat(objc_.missing(), metal_.missing());
  if (!missing.empty()) {
    fail(Code::device, "metal", metal_.name(), " is too old: macOS 13 is needed (it lacks ",
         missing, ")");
  }
  for (int i = 0; i < static_cast<int>(MetalMessage::count); ++i) {
    selectors_[i] = sel_registerName(kSelectors[i]);
  }
}

Id ObjC::class_named(const char* name) const {
  Id found = objc_getClass(name);
  if (found == nullptr) fail(Code::device, "metal", "there is no class ", name);
  return found;
}

Id ObjC::string(const char* text) const {
  return send<MetalMessage::string_from>(class_named("NSString"), text);
}

std::string ObjC::text(Id string) const {
  const char* bytes = send<MetalMessage::string_text>(string);
  return bytes != nullptr ? bytes : "";
}

std::string ObjC::error_text(Id error) const {
  if (error == nullptr) return "no reason was given";
  return cat(text(send<MetalMessage::error_text>(error)), " (",
             send<MetalMessage::error_code>(error), ")");
}

}  // namespace rbee::metal

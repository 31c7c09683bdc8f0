// The registry of devices that names the fake GPU's cores, and the objects of CoreFoundation that
// it gives: objects of the fake's classes, so that those nobody released show.

#include <objc/runtime.h>

#include "tests/gpu/fake/fake_runtime.h"
#include "tests/gpu/fake/metal_objects.h"

using namespace rbee::fake;

@interface FakeNumber : FakeObject {
 @public
  long long value;
}
@end
@implementation FakeNumber
@end

namespace {

constexpr long long kCores = 10;
constexpr unsigned kGpu = 77;  // its entry
constexpr unsigned long kTypeOfText = 7, kTypeOfNumber = 22;
constexpr long kSInt64 = 4;

bool given = false;  // the entry, and not released

id with_text(const char* bytes) {
  NSString* made = create([NSString class]);
  made->text = new std::string(bytes);
  return made;
}

const std::string& text_of(id object) {
  return *static_cast<NSString*>(object)->text;
}

}  // namespace

extern "C" {

void objc_release(id object);

id IOServiceMatching(const char* name) {
  return with_text(name);
}
unsigned IOServiceGetMatchingService(unsigned, id matching) {
  const bool known = text_of(matching) == "AGXAccelerator";
  objc_release(matching);
  if (Runtime::instance().enter("IOServiceGetMatchingService") != kSuccess || !known) return 0;
  given = true;
  return kGpu;
}
id IORegistryEntryCreateCFProperty(unsigned entry, id key, id, unsigned) {
  if (entry != kGpu || !given) Runtime::instance().violate("an entry that is none");
  const int status = Runtime::instance().enter("IORegistryEntryCreateCFProperty");
  if (status != kSuccess || text_of(key) != "gpu-core-count") return nil;
  FakeNumber* made = create([FakeNumber class]);
  made->value = kCores;
  return made;
}
int IOObjectRelease(unsigned entry) {
  if (entry != kGpu || !given) Runtime::instance().violate("release of an entry that is none");
  given = false;
  return 0;
}
id CFStringCreateWithCString(id, const char* bytes, unsigned) {
  return with_text(bytes);
}
unsigned long CFGetTypeID(id object) {
  return object_getClass(object) == [FakeNumber class] ? kTypeOfNumber : kTypeOfText;
}
unsigned long CFNumberGetTypeID() {
  return kTypeOfNumber;
}
unsigned char CFNumberGetValue(id number, long type, void* value) {
  if (type != kSInt64) Runtime::instance().violate("a number's value of another type");
  std::memcpy(value, &static_cast<FakeNumber*>(number)->value, sizeof(long long));
  return 1;
}
void CFRelease(id object) {
  objc_release(object);
}
}

#pragma once
// The objects of the fake Metal (fake_metal.mm) and what they share (fake_metal_state.mm).

#include <objc/objc.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/gpu/fake/gpu_memory.h"
#include "tests/gpu/fake/metal_text.h"

struct MTLSize {
  unsigned long width, height, depth;
};
struct NSRange {
  unsigned long location, length;
};

@class FakeQueue, FakeCommands, FakeEncoder;

namespace rbee::fake {

struct Dispatch {
  TextKernel kernel;
  const MetalText* text = nullptr;
  MTLSize grid = {};
  uint32_t threads = 0, dynamic_bytes = 0;
  std::vector<unsigned char> params, grid_bytes;
  std::vector<id> resources;
};

// A piece of a command buffer's work. Gives what went wrong; empty: nothing.
using Work = std::function<std::string()>;

struct Fake {
  static Fake& instance();

  std::string run(const Dispatch& dispatch);
  // Runs what was committed to the queue up to these commands.
  void run_until(FakeCommands* commands);
  // Runs the next commands of a queue of which none are running; false if there are none.
  bool run_another();
  std::string live_objects();

  std::recursive_mutex mutex;                 // the device does one thing at a time
  std::unordered_map<id, const char*> alive;  // with the names of their classes
  std::vector<id> graves;
  std::vector<FakeQueue*> queues;
  std::atomic<int64_t> bytes{0};
  int64_t launches = 0;

 private:
  void run_first(FakeQueue* queue);
};

id create(Class cls);  // with one reference
bool is_alive(id object);
id autorelease(id object);

}  // namespace rbee::fake

__attribute__((objc_root_class))
@interface FakeObject {
  Class isa;
 @public
  int references;
}
+ (Class)class;
+ (id)new;
- (void)retain;
- (void)release;
- (void)gone;  // its last reference was released
@end

@interface NSString : FakeObject {
 @public
  std::string* text;
}
+ (NSString*)stringWithUTF8String:(const char*)bytes;
- (const char*)UTF8String;
@end

@interface NSError : FakeObject {
 @public
  std::string* what;
  long number;
}
- (NSString*)localizedDescription;
- (long)code;
@end

namespace rbee::fake {
NSError* error_of(const std::string& what, long code);
}

@interface NSArray : FakeObject {
 @public
  std::vector<id>* items;
}
+ (NSArray*)arrayWithObject:(id)object;
- (unsigned long)count;
- (id)objectAtIndex:(unsigned long)index;
@end

@interface NSURL : FakeObject {
 @public
  std::string* path;
}
+ (NSURL*)fileURLWithPath:(NSString*)path;
@end

@interface NSProcessInfo : FakeObject
+ (NSProcessInfo*)processInfo;
- (NSString*)operatingSystemVersionString;
@end

@interface MTLCompileOptions : FakeObject {
 @public
  unsigned long language;
  bool precise;
}
- (void)setLanguageVersion:(unsigned long)version;
- (void)setFastMathEnabled:(bool)on;
@end

@interface FakeBuffer : FakeObject {
 @public
  rbee::fake::GpuPiece piece;
}
@end

@interface FakeFunction : FakeObject {
 @public
  const rbee::fake::MetalText* text;
  rbee::fake::TextKernel kernel;
}
@end

@interface FakePipeline : FakeFunction
@end

// Of functions by the text that they were compiled from, and their names.
@interface FakeArchive : FakeObject {
 @public
  std::set<std::string>* functions;
}
@end

@interface MTLBinaryArchiveDescriptor : FakeObject {
 @public
  NSURL* url;
}
- (void)setUrl:(NSURL*)file;
@end

@interface MTLComputePipelineDescriptor : FakeObject {
 @public
  FakeFunction* function;
  NSArray* archives;
}
- (void)setComputeFunction:(FakeFunction*)made;
- (void)setBinaryArchives:(NSArray*)list;
@end

@interface FakeLibrary : FakeObject {
 @public
  const rbee::fake::MetalText* text;
}
@end

@interface FakeEvent : FakeObject {
 @public
  unsigned long value;
}
@end

@interface FakeEncoder : FakeObject {
 @public
  FakeCommands* commands;
  bool ended;
  rbee::fake::Dispatch* now;
}
@end

@interface FakeComputeEncoder : FakeEncoder {
  FakePipeline* pipeline;
}
@end

@interface FakeBlitEncoder : FakeEncoder
@end

@interface FakeCommands : FakeObject {
 @public
  FakeQueue* queue;
  FakeEncoder* open;
  bool committed, completed;
  std::vector<rbee::fake::Work>* work;
  std::string* fault;  // empty: none
  long number;         // of the fault
  double end;
}
@end

@interface FakeQueue : FakeObject {
 @public
  std::deque<FakeCommands*>* pending;
  bool running;
}
@end

@interface FakeDevice : FakeObject
- (unsigned long)maxBufferLength;
- (FakePipeline*)newComputePipelineStateWithFunction:(FakeFunction*)function error:(id*)error;
@end

// The fake's binary archives: files that name the functions in them.

#include <fstream>
#include <functional>

#include "tests/gpu/fake/fake_runtime.h"
#include "tests/gpu/fake/metal_objects.h"

using namespace rbee::fake;

namespace {

constexpr const char* kFirstLine = "fake archive";
constexpr unsigned long kFailOnMiss = 4;

std::string entry_of(const FakeFunction* function) {
  return std::to_string(std::hash<std::string>()(*function->text->source));
}

void replace(FakeObject* held, FakeObject* by) {
  if (by != nil) [by retain];
  if (held != nil) [held release];
}

}  // namespace

@implementation FakeArchive
- (bool)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                            error:(id*)error {
  const char* call = "addComputePipelineFunctionsWithDescriptor:error:";
  if (Runtime::instance().enter(call) != kSuccess || descriptor->function == nil) {
    *error = error_of("the archive takes no pipeline", 3);
    return false;
  }
  functions->insert(entry_of(descriptor->function));
  return true;
}
- (bool)serializeToURL:(NSURL*)file error:(id*)error {
  const int status = Runtime::instance().enter("serializeToURL:error:");
  std::ofstream out(*file->path);
  out << kFirstLine << '\n';
  for (const std::string& function : *functions) out << function << '\n';
  if (status == kSuccess && out.flush()) return true;
  *error = error_of("the archive cannot be written", 4);
  return false;
}
- (void)gone {
  delete functions;
}
@end

@implementation MTLBinaryArchiveDescriptor
- (void)setUrl:(NSURL*)file {
  replace(url, file);
  url = file;
}
- (void)gone {
  replace(url, nil);
}
@end

@implementation MTLComputePipelineDescriptor
- (void)setComputeFunction:(FakeFunction*)made {
  replace(function, made);
  function = made;
}
- (void)setBinaryArchives:(NSArray*)list {
  replace(archives, list);
  archives = list;
}
- (void)gone {
  replace(function, nil);
  replace(archives, nil);
}
@end

@implementation FakeDevice (Archives)
- (FakeArchive*)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor
                                         error:(id*)error {
  auto functions = std::make_unique<std::set<std::string>>();
  if (descriptor->url != nil) {
    std::ifstream in(*descriptor->url->path);
    std::string line;
    if (!std::getline(in, line) || line != kFirstLine) {
      *error = error_of("the file is no archive", 1);
      return nil;
    }
    while (std::getline(in, line)) functions->insert(line);
  }
  FakeArchive* made = create([FakeArchive class]);
  made->functions = functions.release();
  return made;
}
- (FakePipeline*)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                               options:(unsigned long)options
                                            reflection:(id*)reflection
                                                 error:(id*)error {
  if (reflection != nullptr || descriptor->function == nil) {
    Runtime::instance().violate("a pipeline's descriptor without a function, or with reflection");
  }
  bool held = false;
  if (descriptor->archives != nil) {
    for (id archive : *descriptor->archives->items) {
      held |=
          static_cast<FakeArchive*>(archive)->functions->contains(entry_of(descriptor->function));
    }
  }
  if (options == kFailOnMiss && !held) {
    *error = error_of("no archive has the function", 2);
    return nil;
  }
  return [self newComputePipelineStateWithFunction:descriptor->function error:error];
}
@end

#include "backends/gpu/ccl_library.h"

#include <cstdlib>

#include "rbee/core/error.h"

namespace rbee::gpu {
namespace {

std::string version_text(int version) {
  return cat(version / 10000, '.', version % 10000 / 100, '.', version % 100);
}

}  // namespace

CclLibrary::CclLibrary(const CclVendor& vendor)
    : vendor_(vendor), file_(vendor.override_variable, vendor.files) {
  if (!file_) {
    refusal_ = cat(vendor.name, " is not installed (", file_.reason(), "); ",
                   vendor.override_variable, " may name its file");
    return;
  }
#define RB_BIND(name, parameters) file_.bind(fn_.name, cat(vendor.prefix, #name).c_str());
  RB_CCL_FUNCTIONS(RB_BIND)
#undef RB_BIND
  if (!file_.missing().empty()) {
    refusal_ = cat(file_.name(), " lacks ", file_.missing());
  } else if (fn_.GetVersion(&version_) != kCclSuccess || version_ < kCclOldest) {
    refusal_ = cat(vendor.name, " ", version_text(version_), " (", file_.name(),
                   ") is too old: ", version_text(kCclOldest), " is needed");
  }
  // The library reads it when the first communicator is made.
  setenv("NCCL_NVLS_ENABLE", "0", 0);  // NOLINT(concurrency-mt-unsafe): before ranks start
}

std::string CclLibrary::version() const {
  return refusal_.empty() ? cat(vendor_.name, " ", version_text(version_)) : "";
}

void CclLibrary::require() const {
  if (!refusal_.empty()) fail(Code::unsupported, "group", "ranks on GPUs need ", refusal_);
}

CclUniqueId CclLibrary::unique_id() const {
  require();
  CclUniqueId out{};
  check(fn_.GetUniqueId(&out), "GetUniqueId", nullptr);
  return out;
}

void CclLibrary::check(int status, const char* call, CclComm comm) const {
  if (status == kCclSuccess) return;
  const char* const text = fn_.GetErrorString(status);
  const char* const last = fn_.GetLastError(comm);
  const bool ours = status == kCclInvalidArgument || status == kCclInvalidUsage;
  fail(ours ? Code::internal : Code::device, cat(vendor_.prefix, call),
       text != nullptr ? text : "status", " (", status,
       last != nullptr && *last != '\0' ? cat(", ", last) : "", ")");
}

}  // namespace rbee::gpu

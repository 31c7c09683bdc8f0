#include "workers/llm/rank_devices.h"

#include <algorithm>
#include <charconv>

#include "rbee/core/error.h"
#include "rbee/core/experimental.h"

namespace rbee::workers {
namespace {

constexpr const char* kOp = "--device";

const BackendInfo& backend_of(std::span<const BackendInfo> backends, DeviceKind kind) {
  const auto found = std::ranges::find(backends, kind, &BackendInfo::kind);
  if (found == backends.end()) fail(Code::not_found, kOp, name(kind), " is not in this program");
  return *found;
}

std::vector<DeviceId> from(DeviceId first, int before, int ranks) {
  std::vector<DeviceId> out;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool cpu = first.kind == DeviceKind::cpu;
    out.push_back({first.kind, cpu ? 0 : first.ordinal + before + rank});
  }
  return out;
}

// A part without a kind has that of the part before.
DeviceId device_in(std::string_view part, const std::vector<DeviceId>& before) {
  int ordinal = 0;
  const char* const end = part.data() + part.size();
  const auto [ptr, error] = std::from_chars(part.data(), end, ordinal);
  const bool number = error == std::errc{} && ptr == end && ordinal >= 0;
  if (number && !before.empty()) return {before.front().kind, ordinal};
  const auto id = parse_device_id(part);
  check(id.has_value(), kOp, "'", part, "' is none of auto, cpu, cuda:N, rocm:N, metal:N");
  return *id;
}

std::vector<DeviceId> listed(std::string_view text, int ranks) {
  std::vector<DeviceId> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const DeviceId id = device_in(text.substr(at, end - at), out);
    check(out.empty() || id.kind == out.front().kind, kOp, "'", text, "' has devices of two kinds");
    check(std::ranges::find(out, id) == out.end(), kOp, "'", text, "' has ", id,
          " twice: every rank needs a device of its own");
    out.push_back(id);
    at = end + 1;
  }
  check(std::ssize(out) == ranks, kOp, "'", text, "' has ", out.size(), " devices for ", ranks,
        " ranks");
  return out;
}

// Of backends that cannot be used, and of experimental ones: none.
DeviceId first_of_most(std::span<const BackendInfo> backends) {
  DeviceId first;
  int most = 0;
  for (const BackendInfo& backend : backends) {
    const bool automatic = backend.kind != DeviceKind::cpu && experimental(backend.kind).empty();
    const int count = automatic ? backend.device_count() : 0;
    if (count > most) first = {backend.kind, 0};
    most = std::max(most, count);
  }
  return first;
}

}  // namespace

std::vector<DeviceId> rank_devices(std::span<const BackendInfo> backends, std::string_view text,
                                   int ranks, int before) {
  std::vector<DeviceId> out;
  if (text == "auto") {
    out = from(first_of_most(backends), before, ranks);
  } else if (text.find(',') != std::string_view::npos) {
    out = listed(text, ranks);
  } else {
    out = from(device_in(text, {}), before, ranks);
  }
  const DeviceKind kind = out.front().kind;
  if (kind == DeviceKind::cpu) return out;
  const BackendInfo& backend = backend_of(backends, kind);
  const int count = backend.device_count();
  if (count == 0) fail(Code::device, kOp, backend.unavailable_reason());
  for (const DeviceId& id : out) {
    if (id.ordinal < count) continue;
    fail(Code::not_found, kOp, ranks, " ranks need ", ranks, " devices, and ", id,
         " is not there, only ", DeviceId{kind, 0}, count > 1 ? cat(" to ", count - 1) : "",
         "; --device cpu takes processors");
  }
  return out;
}

}  // namespace rbee::workers

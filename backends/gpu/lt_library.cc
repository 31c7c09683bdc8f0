#include "backends/gpu/lt_library.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "backends/gpu/gpu_device.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::gpu {
namespace {

constexpr uint64_t kMostWorkspace = uint64_t{64} << 20;

int number_of(DType dtype) {
  const int number = lt_number(dtype);
  if (number < 0) fail(Code::internal, "lt_library", "no number for dtype ", dtype);
  return number;
}

bool asked_for(const LtVendor& vendor) {
  if (vendor.asked_by == nullptr) return true;
  const char* text = std::getenv(vendor.asked_by);  // NOLINT(concurrency-mt-unsafe): never written
  return text != nullptr && std::string_view(text) == "1";
}

// The largest power of two, up to 256, that divides the address: kernels may assume it.
uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return uint32_t{1} << std::countr_zero(address);
}

// If there is none, factor 0 keeps the library from reading d.
const void* added_of(const LtProduct& p) {
  return p.added != nullptr ? p.added : p.d;
}

// Asks the library; errors name the product's operation and the device.
template <typename Ask>
auto named(const LtProduct& p, DeviceId device, const Ask& ask) {
  try {
    return ask();
  } catch (const Error& error) {
    fail(error.code(), p.op, "on ", device, ": ", error.what());
  }
}

}  // namespace

LtLibrary::LtLibrary(const LtVendor& vendor)
    : vendor_(vendor),
      numbers_(vendor.numbers),
      file_(asked_for(vendor) ? DynamicLibrary(vendor.override_variable, vendor.files)
                              : DynamicLibrary()),
      no_algorithm_(cat(vendor.name, " has no algorithm for it")),
      not_started_(cat(vendor.name, " is not started while a step is captured")) {
  if (!asked_for(vendor)) {
    refusal_ = cat(vendor_.name, " is used with ", vendor_.asked_by, "=1 alone");
    return;
  }
  if (!file_) {
    refusal_ = cat(vendor_.name, " is not installed (", file_.reason(), ")");
    return;
  }
#define RB_BIND(name, parameters) file_.bind(fn_.name, cat(vendor_.prefix, #name).c_str());
  RB_LT_FUNCTIONS(RB_BIND)
#undef RB_BIND
  if (!file_.missing().empty()) refusal_ = cat(file_.name(), " lacks ", file_.missing());
}

Code LtLibrary::code_of(int status) const {
  if (status == numbers_.alloc_failed) return Code::out_of_memory;
  if (status == numbers_.not_supported || status == numbers_.arch_mismatch) {
    return Code::unsupported;
  }
  if (status == numbers_.invalid_value || status == kLtNotInitialized) return Code::internal;
  return Code::device;
}

void LtLibrary::check(int status, const char* call) const {
  if (status != 0) fail(code_of(status), cat(vendor_.prefix, call), "status ", status);
}

// The library may have none for a device that it does not support.
LtLibrary::OnDevice LtLibrary::start(DeviceId id) const {
  OnDevice out{.library = {nullptr, fn_.Destroy}, .refusal = {}};
  if (vendor_.why_not != nullptr) {
    const std::string& why = vendor_.why_not(id.ordinal);
    if (!why.empty()) {
      out.refusal = cat(vendor_.name, " ", why);
      log(LogLevel::warn, "a library of products is not used",
          {{"device", cat(id)}, {"why", out.refusal}});
      return out;
    }
  }
  LtHandle library = nullptr;
  const int status = fn_.Create(&library);
  if (status == numbers_.alloc_failed) check(status, "Create");  // there may be memory later
  out.library.reset(library);
  if (status != 0) {
    out.refusal = cat(vendor_.name, " does not start on ", id, " (status ", status, ")");
  }
  return out;
}

const LtLibrary::OnDevice* LtLibrary::on_device(const GpuDevice& device) {
  const DeviceId id = device.id();
  const auto known = on_devices_.find(id.ordinal);
  if (known != on_devices_.end()) return &known->second;
  if (device.capturing()) return nullptr;
  return &on_devices_.emplace(id.ordinal, start(id)).first->second;
}

LtLibrary::Key LtLibrary::key_of(const LtProduct& p, int ordinal) const {
  return {ordinal,
          static_cast<int64_t>(p.type),
          static_cast<int64_t>(p.result),
          p.transpose_a,
          p.transpose_b,
          p.m,
          p.n,
          p.k,
          p.a_pitch,
          p.b_pitch,
          p.d_pitch,
          p.batch,
          p.a_stride,
          p.b_stride,
          p.d_stride,
          p.bias != nullptr,
          p.added != nullptr,
          alignment_of(p.a),
          alignment_of(p.b),
          alignment_of(added_of(p)),
          alignment_of(p.d)};
}

LtLibrary::Owned LtLibrary::make_operation(const LtProduct& p) const {
  const bool wide = p.type == DType::f64;
  LtHandle made = nullptr;
  check(fn_.MatmulDescCreate(&made, wide ? numbers_.compute_f64 : numbers_.compute_f32,
                             number_of(wide ? DType::f64 : DType::f32)),
        "MatmulDescCreate");
  Owned operation(made, fn_.MatmulDescDestroy);
  const auto set = [&](int attribute, auto value) {
    check(
        fn_.MatmulDescSetAttribute(made, attribute, static_cast<const void*>(&value), sizeof value),
        "MatmulDescSetAttribute");
  };
  set(numbers_.transpose_a, p.transpose_a ? numbers_.transpose : numbers_.no_transpose);
  set(numbers_.transpose_b, p.transpose_b ? numbers_.transpose : numbers_.no_transpose);
  if (p.bias != nullptr) {
    set(numbers_.epilogue, kLtBiasEpilogue);
    set(numbers_.bias_type, number_of(p.result));
    set(numbers_.bias_pointer, p.bias);
  }
  return operation;
}

LtLibrary::Owned LtLibrary::make_layout(DType type, int64_t rows, int64_t columns, int64_t pitch,
                                        int64_t batch, int64_t stride) const {
  LtHandle made = nullptr;
  check(fn_.MatrixLayoutCreate(&made, number_of(type), static_cast<uint64_t>(rows),
                               static_cast<uint64_t>(columns), pitch),
        "MatrixLayoutCreate");
  Owned layout(made, fn_.MatrixLayoutDestroy);
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    check(fn_.MatrixLayoutSetAttribute(made, numbers_.batch_count, &count, sizeof count),
          "MatrixLayoutSetAttribute");
    check(fn_.MatrixLayoutSetAttribute(made, numbers_.batch_stride, &stride, sizeof stride),
          "MatrixLayoutSetAttribute");
  }
  return layout;
}

LtLibrary::Owned LtLibrary::make_preference(const LtProduct& p) const {
  LtHandle made = nullptr;
  check(fn_.MatmulPreferenceCreate(&made), "MatmulPreferenceCreate");
  Owned preference(made, fn_.MatmulPreferenceDestroy);
  const auto set = [&](int attribute, auto value) {
    check(fn_.MatmulPreferenceSetAttribute(made, attribute, static_cast<const void*>(&value),
                                           sizeof value),
          "MatmulPreferenceSetAttribute");
  };
  set(kLtWorkspaceLimit, kMostWorkspace);
  // The library must not round parts of a sum to the result's type before it adds them.
  constexpr uint32_t kSchemes = kLtReduceInPlace | kLtReduceComputeType;
  if (numbers_.reduction_schemes != 0) set(numbers_.reduction_schemes, kSchemes);
  if (numbers_.min_alignment_a != 0) {
    set(numbers_.min_alignment_a, alignment_of(p.a));
    set(numbers_.min_alignment_a + 1, alignment_of(p.b));
    set(numbers_.min_alignment_a + 2, alignment_of(added_of(p)));
    set(numbers_.min_alignment_a + 3, alignment_of(p.d));
  }
  return preference;
}

LtLibrary::Plan LtLibrary::make_plan(const LtProduct& p, LtHandle library) const {
  Plan plan;
  try {
    plan.operation = make_operation(p);
    plan.a = make_layout(p.type, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.a_pitch,
                         p.batch, p.a_stride);
    plan.b = make_layout(p.type, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.b_pitch,
                         p.batch, p.b_stride);
    plan.d = make_layout(p.result, p.m, p.n, p.d_pitch, p.batch, p.d_stride);
    find_algorithm(p, library, plan);
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;  // the library cannot even describe it
  }
  return plan;
}

void LtLibrary::find_algorithm(const LtProduct& p, LtHandle library, Plan& plan) const {
  const Owned preference = make_preference(p);
  std::vector<std::byte> result(numbers_.algorithm_bytes + sizeof(LtResultTail));
  int found = 0;
  const int status = fn_.MatmulAlgoGetHeuristic(library, plan.operation.get(), plan.a.get(),
                                                plan.b.get(), plan.d.get(), plan.d.get(),
                                                preference.get(), 1, result.data(), &found);
  LtResultTail tail;
  std::memcpy(&tail, result.data() + numbers_.algorithm_bytes, sizeof tail);
  if (status == numbers_.alloc_failed) check(status, "MatmulAlgoGetHeuristic");
  // "Not supported" and its kin are answers here, not failures.
  if (status != 0 || found == 0 || tail.status != 0) return;
  result.resize(numbers_.algorithm_bytes);
  plan.algorithm = std::move(result);
  plan.workspace = tail.workspace;
}

LtLibrary::Plan& LtLibrary::plan_of(const LtProduct& p, const OnDevice& device, int ordinal) {
  Key key = key_of(p, ordinal);
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;
  return plans_.emplace(std::move(key), make_plan(p, device.library.get())).first->second;
}

const char* LtLibrary::refusal(const LtProduct& p, Stream& stream) {
  GpuDevice& device = device_of(stream);
  return named(p, device.id(), [&]() -> const char* {
    device.use();
    const std::scoped_lock lock(mutex_);
    const OnDevice* here = on_device(device);
    if (here == nullptr) return not_started_.c_str();
    if (!here->refusal.empty()) return here->refusal.c_str();
    const bool has = !plan_of(p, *here, device.id().ordinal).algorithm.empty();
    return has ? nullptr : no_algorithm_.c_str();
  });
}

bool LtLibrary::run(const LtProduct& p, Stream& stream) {
  GpuDevice& device = device_of(stream);
  return named(p, device.id(), [&] {
    device.use();
    const std::scoped_lock lock(mutex_);
    const OnDevice* here = on_device(device);
    if (here == nullptr || !here->refusal.empty()) return false;
    Plan& plan = plan_of(p, *here, device.id().ordinal);
    return !plan.algorithm.empty() && multiply(p, here->library.get(), plan, stream);
  });
}

bool LtLibrary::multiply(const LtProduct& p, LtHandle library, Plan& plan, Stream& stream) const {
  if (p.bias != nullptr) {
    check(fn_.MatmulDescSetAttribute(plan.operation.get(), numbers_.bias_pointer,
                                     static_cast<const void*>(&p.bias), sizeof p.bias),
          "MatmulDescSetAttribute");
  }
  const Scratch workspace(stream, plan.workspace);
  const float added = p.added != nullptr ? 1 : 0;
  const float factors[2] = {1, added};
  const double wide_factors[2] = {1, added};
  const bool wide = p.type == DType::f64;
  const void* alpha = wide ? static_cast<const void*>(&wide_factors[0]) : &factors[0];
  const void* beta = wide ? static_cast<const void*>(&wide_factors[1]) : &factors[1];
  device_of(stream).note_kernel(p.op, vendor_.name, stream);
  const int status =
      fn_.Matmul(library, plan.operation.get(), alpha, p.a, plan.a.get(), p.b, plan.b.get(), beta,
                 added_of(p), plan.d.get(), p.d, plan.d.get(), plan.algorithm.data(),
                 workspace.as<void>(), plan.workspace, static_cast<LtHandle>(stream.handle));
  if (status != 0 && code_of(status) == Code::unsupported) {  // such a status queues nothing
    plan.algorithm.clear();
    return false;
  }
  check(status, "Matmul");
  return true;
}

}  // namespace rbee::gpu

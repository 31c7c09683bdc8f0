// cuBLASLt (with RB_FAKE_CUBLASLT) or hipBLASLt over memory that the host can read, like the
// fake runtimes': enough of the interface to check the calls of backends/gpu/lt_library.
// Statuses are the libraries'; whatever they would refuse is refused here. RBEE_FAKE_LT names a
// file: once it says "CALL STATUS", that call only returns the status; a heuristic that returns
// success this way has found nothing. RBEE_FAKE_LT_EXIT: Create ends the process with this
// status.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "backends/shared/float_types.h"

namespace {

#ifdef RB_FAKE_CUBLASLT
#define RB_LT(name) cublasLt##name
enum Number { kComputeF32 = 68, kComputeF64 = 70, kPlain = 0, kTransposed = 1 };
enum Attribute { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBias = 8, kBiasType = 26 };
enum LayoutAttribute { kBatch = 5, kStride = 6 };
constexpr size_t kAlgorithmBytes = 64;
#else
#define RB_LT(name) hipblasLt##name
enum Number { kComputeF32 = 2, kComputeF64 = 7, kPlain = 111, kTransposed = 112 };
enum Attribute { kTransposeA = 0, kTransposeB = 1, kEpilogue = 2, kBias = 3, kBiasType = 4 };
enum LayoutAttribute { kBatch = 0, kStride = 1 };
constexpr size_t kAlgorithmBytes = 24;
#endif
constexpr int kSuccess = 0, kInvalid = 7;
constexpr size_t kWorkspace = 4096;
constexpr unsigned char kMark = 0xa5;  // fills the algorithms it returned

struct Operation {
  int compute, scale;
  int transpose_a = kPlain, transpose_b = kPlain;
  uint32_t epilogue = 1;
  int bias_type = -1;
  const void* bias = nullptr;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t pitch;
  int32_t batch = 1;
  int64_t stride = 0;
};

double load(int type, const void* data, int64_t at) {
  using namespace rbee::shared;
  switch (type) {
    case 0:
      return static_cast<const float*>(data)[at];
    case 1:
      return static_cast<const double*>(data)[at];
    case 2:
      return to_float(static_cast<const f16*>(data)[at]);
    default:
      return to_float(static_cast<const bf16*>(data)[at]);
  }
}

void store(int type, void* data, int64_t at, double value) {
  using namespace rbee::shared;
  switch (type) {
    case 0:
      static_cast<float*>(data)[at] = static_cast<float>(value);
      break;
    case 1:
      static_cast<double*>(data)[at] = value;
      break;
    case 2:
      static_cast<f16*>(data)[at] = from_float<f16>(static_cast<float>(value));
      break;
    default:
      static_cast<bf16*>(data)[at] = from_float<bf16>(static_cast<float>(value));
  }
}

// Element (row, column) of op(matrix).
double element(const Layout& layout, int operation, const void* data, int64_t matrix, int64_t row,
               int64_t column) {
  if (operation == kTransposed) std::swap(row, column);
  return load(layout.type, data, matrix * layout.stride + column * layout.pitch + row);
}

uint64_t rows_of(const Layout& layout, int operation) {
  return operation == kTransposed ? layout.columns : layout.rows;
}
uint64_t columns_of(const Layout& layout, int operation) {
  return operation == kTransposed ? layout.rows : layout.columns;
}

bool sound(const Operation& o, const Layout& a, const Layout& b, const Layout& d) {
  for (const Layout* layout : {&a, &b, &d}) {
    if (layout->pitch < static_cast<int64_t>(layout->rows) || layout->rows == 0) return false;
    if (layout->columns == 0 || layout->batch != d.batch) return false;
  }
  const bool wide = a.type == 1;
  if (o.compute != (wide ? kComputeF64 : kComputeF32) || o.scale != (wide ? 1 : 0)) return false;
  if (a.type != b.type || (d.type != a.type && d.type != 0)) return false;
  if (o.epilogue != 1 && (o.epilogue != 4 || o.bias == nullptr || o.bias_type != d.type)) {
    return false;
  }
  return rows_of(a, o.transpose_a) == d.rows && columns_of(b, o.transpose_b) == d.columns &&
         columns_of(a, o.transpose_a) == rows_of(b, o.transpose_b);
}

// The status that the file tells this call to return.
std::optional<int> told(const char* call) {
  const char* file = std::getenv("RBEE_FAKE_LT");
  std::string name;
  int status = kSuccess;
  if (file == nullptr || !(std::ifstream(file) >> name >> status) || name != call) return {};
  return status;
}

template <typename T>
int set(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof to) return kInvalid;
  std::memcpy(static_cast<void*>(&to), value, bytes);
  return kSuccess;
}

}  // namespace

#define ENTER(call) \
  if (const std::optional<int> status = told(call)) return *status

extern "C" {

int RB_LT(Create)(void** library) {
  if (const char* status = std::getenv("RBEE_FAKE_LT_EXIT")) std::exit(std::atoi(status));
  ENTER("Create");
  static char one;
  *library = &one;
  return kSuccess;
}

int RB_LT(Destroy)(void*) {
  return kSuccess;
}

int RB_LT(MatmulDescDestroy)(void* operation) {
  delete static_cast<Operation*>(operation);
  return kSuccess;
}

int RB_LT(MatrixLayoutDestroy)(void* layout) {
  delete static_cast<Layout*>(layout);
  return kSuccess;
}

int RB_LT(MatmulDescCreate)(void** operation, int compute, int scale) {
  ENTER("MatmulDescCreate");
  *operation = new Operation{compute, scale};
  return kSuccess;
}

int RB_LT(MatmulDescSetAttribute)(void* operation, int attribute, const void* value, size_t bytes) {
  ENTER("MatmulDescSetAttribute");
  auto& o = *static_cast<Operation*>(operation);
  switch (attribute) {
    case kTransposeA:
      return set(o.transpose_a, value, bytes);
    case kTransposeB:
      return set(o.transpose_b, value, bytes);
    case kEpilogue:
      return set(o.epilogue, value, bytes);
    case kBias:
      return set(o.bias, value, bytes);
    case kBiasType:
      return set(o.bias_type, value, bytes);
    default:
      return kInvalid;
  }
}

int RB_LT(MatrixLayoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns,
                              int64_t pitch) {
  ENTER("MatrixLayoutCreate");
  *layout = new Layout{type, rows, columns, pitch};
  return kSuccess;
}

int RB_LT(MatrixLayoutSetAttribute)(void* layout, int attribute, const void* value, size_t bytes) {
  ENTER("MatrixLayoutSetAttribute");
  auto& l = *static_cast<Layout*>(layout);
  if (attribute == kBatch) return set(l.batch, value, bytes);
  return attribute == kStride ? set(l.stride, value, bytes) : kInvalid;
}

int RB_LT(MatmulPreferenceCreate)(void** preference) {
  ENTER("MatmulPreferenceCreate");
  *preference = new uint64_t(0);
  return kSuccess;
}

int RB_LT(MatmulPreferenceSetAttribute)(void* preference, int attribute, const void* value,
                                        size_t bytes) {
  ENTER("MatmulPreferenceSetAttribute");
  if (attribute == 1) return set(*static_cast<uint64_t*>(preference), value, bytes);
  return bytes == sizeof(uint32_t) ? kSuccess : kInvalid;  // an alignment
}

int RB_LT(MatmulPreferenceDestroy)(void* preference) {
  delete static_cast<uint64_t*>(preference);
  return kSuccess;
}

int RB_LT(MatmulAlgoGetHeuristic)(void*, void* operation, void* a, void* b, void*, void* d,
                                  void* preference, int, void* results, int* found) {
  *found = 0;
  ENTER("MatmulAlgoGetHeuristic");
  if (!sound(*static_cast<Operation*>(operation), *static_cast<Layout*>(a),
             *static_cast<Layout*>(b), *static_cast<Layout*>(d)) ||
      *static_cast<uint64_t*>(preference) < kWorkspace) {
    return kInvalid;
  }
  std::memset(results, kMark, kAlgorithmBytes);
  const size_t tail[2] = {kWorkspace, 0};  // the status follows the workspace
  std::memcpy(static_cast<unsigned char*>(results) + kAlgorithmBytes, tail, sizeof tail);
  *found = 1;
  return kSuccess;
}

int RB_LT(Matmul)(void*, void* operation, const void* alpha, const void* a, void* a_layout,
                  const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                  void* d, void* d_layout, const void* algorithm, void* workspace,
                  size_t workspace_bytes, void*) {
  ENTER("Matmul");
  const auto& o = *static_cast<Operation*>(operation);
  const auto& la = *static_cast<Layout*>(a_layout);
  const auto& lb = *static_cast<Layout*>(b_layout);
  const auto& ld = *static_cast<Layout*>(d_layout);
  const std::vector<unsigned char> known(kAlgorithmBytes, kMark);
  if (std::memcmp(algorithm, known.data(), kAlgorithmBytes) != 0 || !sound(o, la, lb, ld) ||
      workspace_bytes < kWorkspace || load(o.scale, alpha, 0) != 1 || c_layout != d_layout) {
    return kInvalid;
  }
  const double added = load(o.scale, beta, 0);
  std::memset(workspace, kMark, workspace_bytes);
  const auto depth = static_cast<int64_t>(columns_of(la, o.transpose_a));
  for (int64_t matrix = 0; matrix < ld.batch; ++matrix) {
    for (int64_t column = 0; column < static_cast<int64_t>(ld.columns); ++column) {
      for (int64_t row = 0; row < static_cast<int64_t>(ld.rows); ++row) {
        double sum = o.epilogue == 4 ? load(o.bias_type, o.bias, row) : 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += element(la, o.transpose_a, a, matrix, row, k) *
                 element(lb, o.transpose_b, b, matrix, k, column);
        }
        const int64_t at = matrix * ld.stride + column * ld.pitch + row;
        if (added != 0) sum += added * load(ld.type, c, at);
        store(ld.type, d, at, sum);
      }
    }
  }
  return kSuccess;
}

}  // extern "C"

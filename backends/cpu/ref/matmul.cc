#include "backends/cpu/ref/matmul.h"

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

void matmul(const MatmulArgs& args, Stream&) {
  const int rows = args.y.rank - 2;  // axes
  const int columns = args.y.rank - 1;
  const int64_t depth = args.a.sizes[columns];
  const int64_t step_a = args.a.strides[columns];
  const int64_t step_b = args.b.strides[rows];
  View a_rows = args.a;  // the first element of a's row for each element of y
  a_rows.strides[columns] = 0;
  View b_columns = args.b;  // and of b's column
  b_columns.strides[rows] = 0;
  dispatch_numbers("matmul", args.y.dtype, [&]<typename T>() {
    for_each(
        [&](int64_t to, int64_t row, int64_t column) {
          Sum<T> sum = 0;
          for (int64_t k = 0; k < depth; ++k) {
            sum += static_cast<Sum<T>>(load(args.a.as<T>()[row + k * step_a])) *
                   load(args.b.as<T>()[column + k * step_b]);
          }
          args.y.as<T>()[to] = store<T>(sum);
        },
        args.y, a_rows, b_columns);
  });
}

}  // namespace

const Impl<MatmulArgs> ref_matmul = {"ref", never_refuse, matmul};

}  // namespace rbee::cpu

#include "backends/cpu/cpu_backend.h"
#include "workers/llm/program.h"

namespace rbee::workers {

const Program& program() {
  static constexpr Program kProgram{
      .name = "llm-worker-rbee-cpu", .kind = DeviceKind::cpu, .backend = cpu::cpu_backend};
  return kProgram;
}

}  // namespace rbee::workers

#pragma once
// Shows what linear layers are multiplied by to a watcher, which collects an importance matrix.

#include <span>
#include <string>

#include "rbee/ops/linear.h"

namespace rbee {

class InputWatch {
 public:
  virtual ~InputWatch() = default;
  // A model has loaded a matrix (out, in), rows of one, or a stack (experts, out, in). name: of the
  // tensor in GGUF files, e.g. "blk.3.attn_q.weight".
  virtual void on_weight(const std::string& name, const Tensor& weight) = 0;
  // Layers of one input are computed. x: (rows, in)
  virtual void on_linear(const Tensor& x, std::span<const LinearWeights* const> layers) = 0;
  // The same of experts. x: (tokens or tokens * chosen, in); ids: (tokens, chosen) i32
  virtual void on_experts(const Tensor& x, const Tensor& ids,
                          std::span<const LinearWeights* const> layers) = 0;
};

// While there is a watch, models that load and operations that run call it, and no linear layer is
// fused with its neighbours. It must outlive that; null: none. Not thread-safe against running
// operations. Captured steps do not call it.
void set_input_watch(InputWatch* watch);
InputWatch* input_watch();

}  // namespace rbee

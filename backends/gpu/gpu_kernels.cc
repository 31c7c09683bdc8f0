#include "backends/gpu/gpu_kernels.h"

#include "backends/gpu/ops/attention.h"
#include "backends/gpu/ops/collectives.h"
#include "backends/gpu/ops/conv.h"
#include "backends/gpu/ops/decode.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/gpu/ops/embedding.h"
#include "backends/gpu/ops/experts.h"
#include "backends/gpu/ops/image_conv.h"
#include "backends/gpu/ops/image_norm.h"
#include "backends/gpu/ops/indexing.h"
#include "backends/gpu/ops/layer_norm.h"
#include "backends/gpu/ops/linear.h"
#include "backends/gpu/ops/linear_few.h"
#include "backends/gpu/ops/linear_one.h"
#include "backends/gpu/ops/matmul.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/qkv_append.h"
#include "backends/gpu/ops/random.h"
#include "backends/gpu/ops/recurrent.h"
#include "backends/gpu/ops/reduce.h"
#include "backends/gpu/ops/rms_norm.h"
#include "backends/gpu/ops/rope.h"
#include "backends/gpu/slot.h"

namespace rbee::gpu {
namespace {

void add_attention(KernelTable& t) {
  t.attention = slot<attention_decode, attention>();
  t.paged_attention = slot<paged_attention_split, paged_attention_decode, paged_attention>();
  t.rope = slot<rope>();
  t.kv_append = slot<kv_append>();
  t.rope_append = slot<rope_append>();
  t.qkv_append = slot<qkv_append_one>();
}

void add_elementwise(KernelTable& t) {
  t.affine = slot<affine>();
  t.unary = slot<unary>();
  t.binary = slot<binary>();
  t.compare = slot<compare>();
  t.where = slot<where>();
  t.cast = slot<cast>();
  t.copy = slot<copy>();
  t.copy2d = slot<copy2d>();
  t.fill = slot<fill>();
  t.gated = slot<gated>();
}

void add_indexing(KernelTable& t) {
  t.gather = slot<gather>();
  t.scatter = slot<scatter>();
  t.index_select = slot<index_select>();
  t.index_add = slot<index_add>();
  t.embedding = slot<embedding>();
}

void add_reductions(KernelTable& t) {
  t.reduce = slot<reduce>();
  t.softmax = slot<softmax>();
  t.argsort = slot<argsort>();
  t.top_k = slot<top_k>();
  t.draw = slot<draw>();
  t.next_step = slot<next_step>();
}

void add_convolutions(KernelTable& t) {
  t.conv1d = slot<conv1d_tile, conv1d_direct>();
  t.conv2d = slot<conv2d_tile, conv2d_direct>();
  t.conv_transpose1d = slot<conv_transpose1d>();
  t.conv_transpose2d = slot<conv_transpose2d>();
  t.im2col = slot<im2col>();
  t.col2im1d = slot<col2im1d>();
  t.pool2d = slot<pool2d>();
  t.upsample = slot<upsample>();
  t.image_conv = slot<image_conv_plain>();
}

void add_norms(KernelTable& t) {
  t.rms_norm = slot<rms_norm>();
  t.add_rms_norm = slot<add_rms_norm>();
  t.layer_norm = slot<layer_norm>();
  t.group_norm = slot<group_norm>();
  t.image_group_norm = slot<image_group_norm>();
}

void add_products(KernelTable& t) {
  t.matmul = slot<matmul>();
  t.linear = slot<linear_one, linear_few, linear>();
  t.fused_linear = slot<fused_linear_one>();
  t.pack_weight = slot<pack_weight>();
  t.plan_packing = &plan_packing;
}

void add_experts(KernelTable& t) {
  t.route_experts = slot<route_experts>();
  t.expert_linear = slot<expert_matvec, expert_tiles>();
  t.expert_sum = slot<expert_sum>();
}

void add_collectives(KernelTable& t) {
  t.all_reduce = slot<all_reduce_ccl>();
  t.reduce_norm = slot<reduce_norm_ccl>();
  t.all_gather = slot<all_gather_ccl>();
  t.broadcast = slot<broadcast_ccl>();
}

}  // namespace

KernelTable common_kernels() {
  KernelTable table;
  add_attention(table);
  add_elementwise(table);
  add_reductions(table);
  add_indexing(table);
  table.random = slot<random>();
  table.causal_conv = slot<causal_conv>();
  table.delta_rule = slot<delta_rule>();
  add_convolutions(table);
  add_norms(table);
  add_products(table);
  add_experts(table);
  add_collectives(table);
  return table;
}

}  // namespace rbee::gpu

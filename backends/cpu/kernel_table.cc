// The implementations in each slot of the CPU's kernel table, best first.

#include "backends/api/kernel_table.h"

#include <array>
#include <string_view>

#include "backends/cpu/copy_rows.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/experts.h"
#include "backends/cpu/fused_linear.h"
#include "backends/cpu/group_collectives.h"
#include "backends/cpu/image_conv.h"
#include "backends/cpu/image_winograd.h"
#include "backends/cpu/linear/linear.h"
#include "backends/cpu/plain_linear.h"
#include "backends/cpu/qkv_append.h"
#include "backends/cpu/ref/attention.h"
#include "backends/cpu/ref/conv.h"
#include "backends/cpu/ref/decode.h"
#include "backends/cpu/ref/elementwise.h"
#include "backends/cpu/ref/embedding.h"
#include "backends/cpu/ref/experts.h"
#include "backends/cpu/ref/gated.h"
#include "backends/cpu/ref/image.h"
#include "backends/cpu/ref/indexing.h"
#include "backends/cpu/ref/layer_norm.h"
#include "backends/cpu/ref/linear.h"
#include "backends/cpu/ref/matmul.h"
#include "backends/cpu/ref/paged_attention.h"
#include "backends/cpu/ref/random.h"
#include "backends/cpu/ref/recurrent.h"
#include "backends/cpu/ref/reduce.h"
#include "backends/cpu/ref/rms_norm.h"
#include "backends/cpu/ref/rope.h"
#include "backends/cpu/ref/softmax.h"
#include "backends/cpu/rope_append.h"
#include "backends/cpu/select_columns.h"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/top_k.h"

// Entries for one architecture only; on other processors the next entries follow.
#if defined(__x86_64__)
#define RB_X86(...) __VA_ARGS__,
#define RB_ARM(...)
#elif defined(__aarch64__)
#define RB_X86(...)
#define RB_ARM(...) __VA_ARGS__,
#else
#define RB_X86(...)
#define RB_ARM(...)
#endif

namespace rbee::cpu {
namespace {

template <typename Args>
Args args_of(const Impl<Args>&);

// The instruction set that an implementation is named after; portable for other names.
Isa isa_named(std::string_view implementation) {
  for (const Isa isa : kIsas) {
    if (name(isa) == implementation) return isa;
  }
  return Isa::portable;
}

// Asks for the instruction set first. This file is compiled without it: in a simd file even the
// beginning of `refuse` may use instructions that the processor lacks.
template <typename Args, const Impl<Args>& kImpl>
const char* refuse(const Args& args) {
  static const Isa isa = isa_named(kImpl.name);
  if (const char* missing = missing_isa(isa)) return missing;
  return kImpl.refuse(args);
}

// slot<a, b>(): the implementations a, then b.
template <const auto& kFirst, const auto&... kRest>
auto slot() {
  using Args = decltype(args_of(kFirst));
  static const std::array list{
      Impl<Args>{kFirst.name, refuse<Args, kFirst>, kFirst.run},
      Impl<Args>{kRest.name, refuse<Args, kRest>, kRest.run}...,
  };
  return Slot<Args>(list);
}

void add_elementwise(KernelTable& t) {
  t.affine = slot<ref_affine>();
  t.unary = slot<RB_X86(avx512_unary, avx2_unary) RB_ARM(neon_unary) ref_unary>();
  t.binary = slot<RB_X86(avx512_binary, avx2_binary) RB_ARM(neon_binary) ref_binary>();
  t.compare = slot<ref_compare>();
  t.where = slot<ref_where>();
  t.cast = slot<RB_X86(avx512_cast, avx2_cast) RB_ARM(neon_cast) ref_cast>();
  t.copy = slot<rows_copy, ref_copy>();
  t.copy2d = slot<ref_copy2d>();
  t.fill = slot<ref_fill>();
  t.gated = slot<RB_X86(avx512_gated, avx2_gated) RB_ARM(neon_gated) ref_gated>();
}

void add_reductions(KernelTable& t) {
  t.reduce = slot<ref_reduce>();
  t.argsort = slot<ref_argsort>();
  t.top_k = slot<fast_top_k, ref_top_k>();
  t.draw = slot<ref_draw>();
  t.next_step = slot<ref_next_step>();
  t.softmax = slot<ref_softmax>();
}

void add_norms(KernelTable& t) {
  t.layer_norm =
      slot<RB_X86(avx512_layer_norm, avx2_layer_norm) RB_ARM(neon_layer_norm) ref_layer_norm>();
  t.group_norm = slot<ref_group_norm>();
  t.rms_norm = slot<RB_X86(avx512_rms_norm, avx2_rms_norm) RB_ARM(neon_rms_norm) ref_rms_norm>();
  t.add_rms_norm = slot<RB_X86(avx512_add_rms_norm, avx2_add_rms_norm) RB_ARM(neon_add_rms_norm)
                            ref_add_rms_norm>();
}

void add_convolutions(KernelTable& t) {
  t.conv1d = slot<RB_X86(avx512_conv1d, avx2_conv1d) RB_ARM(neon_conv1d) ref_conv1d>();
  t.conv2d = slot<RB_X86(avx512_conv2d, avx2_conv2d) RB_ARM(neon_conv2d) ref_conv2d>();
  t.conv_transpose1d = slot<ref_conv_transpose1d>();
  t.conv_transpose2d = slot<ref_conv_transpose2d>();
  t.im2col = slot<ref_im2col>();
  t.col2im1d = slot<ref_col2im1d>();
  t.pool2d = slot<ref_pool2d>();
  t.upsample = slot<ref_upsample>();
}

void add_images(KernelTable& t) {
  t.image_conv =
      slot<RB_X86(amx_image_conv, avx512_winograd_conv, avx2_winograd_conv, avx512bf16_image_conv,
                  avx512_image_conv, avxvnni_image_conv, avx2_image_conv)
               RB_ARM(neon_winograd_conv, i8mm_image_conv, dotprod_image_conv, neon_image_conv)
                   portable_image_conv,
           ref_image_conv>();
  t.image_group_norm = slot<RB_X86(avx512_image_group_norm, avx2_image_group_norm)
                                RB_ARM(neon_image_group_norm) ref_image_group_norm>();
}

void add_indexing(KernelTable& t) {
  t.gather = slot<ref_gather>();
  t.scatter = slot<ref_scatter>();
  t.index_select = slot<columns_index_select, ref_index_select>();
  t.index_add = slot<ref_index_add>();
  t.embedding = slot<ref_embedding>();
}

void add_products(KernelTable& t) {
  t.matmul = slot<RB_X86(avx512_matmul, avx2_matmul) RB_ARM(neon_matmul) ref_matmul>();
  t.linear =
      slot<RB_X86(amx_linear, avx512bf16_linear, avx512_linear, avxvnni_linear, avx2_linear,
                  avx512_plain_linear, avx2_plain_linear)
               RB_ARM(i8mm_linear, dotprod_linear, neon_linear, neon_plain_linear) portable_linear,
           ref_linear>();
  t.fused_linear = slot<composed_fused_linear, ref_fused_linear>();
  t.linear_norm = slot<composed_linear_norm, ref_linear_norm>();
  t.pack_weight = slot<panels_pack_weight>();
  t.plan_packing = &plan_packing;
}

void add_experts(KernelTable& t) {
  t.route_experts = slot<ref_route_experts>();
  t.expert_linear = slot<grouped_expert_linear, ref_expert_linear>();
  t.expert_sum = slot<rows_expert_sum, ref_expert_sum>();
}

void add_attention(KernelTable& t) {
  t.attention = slot<RB_X86(amx_attention, avx512bf16_attention, avx512_attention, avx2_attention)
                         RB_ARM(neon_attention) ref_attention>();
  t.rope = slot<RB_X86(avx512_rope, avx2_rope) RB_ARM(neon_rope) ref_rope>();
  t.paged_attention = slot<RB_X86(avx512_paged_attention, avx2_paged_attention)
                               RB_ARM(neon_paged_attention) ref_paged_attention>();
  t.kv_append =
      slot<RB_X86(avx512_kv_append, avx2_kv_append) RB_ARM(neon_kv_append) ref_kv_append>();
  t.rope_append = slot<composed_rope_append, ref_rope_append>();
  t.qkv_append = slot<composed_qkv_append, ref_qkv_append>();
}

void add_recurrent(KernelTable& t) {
  t.causal_conv =
      slot<RB_X86(avx512_causal_conv, avx2_causal_conv) RB_ARM(neon_causal_conv) ref_causal_conv>();
  t.delta_rule =
      slot<RB_X86(avx512_delta_rule, avx2_delta_rule) RB_ARM(neon_delta_rule) ref_delta_rule>();
}

void add_random(KernelTable& t) {
  t.random = slot<ref_random>();
}

// rbee/ops composes reduce_norm of all_reduce and add_rms_norm.
void add_collectives(KernelTable& t) {
  t.all_reduce = slot<shared_all_reduce>();
  t.all_gather = slot<shared_all_gather>();
  t.broadcast = slot<shared_broadcast>();
}

}  // namespace

const KernelTable& cpu_kernels() {
  static const KernelTable table = [] {
    KernelTable t;
    add_elementwise(t);
    add_reductions(t);
    add_norms(t);
    add_convolutions(t);
    add_images(t);
    add_indexing(t);
    add_products(t);
    add_experts(t);
    add_attention(t);
    add_recurrent(t);
    add_random(t);
    add_collectives(t);
    return t;
  }();
  return table;
}

}  // namespace rbee::cpu

#pragma once
// One slot per operation. Implementations are tried in order; an empty slot means that the backend
// does not implement the operation.

#include "backends/api/args_attention.h"
#include "backends/api/args_collective.h"
#include "backends/api/args_conv.h"
#include "backends/api/args_decode.h"
#include "backends/api/args_elementwise.h"
#include "backends/api/args_experts.h"
#include "backends/api/args_image.h"
#include "backends/api/args_indexing.h"
#include "backends/api/args_matmul.h"
#include "backends/api/args_norm.h"
#include "backends/api/args_random.h"
#include "backends/api/args_recurrent.h"
#include "backends/api/args_reduce.h"
#include "backends/api/impl.h"

namespace rbee {

struct KernelTable {
  // element-wise
  Slot<AffineArgs> affine;
  Slot<UnaryArgs> unary;
  Slot<BinaryArgs> binary;
  Slot<CompareArgs> compare;
  Slot<WhereArgs> where;
  Slot<CastArgs> cast;
  Slot<CopyArgs> copy;
  Slot<Copy2dArgs> copy2d;
  Slot<FillArgs> fill;
  Slot<GatedArgs> gated;
  // reductions and sorting
  Slot<ReduceArgs> reduce;
  Slot<SoftmaxArgs> softmax;
  Slot<ArgsortArgs> argsort;
  Slot<TopKArgs> top_k;
  // norms
  Slot<RmsNormArgs> rms_norm;
  Slot<AddRmsNormArgs> add_rms_norm;
  Slot<LayerNormArgs> layer_norm;
  Slot<GroupNormArgs> group_norm;
  // convolutions, pooling, upsampling
  Slot<Conv1dArgs> conv1d;
  Slot<Conv2dArgs> conv2d;
  Slot<ConvTranspose1dArgs> conv_transpose1d;
  Slot<ConvTranspose2dArgs> conv_transpose2d;
  Slot<Im2colArgs> im2col;
  Slot<Col2im1dArgs> col2im1d;
  Slot<Pool2dArgs> pool2d;
  Slot<UpsampleArgs> upsample;
  // channels last
  Slot<ImageConvArgs> image_conv;
  Slot<ImageGroupNormArgs> image_group_norm;
  // indexing
  Slot<GatherArgs> gather;
  Slot<ScatterArgs> scatter;  // scatter and scatter-add
  Slot<IndexSelectArgs> index_select;
  Slot<IndexAddArgs> index_add;
  Slot<EmbeddingArgs> embedding;
  // matrix products
  Slot<MatmulArgs> matmul;
  Slot<LinearArgs> linear;
  Slot<FusedLinearArgs> fused_linear;
  Slot<LinearNormArgs> linear_norm;
  Slot<PackWeightArgs> pack_weight;
  // mixtures of experts
  Slot<RouteExpertsArgs> route_experts;
  Slot<ExpertLinearArgs> expert_linear;
  Slot<ExpertSumArgs> expert_sum;
  // attention
  Slot<RopeArgs> rope;
  Slot<AttentionArgs> attention;
  Slot<PagedAttentionArgs> paged_attention;
  Slot<KvAppendArgs> kv_append;
  Slot<RopeAppendArgs> rope_append;
  Slot<QkvAppendArgs> qkv_append;
  // layers with a state
  Slot<CausalConvArgs> causal_conv;
  Slot<DeltaRuleArgs> delta_rule;
  // between two steps of texts
  Slot<DrawArgs> draw;
  Slot<NextStepArgs> next_step;
  // random numbers
  Slot<RandomArgs> random;
  // of all ranks of a group
  Slot<AllReduceArgs> all_reduce;
  Slot<ReduceNormArgs> reduce_norm;
  Slot<AllGatherArgs> all_gather;
  Slot<BroadcastArgs> broadcast;

  // The layout that the linear kernels want for a plain weight (out, in); null: always plain.
  PackingPlan (*plan_packing)(const View& weight) = nullptr;
};

}  // namespace rbee

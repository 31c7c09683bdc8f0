"""The cases of make_model_goldens.py: sizes, features and what each must notice.

type: model_type of config.json; weights_of: the case that owns the weights; prompts: lengths;
predicts: the files have a layer that predicts further tokens, which the logits do not need;
ablations: changes of the config that must show in the logits. Seeds follow the order, so new cases
go to the end.
"""

import copy

import torch

VOCAB = 160
DIM = 64


def base_config(**changes):
    config = dict(vocab_size=VOCAB, hidden_size=DIM, intermediate_size=96, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                  rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False)
    config.update(changes)
    return config


def gemma_config(**changes):
    config = base_config(head_dim=16, rms_norm_eps=1e-6, tie_word_embeddings=True,
                         hidden_activation="gelu_pytorch_tanh", sliding_window=8,
                         query_pre_attn_scalar=16)
    config.update(changes)
    return config


def deepseek_config(**changes):
    config = base_config(num_key_value_heads=4, rms_norm_eps=1e-6,
                         kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12,
                         n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
                         first_k_dense_replace=1, n_group=4, topk_group=2, moe_layer_freq=1)
    config.update(changes)
    return config


def stablelm_config(**changes):
    config = base_config(layer_norm_eps=1e-5, **changes)
    del config["rms_norm_eps"]
    return config


def cohere2_config(**changes):
    config = base_config(layer_norm_eps=1e-5, hidden_size=32, num_hidden_layers=3, sliding_window=8,
                         sliding_window_pattern=3, logit_scale=0.25, tie_word_embeddings=True,
                         pad_token_id=0, bos_token_id=1, eos_token_id=2)
    del config["rms_norm_eps"]
    config.update(changes)
    return config


def delta_config(**changes):
    """Delta nets in all layers but every second; two value heads for each key head."""
    config = base_config(head_dim=32, rms_norm_eps=1e-6, num_hidden_layers=3,
                         full_attention_interval=2, linear_conv_kernel_dim=4,
                         linear_num_key_heads=2, linear_num_value_heads=4,
                         linear_key_head_dim=16, linear_value_head_dim=16)
    config.update(changes)
    return config


# Blocks that no matrix is whole multiples of, nor the parts of Phi-3's matrices.
FP8_BLOCKS = dict(each="block", block=(24, 40), name="weight_scale_inv", config=dict(
    quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[24, 40],
    modules_to_not_convert=["lm_head"]))
FP8_ROWS = dict(each="row", name="weight_scale", config=dict(
    quant_method="compressed-tensors", format="float-quantized", ignore=["lm_head"],
    config_groups=dict(group_0=dict(
        targets=["Linear"],
        weights=dict(num_bits=8, type="float", strategy="channel", symmetric=True, dynamic=False),
        input_activations=dict(num_bits=8, type="float", strategy="token", dynamic=True)))))
FP8_TENSOR = dict(each="tensor", name="weight_scale", input_scale=True, config=dict(
    quant_method="fp8", activation_scheme="static"))

# Groups of 128 inputs that share a scale, as published checkpoints have them: kept in 8 bits.
FP8_GROUPS = dict(each="block", block=(128, 128), name="weight_scale_inv", config=dict(
    quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[128, 128],
    modules_to_not_convert=["lm_head"]))

# Groups of 32 inputs, fewer than published checkpoints have.
AWQ = dict(kind="awq", bits=4, symmetric=False, scale_type=torch.float16, config=dict(
    quant_method="awq", bits=4, group_size=32, zero_point=True, version="gemm", modules_to_not_convert=None))
GPTQ = dict(kind="gptq", bits=4, symmetric=True, scale_type=torch.float16, config=dict(
    quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=True, checkpoint_format="gptq"))
GPTQ_8_BITS = dict(kind="gptq", bits=8, symmetric=True, scale_type=torch.float16, config=dict(
    quant_method="gptq", bits=8, group_size=32, desc_act=False, sym=True, checkpoint_format="gptq"))
GPTQ_ORDER = dict(kind="gptq", bits=4, symmetric=False, order=True, scale_type=torch.float16, config=dict(
    quant_method="gptq", bits=4, group_size=32, desc_act=True, sym=False, checkpoint_format="gptq_v2"))
PACK_QUANTIZED = dict(kind="compressed", bits=4, symmetric=False, scale_type=torch.bfloat16, config=dict(
    quant_method="compressed-tensors", format="pack-quantized", ignore=["lm_head"],
    config_groups=dict(group_0=dict(
        targets=["Linear"], input_activations=None,
        weights=dict(num_bits=4, type="int", strategy="group", group_size=32, symmetric=False, dynamic=False)))))


def glm_moe_config(**changes):
    config = base_config(head_dim=16, num_hidden_layers=3, attention_bias=True, n_routed_experts=6,
                         num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=1,
                         routed_scaling_factor=1.7, norm_topk_prob=True, n_group=1, topk_group=1,
                         first_k_dense_replace=1, partial_rotary_factor=0.5)
    config.update(changes)
    return config


def rope(**scaling):
    return {"rope_scaling": scaling}


def ministral3_rope(**changes):
    out = dict(rope_type="yarn", rope_theta=10000.0, factor=8.0, original_max_position_embeddings=8,
               beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3)
    out.update(changes)
    return dict(rope_parameters=out)


LONGROPE = rope(rope_type="longrope", short_factor=[1.0, 1.1, 1.2, 1.4, 1.6, 1.9],
                long_factor=[1.5, 2.0, 3.0, 4.5, 6.0, 9.0])
LONGROPE["original_max_position_embeddings"] = 16

CASES = {
    "llama": dict(
        type="llama", config=base_config(), dtype=torch.float32, shards=2, gguf=True,
        ablations=[dict(rope_theta=500.0), dict(rms_norm_eps=0.1)]),
    "llama_bias": dict(
        type="llama", config=base_config(attention_bias=True, mlp_bias=True), gguf=True,
        ablations=[]),
    "smollm": dict(
        type="llama", config=base_config(num_attention_heads=3, num_key_value_heads=1, head_dim=16,
                                         hidden_size=48, tie_word_embeddings=True),
        gguf=True, ablations=[]),
    "rope_linear": dict(
        type="llama", weights_of="smollm", gguf=True,
        changes=rope(rope_type="linear", factor=4.0), ablations=[dict(rope_scaling=None)]),
    "rope_dynamic": dict(
        type="llama", weights_of="smollm", prompts=[24, 24, 24],
        changes=dict(rope(type="dynamic", factor=4.0), max_position_embeddings=12),
        ablations=[dict(rope_scaling=None)]),
    "rope_yarn": dict(
        type="llama", weights_of="smollm", gguf=True,
        changes=dict(rope(type="yarn", factor=4.0, original_max_position_embeddings=512),
                     max_position_embeddings=2048),
        ablations=[dict(rope_scaling=None),
                   rope(type="linear", factor=4.0),
                   rope(type="yarn", factor=4.0, original_max_position_embeddings=512,
                        attention_factor=1.0)]),
    "rope_llama3": dict(
        type="llama", weights_of="smollm", gguf=True, saved_by_v5=True,
        changes=rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                     original_max_position_embeddings=64) | dict(max_position_embeddings=512),
        ablations=[dict(rope_scaling=None), rope(rope_type="linear", factor=8.0)]),
    "mistral": dict(
        type="mistral", config=base_config(head_dim=24, sliding_window=8), gguf=True,
        ablations=[dict(sliding_window=None), dict(sliding_window=7)]),
    "qwen2": dict(type="qwen2", config=base_config(), gguf=True, ablations=[]),
    "qwen2_window": dict(
        type="qwen2", weights_of="qwen2",
        changes=dict(use_sliding_window=True, sliding_window=6, max_window_layers=1),
        ablations=[dict(use_sliding_window=False), dict(max_window_layers=0)]),
    "qwen3": dict(
        type="qwen3", config=base_config(head_dim=32, tie_word_embeddings=True),
        dtype=torch.bfloat16, gguf=True, ablations=[]),
    "gemma2": dict(
        type="gemma2", config=gemma_config(num_hidden_layers=3, attn_logit_softcapping=4.0,
                                           final_logit_softcapping=6.0), gguf=True,
        ablations=[dict(attn_logit_softcapping=None), dict(final_logit_softcapping=None),
                   dict(sliding_window=64), dict(sliding_window=9)]),
    "gemma2_scalar": dict(
        type="gemma2", weights_of="gemma2", changes=dict(query_pre_attn_scalar=40),
        ablations=[dict(query_pre_attn_scalar=16)]),
    "gemma3": dict(
        type="gemma3_text", config=gemma_config(
            num_hidden_layers=7, num_key_value_heads=1, intermediate_size=64,
            rope_theta=1000000.0, rope_local_base_freq=100.0), gguf=True,
        ablations=[dict(rope_local_base_freq=1000000.0), dict(rope_theta=100.0),
                   dict(sliding_window=64), dict(sliding_window_pattern=5)]),
    "gemma3_linear": dict(
        type="gemma3_text", weights_of="gemma3", changes=rope(rope_type="linear", factor=8.0),
        saved_by_v5=True,
        ablations=[dict(rope_scaling=None)]),
    "gemma3_multimodal": dict(
        type="gemma3_text", config=gemma_config(
            num_hidden_layers=3, num_key_value_heads=1, intermediate_size=64,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_theta=1000000.0, rope_local_base_freq=100.0), multimodal="gemma3",
        ablations=[dict(layer_types=["full_attention"] * 3)]),
    "phi3": dict(
        type="phi3", config=base_config(partial_rotary_factor=0.75, sliding_window=10, pad_token_id=0,
                                        bos_token_id=1, eos_token_id=2), gguf=True,
        ablations=[dict(partial_rotary_factor=1.0), dict(sliding_window=None)]),
    "phi3_long": dict(
        type="phi3", weights_of="phi3", changes=LONGROPE, gguf=True, prompts=[24, 17, 20],
        ablations=[dict(rope_scaling=None)]),
    "phi3_short": dict(
        type="phi3", weights_of="phi3", changes=LONGROPE, prompts=[16, 7, 11],
        ablations=[dict(rope_scaling=None)]),
    "gemma": dict(
        type="gemma", config=base_config(head_dim=24, rms_norm_eps=1e-6, num_key_value_heads=1,
                                         tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh"),
        gguf=True, ablations=[dict(hidden_act="silu"), dict(rope_theta=500.0)]),
    "phi4_mini": dict(
        type="phi3", config=base_config(
            partial_rotary_factor=0.75, tie_word_embeddings=True, pad_token_id=0, bos_token_id=1,
            eos_token_id=2, num_key_value_heads=1, **LONGROPE), gguf=True, prompts=[24, 17, 20],
        ablations=[dict(rope_scaling=None), dict(partial_rotary_factor=1.0, rope_scaling=None)]),
    "mixtral": dict(
        type="mixtral", config=base_config(num_local_experts=5, num_experts_per_tok=2,
                                           intermediate_size=32), gguf=True,
        ablations=[dict(num_experts_per_tok=1), dict(num_experts_per_tok=5)]),
    "qwen2_moe": dict(
        type="qwen2_moe", config=base_config(
            num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32, norm_topk_prob=False,
            shared_expert_intermediate_size=48, decoder_sparse_step=1), gguf=True,
        ablations=[dict(norm_topk_prob=True), dict(num_experts_per_tok=2)]),
    "qwen3_moe": dict(
        type="qwen3_moe", config=base_config(
            head_dim=24, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
            norm_topk_prob=True, decoder_sparse_step=1), gguf=True,
        ablations=[dict(norm_topk_prob=False), dict(num_experts_per_tok=2)]),
    "qwen3_moe_mixed": dict(
        type="qwen3_moe", config=base_config(
            head_dim=16, num_hidden_layers=3, num_experts=4, num_experts_per_tok=1,
            moe_intermediate_size=32, intermediate_size=48, norm_topk_prob=False,
            decoder_sparse_step=1, mlp_only_layers=[1]),
        ablations=[dict(norm_topk_prob=True)]),
    "deepseek_v2": dict(
        type="deepseek_v2", config=deepseek_config(
            q_lora_rank=None, topk_method="group_limited_greedy", norm_topk_prob=False,
            routed_scaling_factor=1.5, n_shared_experts=2,
            **rope(type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32,
                   beta_slow=1, mscale=0.707, mscale_all_dim=0.707)),
        gguf=True,
        ablations=[dict(rope_scaling=None), dict(topk_method="greedy"), dict(topk_group=1),
                   dict(routed_scaling_factor=1.0)]),
    "deepseek_v3": dict(
        type="deepseek_v3", config=deepseek_config(
            q_lora_rank=24, norm_topk_prob=True, routed_scaling_factor=2.5, n_shared_experts=1),
        gguf=True, joined_latents=True,
        ablations=[dict(norm_topk_prob=False), dict(topk_group=1), dict(n_group=1, topk_group=1),
                   dict(num_experts_per_tok=1)]),
    "gpt_oss": dict(
        type="gpt_oss", config=base_config(
            head_dim=16, num_local_experts=5, num_experts_per_tok=2, intermediate_size=32,
            sliding_window=8, swiglu_limit=7.0, rope_theta=150000.0,
            layer_types=["sliding_attention", "full_attention"],
            **rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0,
                   beta_slow=1.0, truncate=False)), gguf=True, mxfp4=True,
        ablations=[dict(swiglu_limit=70.0), dict(rope_scaling=None), dict(num_experts_per_tok=1),
                   dict(layer_types=["full_attention"] * 2)]),
    "granite": dict(
        type="granite", config=base_config(
            embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.1,
            logits_scaling=1.7, tie_word_embeddings=True), gguf=True,
        ablations=[dict(embedding_multiplier=1.0), dict(residual_multiplier=1.0),
                   dict(attention_multiplier=0.25), dict(logits_scaling=1.0)]),
    "smollm3": dict(
        type="smollm3", config=base_config(num_hidden_layers=4, intermediate_size=64,
                                           tie_word_embeddings=True, rope_theta=2000000.0,
                                           pad_token_id=0, no_rope_layer_interval=4), gguf=True,
        ablations=[dict(no_rope_layer_interval=1), dict(no_rope_layer_interval=5),
                   dict(rope_theta=500.0)]),
    "smollm3_list": dict(
        type="smollm3", weights_of="smollm3", changes=dict(no_rope_layers=[0, 1, 1, 0]),
        saved_by_v5=True, ablations=[dict(no_rope_layers=[1, 1, 1, 0])]),
    "olmo2": dict(
        type="olmo2", config=base_config(pad_token_id=0, rope_theta=500000.0), gguf=True,
        ablations=[dict(rope_theta=500.0), dict(rms_norm_eps=0.1)]),
    "stablelm": dict(
        type="stablelm", config=stablelm_config(use_qkv_bias=True, partial_rotary_factor=0.25),
        gguf=True,
        ablations=[dict(partial_rotary_factor=1.0), dict(layer_norm_eps=0.1)]),
    "stablelm_parallel": dict(
        type="stablelm", config=stablelm_config(
            use_parallel_residual=True, qk_layernorm=True, partial_rotary_factor=0.5),
        gguf=True, ablations=[dict(partial_rotary_factor=1.0)]),
    "llama_fp8": dict(type="llama", config=base_config(), fp8=FP8_BLOCKS, ablations=[]),
    "phi3_fp8": dict(
        type="phi3", config=base_config(pad_token_id=0, bos_token_id=1, eos_token_id=2),
        fp8=FP8_ROWS, ablations=[]),
    "phi3_fp8_blocks": dict(
        type="phi3", config=base_config(pad_token_id=0, bos_token_id=1, eos_token_id=2),
        fp8=FP8_BLOCKS, ablations=[]),
    "mixtral_fp8": dict(
        type="mixtral", config=base_config(num_local_experts=5, num_experts_per_tok=2,
                                           intermediate_size=32), fp8=FP8_TENSOR, ablations=[]),
    "llama_fp8_groups": dict(
        type="llama", config=base_config(hidden_size=128, intermediate_size=256), fp8=FP8_GROUPS,
        ablations=[]),
    "llama_awq": dict(type="llama", config=base_config(), integers=AWQ, ablations=[]),
    "llama_gptq": dict(type="llama", config=base_config(), integers=GPTQ, ablations=[]),
    "llama_gptq_order": dict(type="llama", config=base_config(), integers=GPTQ_ORDER, ablations=[]),
    "mixtral_gptq": dict(
        type="mixtral", config=base_config(num_local_experts=5, num_experts_per_tok=2,
                                           intermediate_size=32), integers=GPTQ_8_BITS, ablations=[]),
    "phi3_packed": dict(
        type="phi3", config=base_config(pad_token_id=0, bos_token_id=1, eos_token_id=2),
        integers=PACK_QUANTIZED, ablations=[]),
    # Phi-4 of 14B: 40 heads to 10 of keys and values, no window, an output matrix of its own.
    "phi4": dict(
        type="phi3", config=base_config(
            num_key_value_heads=1, rope_theta=250000.0, rope_scaling=None, sliding_window=None,
            original_max_position_embeddings=64, hidden_act="silu", attention_bias=False,
            pad_token_id=3, bos_token_id=1, eos_token_id=2), gguf=True,
        ablations=[dict(rope_theta=500.0), dict(sliding_window=8), dict(partial_rotary_factor=0.75)]),
    # Within the positions before the extension; the window is longer than the context.
    "phi4_mini_short": dict(
        type="phi3", weights_of="phi4_mini", changes=dict(sliding_window=262144), gguf=True,
        prompts=[16, 7, 11], ablations=[dict(rope_scaling=None), dict(sliding_window=8)]),
    # Queries grow from position 8 and 16 on.
    "ministral3": dict(
        type="ministral3", config=base_config(head_dim=24, rope_theta=None, **ministral3_rope()),
        gguf=True, multimodal="mistral3",
        ablations=[ministral3_rope(llama_4_scaling_beta=0.0), ministral3_rope(mscale_all_dim=0.0),
                   ministral3_rope(factor=1.0)]),
    "ministral3_text": dict(
        type="ministral3", weights_of="ministral3", changes=dict(tie_word_embeddings=False),
        saved_by_v5=True, ablations=[]),
    # Mistral Small 3.1 to 3.2: the text is of type mistral.
    "mistral3": dict(
        type="mistral", weights_of="mistral", changes=dict(sliding_window=None), gguf=True,
        gguf_arch="mistral3", multimodal="mistral3", ablations=[dict(sliding_window=8)]),
    # GLM-4.5 of 355B has norms on heads, Air has none.
    "glm4_moe": dict(
        type="glm4_moe", config=glm_moe_config(use_qk_norm=True, n_group=2), gguf=True,
        ablations=[dict(partial_rotary_factor=1.0), dict(routed_scaling_factor=1.0), dict(n_group=1),
                   dict(norm_topk_prob=False), dict(num_experts_per_tok=1)]),
    "glm4_moe_air": dict(
        type="glm4_moe", config=glm_moe_config(num_hidden_layers=2, hidden_size=32, head_dim=8),
        gguf=True, predicts=True, ablations=[dict(partial_rotary_factor=1.0)]),
    "glm4": dict(
        type="glm4", config=base_config(head_dim=16, attention_bias=True, partial_rotary_factor=0.5,
                                        pad_token_id=0), gguf=True,
        ablations=[dict(partial_rotary_factor=1.0), dict(rope_theta=500.0)]),
    "minimax_m2": dict(
        type="minimax_m2", config=base_config(
            head_dim=24, rotary_dim=12, intermediate_size=32, num_local_experts=6,
            num_experts_per_tok=3, rms_norm_eps=1e-6), gguf=True,
        ablations=[dict(rotary_dim=24), dict(num_experts_per_tok=2)]),
    "seed_oss": dict(
        type="seed_oss", config=base_config(head_dim=24, attention_bias=True, attention_out_bias=False,
                                            hidden_size=32),
        gguf=True, ablations=[dict(rope_theta=500.0)]),
    "ernie4_5": dict(
        type="ernie4_5", config=base_config(head_dim=24, hidden_size=32, tie_word_embeddings=True),
        gguf=True, ablations=[dict(rope_theta=500.0)]),
    "ernie4_5_moe": dict(
        type="ernie4_5_moe", config=base_config(
            moe_num_experts=6, moe_k=2, moe_intermediate_size=32, moe_num_shared_experts=2,
            moe_layer_start_index=1, moe_layer_interval=1, hidden_size=32, tie_word_embeddings=True),
        gguf=True, ablations=[dict(moe_k=3), dict(rope_theta=500.0)]),
    # Their config says dynamic where a fixed alpha stretches the base.
    "hunyuan_dense": dict(
        type="hunyuan_v1_dense", config=base_config(
            head_dim=24, hidden_size=32, tie_word_embeddings=True, rope_theta=None,
            rope_parameters=dict(rope_type="dynamic", alpha=50.0, rope_theta=10000.0, factor=1.0)),
        gguf=True,
        ablations=[dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0))]),
    "hunyuan_moe": dict(
        type="hunyuan_v1_moe", config=base_config(
            hidden_size=32, head_dim=8, intermediate_size=32, num_experts=5, moe_topk=2), gguf=True,
        ablations=[dict(moe_topk=1), dict(rope_theta=500.0)]),
    # YaRN in the layers that see all alone.
    "olmo3": dict(
        type="olmo3", config=base_config(
            hidden_size=32, pad_token_id=0, sliding_window=8, rope_theta=None, num_hidden_layers=3,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters=dict(
                sliding_attention=dict(rope_type="default", rope_theta=5000.0),
                full_attention=dict(rope_type="yarn", rope_theta=5000.0, factor=8.0,
                                    original_max_position_embeddings=8, beta_fast=32.0,
                                    beta_slow=1.0))), gguf=True,
        ablations=[dict(sliding_window=64), dict(layer_types=["sliding_attention"] * 3)]),
    "exaone4": dict(
        type="exaone4", config=base_config(
            hidden_size=32, head_dim=8, sliding_window=8, sliding_window_pattern=3,
            num_hidden_layers=3), gguf=True,
        ablations=[dict(sliding_window=64), dict(rope_theta=500.0)]),
    # EXAONE 4 of 1.2B has no windows, and turns in all layers.
    "exaone4_full": dict(
        type="exaone4", weights_of="exaone4", gguf=True,
        changes=dict(sliding_window=None, sliding_window_pattern=None,
                     layer_types=["full_attention"] * 3),
        ablations=[dict(sliding_window=8), dict(rope_theta=500.0)]),
    "cohere2": dict(
        type="cohere2", config=cohere2_config(), gguf=True,
        ablations=[dict(sliding_window=64), dict(logit_scale=1.0), dict(rope_theta=500.0)]),
    # DeepSeek-V3 under a name of its own.
    "kimi_k2": dict(
        type="deepseek_v3", weights_of="deepseek_v3", saved_type="kimi_k2",
        changes=dict(n_group=1, topk_group=1), ablations=[dict(num_experts_per_tok=1)]),
    # GLM-4.7-Flash: values are wider than the part of keys that is not rotated.
    "glm4_moe_lite": dict(
        type="glm4_moe_lite", config=deepseek_config(
            hidden_size=32, kv_lora_rank=16, q_lora_rank=12, v_head_dim=20, n_group=1, topk_group=1,
            norm_topk_prob=True, routed_scaling_factor=1.8, n_shared_experts=1, n_routed_experts=6),
        gguf=True, predicts=True,
        ablations=[dict(norm_topk_prob=False), dict(routed_scaling_factor=1.0),
                   dict(num_experts_per_tok=1)]),
    "qwen3_next": dict(
        type="qwen3_next", config=delta_config(
            num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32,
            shared_expert_intermediate_size=48, norm_topk_prob=True, decoder_sparse_step=1),
        gguf=True,
        ablations=[dict(norm_topk_prob=False), dict(num_experts_per_tok=2), dict(rms_norm_eps=0.1)]),
    # Inside a multimodal checkpoint with a layer for drafts, both of which are left.
    "qwen3_5": dict(
        type="qwen3_5_text", config=delta_config(
            num_hidden_layers=4, full_attention_interval=4, linear_num_value_heads=6,
            tie_word_embeddings=True, partial_rotary_factor=0.5), gguf=True, multimodal="qwen3_5",
        ablations=[dict(partial_rotary_factor=0.25)]),
    # Experts as this folder has them: gate and up of all in one tensor.
    "qwen3_5_moe": dict(
        type="qwen3_5_moe_text", config=delta_config(
            num_experts=5, num_experts_per_tok=2, moe_intermediate_size=32,
            shared_expert_intermediate_size=32), gguf=True, stacked=True,
        ablations=[dict(num_experts_per_tok=1)]),
}


def config_of(name):
    case = CASES[name]
    config = copy.deepcopy(CASES[case.get("weights_of", name)]["config"])
    config.update(copy.deepcopy(case.get("changes", {})))
    return config

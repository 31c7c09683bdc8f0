"""Rules for the machine code of kernels. Every row starts with patterns (* and ?, alternatives separated by |)
of the family (the .cu file), the target and the kernel's name."""

MOST_SCALAR_SPILLS = 160

MFMA = "gfx908|gfx90a|gfx942|gfx950"
WMMA = "gfx11*|gfx12*"
DOT2 = "gfx906|gfx1011|gfx1012|gfx103*"  # v_dot2 of f16, and no matrix instructions
# Targets with v_dot4 of signed bytes: all but the first of gfx9 and gfx10.
DOT4 = "gfx906|gfx908|gfx90a|gfx942|gfx950|gfx1011|gfx1012|gfx103*|gfx11*|gfx12*"
QUANTISED = "q4_0|q4_1|q5_0|q5_1|q8_0|q2_k|q3_k|q4_k|q5_k|q6_k|iq4_nl|iq4_xs|mxfp4"

# A pattern that the disassembly of each such kernel must contain.
INSTRUCTIONS = [
    ("gemm", "gfx908|gfx90a|gfx942", "*", r"v_mfma_f32_16x16x"),
    ("gemm|expert_gemm|image_conv_matrix|matvec_matrix_*|expert_few_*", "gfx950", "*", r"v_mfma_f32_16x16x32_b?f16"),
    ("attention_mfma", "gfx950", "*", r"v_mfma_f32_16x16x32_b?f16"),
    ("gemm|expert_gemm", "gfx950", "*", r"global_load_lds_dwordx4"),
    ("matvec_e4m3|matvec_one_e4m3|expert_matvec_e4m3|matvec_matrix_e4m3|expert_few_e4m3", "gfx950", "*", r"v_cvt_(scalef32_)?pk_f(16|32)_fp8"),
    ("matvec_matrix_e4m3|expert_few_e4m3", "gfx12*", "*_bf16_*", r"v_cvt_pk_f32_fp8"),
    ("matvec_matrix_*|expert_few_*", "gfx908|gfx90a|gfx942", "*", r"v_mfma_f32_16x16x"),
    ("matvec_matrix_*|expert_few_*", WMMA, "*", r"v_wmma_f32_16x16x16"),
    ("matvec_matrix_*|expert_few_*", "gfx*", "*", r"global_load_(dwordx4|b128)"),
    ("gemm", WMMA, "*", r"v_wmma_f32_16x16x16"),
    ("gemm", DOT2, "gemm_f16_*", r"v_dot2c?_f32_f16"),
    ("expert_gemm", MFMA, "*", r"v_mfma_f32_16x16x"),
    ("expert_gemm", WMMA, "*", r"v_wmma_f32_16x16x16"),
    ("expert_gemm", DOT2, "expert_gemm_f16", r"v_dot2c?_f32_f16"),
    ("image_conv_matrix", MFMA, "*", r"v_mfma_f32_16x16x"),
    ("image_conv_matrix", WMMA, "*", r"v_wmma_f32_16x16x16"),
    ("image_conv_matrix", DOT2, "image_conv_f16_*", r"v_dot2c?_f32_f16"),
    ("attention_mfma", MFMA, "*", r"v_mfma_f32_"),
    ("attention_wmma", WMMA, "*", r"v_wmma_f32_16x16x16"),
    ("matvec_k_blocks|matvec_small_blocks|*matvec_few_bits", DOT4, "*", r"v_dot4c?_i32_i(8|u8)"),
    ("matvec_one_*_blocks|matvec_one_few_bits", DOT4, "*", r"v_dot4c?_i32_i(8|u8)"),
    ("matvec_e4m3|matvec_one_e4m3|expert_matvec_e4m3", DOT4, "*", r"v_(dual_)?dot2(acc|c)?_f32_f16"),
    ("gemm|expert_gemm", "sm_90a|sm_8?", "*", r"H(G?)MMA"),
    ("gemm_wgmma|attention_wgmma", "sm_90a", "*", r"HGMMA"),
    ("gemm_tma|gemm_few_tma", "sm_90a", "gemm_*f16_*", r"HGMMA"),
    ("gemm_tma", "sm_90a", "gemm_f8e4m3_*", r"QGMMA"),
    ("gemm_tma|gemm_few_tma", "sm_90a", "gemm_*", r"UTMALDG"),
    ("gemm_packed_*", "sm_90a", "gemm_packed_*", r"HGMMA"),
    ("gemm_packed_*", "sm_90a", "gemm_packed_*", r"UTMALDG"),
    ("matvec_one_tma_*_blocks|matvec_one_tma_few_bits", "sm_90a", "*", r"IMMA"),
    ("matvec_one_tma_floats", "sm_90a", "*", r"HMMA"),
    ("matvec_one_tma_*", "sm_90a", "*", r"UTMALDG"),
    ("image_conv_tma", "sm_90a", "image_conv_*f16_[0-9]*x*", r"HGMMA"),
    ("image_conv_tma", "sm_90a", "image_conv_*f16_[0-9]*x*", r"UTMALDG"),
    ("attention_mma|image_conv_mma", "sm_90a|sm_8?", "*", r"HMMA"),
    ("attention_decode_mma|attention_latent_mma|matvec_mma*", "sm_90a|sm_8?", "*", r"HMMA"),
    ("matvec_k_blocks|matvec_small_blocks|*matvec_few_bits", "sm_*", "*", r"IDP\.4A"),
    ("matvec_one_*_blocks|matvec_one_few_bits", "sm_*", "*", r"IDP\.4A"),
    ("matvec_e4m3|matvec_one_e4m3|expert_matvec_e4m3", "sm_*", "*", r"HFMA2"),
]

# Kernels that must not use scratch memory or spill vector registers.
HOT = [
    ("gemm*|expert_gemm|expert_few_*", "*", "*"),
    ("image_*", "*", "*"),
    ("linear_*", "*", "*"),
    ("matvec*", "*", "*"),
    ("attention_*", "*", "*"),
    ("*_norm|few_sum", "*", "*"),
    ("gated", "*", "*"),
    ("quantize_x", "*", "*"),
    ("rope", "*", "*"),
    ("softmax", "*", "*"),
]

# A pattern that no such kernel holds. Loads from addresses of which the compiler does not know that they are device
# memory's count as shared memory's too, which then are waited for together.
NOT_IN = [
    ("attention_*|gemm|matvec_matrix_*|expert_few_*|image_conv_matrix", "gfx*", "*", r"\bflat_(load|store)"),
]

# Bytes of shared memory, most.
MOST_SHARED = [
    ("*", "*", "*", 64 << 10),  # what every AMD target and CUDA's default give a block
    ("attention_mfma", MFMA, "*", 32 << 10),  # two blocks of 64 KiB
]

# Vector registers, most: what the planned waves on a SIMD (blocks on a multiprocessor) leave.
MOST_REGISTERS = [
    ("gemm*|expert_gemm|image_conv_matrix", MFMA, "*", 168),  # three waves of 512 registers
    ("gemm*|expert_gemm|image_conv_matrix", WMMA, "*", 216),  # seven of 1536
    ("gemm*|expert_gemm", DOT2, "*", 184),  # five of 1024
    ("image_conv_matrix", DOT2, "*", 248),  # four of 1024
    ("attention_mfma", "gfx90a|gfx942|gfx950", "*", 256),  # two waves of 512
    ("attention_wmma", "gfx12*", "*", 216),  # seven waves of 1536
    ("attention_wmma", "gfx11*", "*_d64*", 216),
    ("linear_packed", "gfx*", "*", 128),
    ("linear_plain", "gfx*", "*", 136),  # eleven waves of 1536, for f64
    ("matvec|matvec_matrix_*|expert_few_*", MFMA, "*", 256),  # two waves of 512
    ("matvec", "gfx1[012]*", "*", 128),  # twelve waves of 1536
    ("matvec_k_blocks|matvec_small_blocks|matvec_e4m3|matvec_few_bits", MFMA, "*", 256),
    ("matvec_k_blocks|matvec_small_blocks|matvec_e4m3|matvec_few_bits", WMMA, "*", 192),
    ("matvec_one*|matvec_mma*", "sm_*", "*", 128),  # two blocks of 65536
    ("attention_decode_mma", "sm_*", "*", 168),  # three of 128 threads
    ("add_rms_norm|group_norm|layer_norm|rms_norm", "gfx*", "*", 80),
    ("image_norm", "gfx*", "*_sums_*|*_apply_*", 80),
    ("image_norm", "gfx*", "*_whole_*", 128),  # four waves of 512, twelve of 1536
    ("softmax", "gfx*", "*", 80),
    ("layer_norm", "sm_*", "*", 96),  # five blocks of 128 threads
    ("group_norm|rms_norm", "sm_*", "*", 80),
    ("image_norm", "sm_*", "*", 80),
]

# Known exceptions: the most bytes of scratch and spilled vector registers per lane.
EXCEPTIONS = [
    ("attention_decode", "sm_*", "*", 56, 0),
    # Accessed outside the loops only.
    ("attention_decode_mma", "sm_8?", "*_d128", 24, 0),
    ("linear_plain", "sm_8?", "*", 8, 0),
    ("matvec", "sm_8?", "matvec_f32_f32_b4_w32", 8, 0),
    ("attention_mma", "sm_*", "*", 160, 0),
    ("attention_tma", "sm_90a", "*_r192", 8, 0),  # 160 registers for each of three warpgroups
    ("matvec_one*", MFMA, "*_w64", 20, 0),  # clang 22 sets it aside; no instruction reaches it
    # No card has so little shared memory that it needs _s32.
    ("attention_plain", "sm_*", "*_f64_*|*_s32_*", 88, 0),
    ("rope", "sm_*", "*_append_bf16_packed", 8, 0),
    ("rope", "sm_8?", "rope_append_f64", 8, 0),
    ("matvec_k_blocks|matvec_small_blocks|matvec_few_bits", "sm_*", "*_b[48]_w32", 32, 0),
    ("matvec_few_bits", "sm_8?", "*_b1_w32", 32, 0),
    ("matvec_mma_*", "sm_*", "*_n8", 48, 0),  # 64 rows' sums, and two blocks have to fit
    # 128 registers, so that two blocks fit; the next trip's loads are held in some of them.
    ("matvec_one", "sm_*", "matvec_one_*_f8e4m3_w32", 56, 0),
]

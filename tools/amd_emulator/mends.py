"""Faults of tinygrad's emulator that our kernels met, mended in its text as it is loaded. Each was found by the
disassembly of a kernel that differed; `reason` says how the hardware behaves."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Mend:
    old: str
    new: str
    reason: str
    file: str = "emu"


MENDS = [
    Mend("_iattr(inst, 'glc')", "(_iattr(inst, 'glc') or _iattr(inst, 'sc0') or _iattr(inst, 'th') & 1)",
         "To return what was there, CDNA 3's atomics have sc0 and RDNA 4's the first bit of th for glc."),
    Mend("write_hi_half = bits['d'] == 16 and",
         "write_hi_half = ctx.wave_size == 32 and bits['d'] == 16 and",
         "On CDNA v128 and above are registers to 16-bit operations, too; on RDNA such numbers mean high halves."),
    Mend("if bits['s0'] == 16:  # src0 >= 384",
         "if ctx.wave_size == 32 and bits['s0'] == 16:  # src0 >= 384", "The same, of the first source."),
    Mend("vsrc1_hi = bits['s0'] == 16 and",
         "vsrc1_hi = ctx.wave_size == 32 and bits['s0'] == 16 and", "The same, of the second source."),
    Mend("    if bits['s0'] == 16:\n      vsrc1_hi = vsrc1_off",
         "    if ctx.wave_size == 32 and bits['s0'] == 16:\n      vsrc1_hi = vsrc1_off", "The same, of comparisons."),
    Mend("    return exp.eq(_c(0)).where(_c(0), f32_bits)",
         "    tiny = mant.cast(dtypes.float32) * UOp.const(2.0 ** -24, dtypes.float32)\n"
         "    tiny = (sign << _c(31)) | (_c(0) if FLUSHES else tiny.bitcast(dtypes.uint32))\n"
         "    return exp.eq(_c(0)).where(tiny, exp.eq(_c(31)).where(f32_bits + _c(112 << 23), f32_bits))",
         "CDNA 3's matrix units take subnormal f16 as they are, gfx90a's take them for zeros; both take infinities."),
    Mend("raw = is_vgpr.where(ctx.rvgpr_dyn(off - _c(256 - reg_idx), read_lane),",
         "read = ctx.raccvgpr_dyn if _iattr(inst, 'acc') & (2 if base else 1) else ctx.rvgpr_dyn\n"
         "      raw = is_vgpr.where(read(off - _c(256 - reg_idx), read_lane),",
         "Operands of matrix instructions can be accumulation registers, too."),
    Mend("  src2_r = (src2_r >= 256).where(src2_r - _c(256), src2_r)\n",
         "  src2_raw, src2_is_vgpr = src2_r, src2_r >= _c(256)\n"
         "  src2_r = src2_is_vgpr.where(src2_r - _c(256), _c(0))\n",
         "The third operand of WMMA can be a constant: gfx12's code begins sums with 0, which was read as v128."),
    Mend("    mat_c = [ctx.rvgpr_dyn(src2_r + _c(vgpr), UOp.const(lane, dtypes.int)).bitcast(out_dt)",
         "    constant = ctx.rsgpr_dyn(src2_raw, src2_is_vgpr.ne(True))\n"
         "    mat_c = [src2_is_vgpr.where(ctx.rvgpr_dyn(src2_r + _c(vgpr), UOp.const(lane, dtypes.int)), constant)"
         ".bitcast(out_dt)",
         "The same."),
    Mend("    _, assigns = parse_pcode(pcode, srcs)\n"
         "    return UOp.sink(*self.scalar_stores(assigns, sdst_reg, sdst_size), *self.inc_pc())\n",
         "    srcs['PC'] = self.rpc().cast(dtypes.int64)\n"
         "    _, assigns = parse_pcode(pcode, srcs)\n"
         "    jumps = [_split64(val.cast(dtypes.uint64)) for dest, val in assigns if dest.split('.')[0] == 'PC']\n"
         "    go = [self.wsgpr_dyn(_c(i), word) for j in jumps for i, word in zip((PC_LO_IDX, PC_HI_IDX), j)]\n"
         "    return UOp.sink(*self.scalar_stores(assigns, sdst_reg, sdst_size), *(go or self.inc_pc()))\n",
         "Calls read and set the program counter: s_getpc_b64, s_swappc_b64, s_setpc_b64."),
    Mend("    s0 = _sdwa_select(s0_raw, src0_sel, src0_sext)\n",
         "    s0 = _sdwa_mods(inst, 's0', _sdwa_select(s0_raw, src0_sel, src0_sext))\n",
         "Sources of SDWA instructions have signs to change or to take away."),
    Mend("  s0 = _sdwa_select(s0_raw, src0_sel, src0_sext)\n  if",
         "  s0 = _sdwa_mods(inst, 's0', _sdwa_select(s0_raw, src0_sel, src0_sext))\n  if", "The same."),
    Mend("s1 = _sdwa_select(s1_raw, src1_sel, src1_sext)\n",
         "s1 = _sdwa_mods(inst, 's1', _sdwa_select(s1_raw, src1_sel, src1_sext))\n", "The same."),
    Mend("def _compile_sdwa(inst",
         "def _sdwa_mods(inst, operand, x):\n"
         "  away, change = (_iattr(inst, f'src{operand[1]}_{word}') for word in ('abs', 'neg'))\n"
         "  return _apply_src_mods(x, 0, away, change, inst.canonical_op_bits[operand])\n\n"
         "def _compile_sdwa(inst", "The same."),
    Mend("  if fix_name in _pcode_fixes: pcode",
         "  for name, said, meant in PSEUDOCODE:\n"
         "    if name == fix_name: pcode = pcode.replace(said, meant)\n"
         "  if fix_name in _pcode_fixes: pcode", "See PSEUDOCODE."),
    Mend("saddr_reg = _c(0), _c(0), ctx.optional_field(inst, 'saddr')",
         "saddr_reg = _c(0), _c(0), None if 'FLAT' == type(inst).__name__ else ctx.optional_field(inst, 'saddr')",
         "FLAT instructions of CDNA have no scalar address; the bits where GLOBAL ones have it are 0."),
    Mend("      stores.extend(ctx.wmask_lane_bit(_c(VCC_LO.offset), lane, val, exec_mask))\n  if vcc_val",
         "      bits = ctx.unroll_lanes(lambda l, v=val: _to_u32(v.substitute({lane: l})) & _c(1), exec_mask)\n"
         "      masks.extend(ctx.wmask(_c(VCC_LO.offset), bits))\n  if vcc_val",
         "Carries of SDWA additions: each lane wrote its bit into the mask as it was before the instruction."),
    Mend("  stores = []\n  vcc_val = None\n", "  stores, masks = [], []\n  vcc_val = None\n", "The same."),
    Mend("  if stores:\n    return UOp.sink(UOp.sink(*stores).end(lane), *ctx.inc_pc())\n",
         "  if stores:\n    return UOp.sink(*masks, UOp.sink(*stores).end(lane), *ctx.inc_pc())\n", "The same."),
    Mend("      stores.append(ctx.wvgpr_dyn(vdst_reg, lane, result, exec_mask))\n    elif dest.startswith('VCC'):",
         "      to = vdst_reg + _c(1) if dest.startswith('D0[63') else vdst_reg\n"
         "      stores.append(ctx.wvgpr_dyn(to, lane, result, exec_mask))\n    elif dest.startswith('VCC'):",
         "Results of two words, v_cvt_pk_f32_fp8's: both went to the first register."),
    Mend("!= (31, 0):\n          slice_stores.append(",
         "!= (31, 0):\n"
         "          if slice_match.group(1) == '63' and slice_match.group(2) == '32':\n"
         "            lane_stores.append(self.wvgpr_dyn(vdst_reg + _c(1), lane, _val_to_bits(val).cast(dtypes.uint32), exec_mask))\n"
         "            continue\n"
         "          slice_stores.append(", "The same."),
    Mend("scalar_val = (off < _c(128)).where(sgpr_val, inline)",
         "scalar_val = ((off < _c(128)) | off.eq(_c(235))).where(sgpr_val, inline)",
         "src_shared_base is of 64 bits: where shared memory begins for flat instructions."),
    Mend("    offset = ctx.inst_field_signed(getattr(",
         "    field = ctx.inst_field if type(inst) is irc.FLAT else ctx.inst_field_signed\n    offset = field(getattr(",
         "Offsets of CDNA's FLAT instructions have no sign."),
    Mend("irc.DS, ir4.VSCRATCH)) and 'Calc'", "irc.DS, ir4.VSCRATCH, ir4.VFLAT)) and 'Calc'",
         "Addresses of RDNA 4's FLAT instructions are computed like the others'."),
    Mend("  if data_bits == 32: return [idx.store(active.where(_to_u32(val), idx))]\n",
         "  if data_bits == 32:\n"
         "    shift = (addr.cast(dtypes.uint32) & _c(3)) * _c(8)\n"
         "    low, apart = _to_u32(val) << shift, shift.ne(_c(0))\n"
         "    kept = (_c(1) << shift) - _c(1)\n"
         "    word = apart.where((idx & kept) | low, _to_u32(val))\n"
         "    above = mem.index((word_addr + UOp.const(1, adt)).valid(active & apart))\n"
         "    rest = (above & (kept ^ _c(MASK32))) | (_to_u32(val) >> ((_c(32) - shift) & _c(31)))\n"
         "    return [idx.store(active.where(word, idx)), above.store((active & apart).where(rest, above))]\n",
         "Words are stored at any address; the emulator dropped its lowest bits."),
    Mend("        val = (val >> (((addr >> _const(adt, 1)) & _const(adt, 1)).cast(dtypes.uint32) * _u32(16))) & _u32(0xFFFF)\n",
         "        byte = (addr & _const(adt, 3)).cast(dtypes.uint32)\n"
         "        word = idx.cast(dtypes.int64) + byte.eq(_u32(3)).cast(dtypes.int64)\n"
         "        both = val.cast(dtypes.uint64) | (mindex(word).cast(dtypes.uint64) << _u64(32))\n"
         "        val = (both >> (byte.cast(dtypes.uint64) * _u64(8))).cast(dtypes.uint32) & _u32(0xFFFF)\n",
         "Half words are read at any address, too: bytes of packed blocks are read in twos.", "pcode"),
    Mend("  mem = ctx.lds if is_lds else ctx.scratch if is_scratch else ctx.vmem\n",
         "  mem = ctx.lds if is_lds else ctx.scratch if is_scratch else ctx.vmem\n"
         "  read_data = ctx.raccvgpr_dyn if use_acc else ctx.rvgpr_dyn\n",
         "What is written to shared memory can lie in accumulation registers."),
    Mend("  # DS-specific: check for 2ADDR pattern needing separate ranges\n",
         "  if 'LOAD_LDS' in op_name:\n"
         "    words, lane = int(op_name[-1]) if op_name[-2] == 'X' else 1, ctx.range()\n"
         "    active, copies = _lane_active(exec_mask, lane), []\n"
         "    to = (ctx.rsgpr_dyn(_c(124)) & _c(0x3FFFF)) + offset + lane.cast(dtypes.uint32) * _c(words * 4)\n"
         "    for i in range(words):\n"
         "      at = (make_addr(lane) + UOp.const(i * 4, dtypes.uint64)) >> addr_shift\n"
         "      place = ctx.lds.index(((to + _c(i * 4)) >> _c(2)).valid(active))\n"
         "      copies.append(place.store(active.where(ctx.vmem.index(at.cast(dtypes.int64).valid(active)).load(), place)))\n"
         "    return UOp.sink(UOp.group(*copies).end(lane), *ctx.inc_pc())\n"
         "  # DS-specific: check for 2ADDR pattern needing separate ranges\n",
         "Copies from device memory to shared memory: lanes' words side by side from M0 on. CDNA 4's of 16 bytes "
         "have no pseudocode."),
    Mend("  exec_mask, op_name = ctx.rexec(), _op_name(inst)\n  pcode = get_pcode(inst.op)\n",
         "  exec_mask, op_name = ctx.rexec(), _op_name(inst)\n"
         "  pcode = '' if 'LOAD_LDS' in op_name else get_pcode(inst.op)\n", "The same."),
    Mend("ctx.rvgpr_dyn(vdata_reg", "read_data(vdata_reg", "The same."),
    Mend("ctx.rvgpr_dyn(data1_reg", "read_data(data1_reg", "The same."),
    Mend("              return (dest, (val[0], cnd.where(val[1], val[1])))\n",
         "              at = val[0].valid(cnd) if dest.startswith('VGPR[') else val[0]\n"
         "              return (dest, (at, val[1]))\n",
         "Lanes that are off keep their registers: ds_bpermute and ds_permute wrote those lanes' results, too.", "pcode"),
]

# Fixes of single operations' pseudocode: operation, old text, new text.
PSEUDOCODE = [
    # Signed 24-bit numbers were widened to 64 bits without their sign.
    ("V_MUL_HI_I32_I24", "64'I(S0.i24) * 64'I(S1.i24)", "64'I(32'I(S0.i24)) * 64'I(32'I(S1.i24))"),
    # High bits of a lane's number are ignored. The rest of the division was not read, so that lanes which
    # are switched off, whose numbers are anything, read far outside of the registers.
    ("DS_BPERMUTE_B32", "(VGPR[i][ADDR].u32 + OFFSET.u32) / 4U % 64U",
     "((VGPR[i][ADDR].u32 + OFFSET.u32) / 4U) & 63U"),
    ("DS_BPERMUTE_B32", "32'I(VGPR[i][ADDR] + OFFSET.b32) / 4 % 32",
     "((VGPR[i][ADDR].u32 + OFFSET.u32) / 4U) & 31U"),
    ("DS_BPERMUTE_B32", "32'I(VGPR[i][ADDR] + OFFSET.b32) / 4 % num_lanes",
     "((VGPR[i][ADDR].u32 + OFFSET.u32) / 4U) & 31U"),
    # Infinities and NaN of f16 are bits; they were taken for wider ones.
    ("V_DIV_FIXUP_F16", "sign_out ? -INF.f16 : +INF.f16", "sign_out ? (16'0xfc00).f16 : (16'0x7c00).f16"),
    ("V_DIV_FIXUP_F16", "16'F(0xfe00)", "(16'0xfe00).f16"),
    # RDNA 4's. Their words are named in a way that the emulator does not read; it has chosen the half.
    ("V_CVT_PK_F32_FP8", "OPSEL[0].u1 ? VGPR[laneId][SRC0.u32][31 : 16] : VGPR[laneId][SRC0.u32][15 : 0]",
     "S0[15 : 0]"),
    # The same for CDNA 4's; our kernels scale only by 1.
    ("V_CVT_SCALEF32_PK_F16_FP8", "scale = 32'U(exponent(S1.f32));\nsrcword = OPSEL[0].i32 * 16;\n"
     "src = VGPR[laneId][SRC0.u32][srcword + 15 : srcword].b16;",
     "src = S0[15 : 0];"),
    ("V_CVT_SCALEF32_PK_F16_FP8", "fp8_to_f16_scale(src[7 : 0].fp8, scale.u8)",
     "f32_to_f16(fp8_to_f32(src[7 : 0].fp8))"),
    ("V_CVT_SCALEF32_PK_F16_FP8", "fp8_to_f16_scale(src[15 : 8].fp8, scale.u8)",
     "f32_to_f16(fp8_to_f32(src[15 : 8].fp8))"),
]


def mended(file, source):
    """The text of one of the emulator's files with all mends; raises where one no longer fits."""
    for mend in [mend for mend in MENDS if mend.file == file]:
        if mend.old not in source:
            raise RuntimeError(f"this version of tinygrad has no {mend.old!r}: see mends.py")
        source = source.replace(mend.old, mend.new)
    return source

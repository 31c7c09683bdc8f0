"""How many waves of a kernel a SIMD holds at once, by the registers, shared memory and threads of a block.

    registers   floor(registers of a SIMD / registers of a wave, rounded up to the granule), at most the SIMD's slots
    blocks      the least of: floor(wave slots that registers leave / waves of a block), blocks that a unit takes,
                floor(shared memory of a unit / that of a block, rounded up to the granule)
    waves       blocks * waves of a block / SIMDs

A unit has four SIMDs: it is a compute unit of CDNA, and of RDNA a work-group processor, in whose mode our kernels are
compiled (`.workgroup_processor_mode: 1`); a block of one wave is not counted among the blocks that a unit takes, since
it needs no barrier. Sources: LLVM, "User Guide for AMDGPU Backend" (granules of registers and shared memory, in the
tables of compute_pgm_rsrc1 and compute_pgm_rsrc2); AMD's ISA documents of CDNA 1 to 4, RDNA 2, 3, 3.5 and 4 (registers,
slots, shared memory). The part of registers is what clang prints with `-Rpass-analysis=kernel-resource-usage`.
"""
import fnmatch
from dataclasses import dataclass

SIMDS = 4


@dataclass(frozen=True)
class Limits:
    slots: int  # waves of a SIMD, most
    vectors: int  # vector registers of a lane of a SIMD, for all its waves
    vector_granule: int
    shared: int  # bytes of a unit
    blocks: int  # of several waves, in a unit
    shared_granule: int = 512
    scalars: int = 0  # scalar registers of a SIMD; 0: each wave has its own
    scalar_granule: int = 16


# The first pattern that matches a target.
LIMITS = [
    ("gfx908", Limits(10, 256, 4, 64 << 10, 16, scalars=800)),
    ("gfx950", Limits(8, 512, 8, 160 << 10, 16, shared_granule=1280, scalars=800)),
    ("gfx9*", Limits(8, 512, 8, 64 << 10, 16, scalars=800)),
    ("gfx103?", Limits(16, 1024, 16, 128 << 10, 32)),
    # Half as many again as the other members of RDNA 3 and 3.5.
    ("gfx110[01]", Limits(16, 1536, 24, 128 << 10, 32)),
    ("gfx1151", Limits(16, 1536, 24, 128 << 10, 32)),
    ("gfx11*", Limits(16, 1024, 16, 128 << 10, 32)),
    ("gfx120?", Limits(16, 1536, 24, 128 << 10, 32)),
]


def limits_of(target):
    for pattern, limits in LIMITS:
        if fnmatch.fnmatchcase(target, pattern):
            return limits
    raise ValueError(f"the limits of {target} are not known here")


def rounded_up(count, granule):
    return max(-(-count // granule), 1) * granule


def waves_by_registers(target, vectors, scalars):
    """`vectors`: those of a lane, accumulation registers included, as a code object's metadata counts them."""
    limits = limits_of(target)
    waves = min(limits.slots, limits.vectors // rounded_up(vectors, limits.vector_granule))
    if limits.scalars:
        waves = min(waves, limits.scalars // rounded_up(scalars, limits.scalar_granule))
    return waves


def waves_of_simd(target, vectors, scalars, shared, threads, lanes):
    """The mean over a unit's SIMDs, with blocks of this many threads and bytes of shared memory; 0 if none fits."""
    limits = limits_of(target)
    waves = -(-threads // lanes)
    blocks = waves_by_registers(target, vectors, scalars) * SIMDS // waves
    if waves > 1:
        blocks = min(blocks, limits.blocks)
    if shared:
        blocks = min(blocks, limits.shared // rounded_up(shared, limits.shared_granule))
    return blocks * waves / SIMDS

// The inner loop of machine.py: instructions that are compiled already, one after another, without Python.
#include <stdint.h>

typedef void (*Run)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

// What stands at one word of a code object. `arguments` are numbers of buffers.
struct Entry {
  Run run;        // null: not compiled yet, or skipped
  uint8_t skip;   // words of an instruction that does nothing here
  uint8_t pause;  // a barrier: other waves go first
  uint8_t arguments[6];
  // What it reads or writes of shared memory: `bytes` at each of `offsets` from an address, which a lane has in a
  // vector register, or which begins at M0 for the first lane and is `bytes` more for each of the next. Flat
  // instructions have addresses of two registers, in shared memory where the upper half is the aperture's.
  uint8_t shared;  // enum
  uint8_t address;  // the vector register
  uint8_t bytes;
  uint8_t lanes;
  uint32_t offsets[2];
};

enum { kNoShared, kByRegister, kFromM0, kFlat };
enum { kPaused, kDone, kUnknown, kOutside, kTooLong, kBeyondShared };
enum { kM0 = 124, kExec = 126 };  // scalar registers

// Whether an active lane reaches beyond the `limit` bytes that a block has; where, in `reached`. Hardware reads zeros
// there and drops what is written (AMD, ISA documents, "Local Data Share").
static int beyond_shared(const struct Entry* e, const uint64_t* buffers, uint64_t limit, uint32_t* reached) {
  const uint32_t* scalars = (const uint32_t*)buffers[0];
  const uint32_t* vectors = (const uint32_t*)buffers[1];
  for (unsigned lane = 0; lane < e->lanes; ++lane) {
    if ((scalars[kExec + lane / 32] >> lane % 32 & 1) == 0) continue;
    const uint32_t* at = vectors + (unsigned)e->address * e->lanes + lane;
    if (e->shared == kFlat) {
      const uint64_t flat = (*at | (uint64_t)at[e->lanes] << 32) + (uint64_t)(int64_t)(int32_t)e->offsets[0];
      *reached = (uint32_t)flat;
      if (flat >> 32 == buffers[3] >> 32 && (uint64_t)*reached + e->bytes > limit) return 1;
      continue;
    }
    const uint32_t address = e->shared == kFromM0 ? (scalars[kM0] & 0x3ffff) + lane * e->bytes : *at;
    for (int i = 0; i < 2; ++i) {
      *reached = address + e->offsets[i];
      if ((uint64_t)*reached + e->bytes > limit) return 1;
    }
  }
  return 0;
}

// Runs a wave from its program counter (two words at `counter`, a byte address) up to a barrier, its end or what
// is not compiled. Leaves in `left` how many instructions more it may run. The first buffers are the scalar and the
// vector registers, the fourth is shared memory, from the beginning of the flat aperture on; where a lane reaches beyond the block's shared bytes, `reached` says at which byte.
int rbee_run_wave(const struct Entry* entries, uint64_t base, uint64_t count, uint32_t* counter,
                  const uint64_t* buffers, int64_t* left, uint64_t shared_bytes, uint32_t* reached) {
  for (; *left > 0; --*left) {
    const uint64_t at = counter[0] | (uint64_t)counter[1] << 32;
    if (at == ~(uint64_t)0) return kDone;
    const uint64_t index = (at - base) / 4;
    if (index >= count) return kOutside;
    const struct Entry* e = entries + index;
    if (e->skip != 0) {
      const uint64_t next = at + 4 * (uint64_t)e->skip;
      counter[0] = (uint32_t)next;
      counter[1] = (uint32_t)(next >> 32);
      continue;
    }
    if (!e->run) return kUnknown;
    if (e->shared != kNoShared && beyond_shared(e, buffers, shared_bytes, reached)) return kBeyondShared;
    const uint8_t* a = e->arguments;
    e->run(buffers[a[0]], buffers[a[1]], buffers[a[2]], buffers[a[3]], buffers[a[4]], buffers[a[5]]);
    if (e->pause) return kPaused;
  }
  return kTooLong;
}

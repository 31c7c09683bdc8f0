// The inner loop of machine.py: instructions that are compiled already, one after another, without Python.
#include <stdint.h>

typedef void (*Run)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

// What stands at one word of a code object. `arguments` are numbers of buffers.
struct Entry {
  Run run;        // null: not compiled yet, or skipped
  uint8_t skip;   // words of an instruction that does nothing here
  uint8_t pause;  // a barrier: other waves go first
  uint8_t arguments[6];
};

enum { kPaused, kDone, kUnknown, kOutside, kTooLong };

// Runs a wave from its program counter (two words at `counter`, a byte address) up to a barrier, its end or what
// is not compiled. Leaves in `left` how many instructions more it may run.
int rbee_run_wave(const struct Entry* entries, uint64_t base, uint64_t count, uint32_t* counter,
                  const uint64_t* buffers, int64_t* left) {
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
    const uint8_t* a = e->arguments;
    e->run(buffers[a[0]], buffers[a[1]], buffers[a[2]], buffers[a[3]], buffers[a[4]], buffers[a[5]]);
    if (e->pause) return kPaused;
  }
  return kTooLong;
}

// A kernel of one block of 64 threads that reaches beyond its shared memory where it is told to:
// for the emulator's test of that (test_sweep.py). The last thread writes s[write].

#define RB_MEET                                          \
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
  __builtin_amdgcn_s_barrier();                          \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")

extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void planted_fault(
    float* p, int read, int write) {
  __attribute__((shared)) static float s[64];
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  s[i] = p[i];
  RB_MEET;
  const float other = s[(i ^ 1) + read];
  RB_MEET;
  if (i == 63) s[write] = 1.0f;
  RB_MEET;
  p[i] = other + s[i];
}

// The same by flat instructions: which memory `from` and `to` are in is known as it runs, device
// memory for 1000. Behind kFar words their offsets are large: CDNA's have 12 bits and no sign.
constexpr int kFar = 576;
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void planted_flat_fault(
    float* p, int read, int write) {
  __attribute__((shared)) static float s[kFar + 64];
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  s[kFar + i] = p[kFar + i];
  RB_MEET;
  float* const from = read == 1000 ? p + (i ^ 1) : s + (i ^ 1) + read;
  const float other = from[kFar];
  RB_MEET;
  float* const to = write == 1000 ? p + 63 : s + write;
  if (i == 63) to[kFar] = 1.0f;
  RB_MEET;
  p[kFar + i] = other + s[kFar + i];
}

#ifdef __gfx942__
// The same by copies from device memory to shared memory, which begin 64 words in front of `write`:
// the offset is of 13 bits and has a sign, and counts on both sides.
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void planted_copy_fault(
    float* p, int read, int write) {
  __attribute__((shared)) static float s[128];
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  s[i] = s[64 + i] = 0.0f;
  RB_MEET;
  using From = __attribute__((address_space(1))) float;
  using To = __attribute__((address_space(3))) float;
  __builtin_amdgcn_global_load_lds((From*)(p + 64 + i + read), (To*)(s + write), 4, -256, 0);
  __builtin_amdgcn_s_waitcnt(0);
  RB_MEET;
  p[i] = s[i] + s[64 + i];
}
#endif

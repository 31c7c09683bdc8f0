#pragma once
// Normally distributed random numbers that reproduce other programs' pictures from their seeds. One
// generator serves one image; calls continue its sequence.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace rbee::diffusion {

class Normals {
 public:
  virtual ~Normals() = default;
  // Fills `out` as one call of randn for out.size() elements in row-major order would.
  virtual void fill(std::span<float> out) = 0;
};

// PyTorch's generator of CPU tensors of float: MT19937 (Matsumoto, Nishimura 1998) seeded by the
// low 32 bits of `seed`. For 16 elements and more, it pairs 24-bit uniforms at a distance of 8
// within blocks of 16 (Box and Muller 1958), and if the number is not a multiple of 16, it draws
// the last 16 elements again. For fewer, 53-bit uniforms give pairs, and the second number of a
// pair waits for the next element. The last bits of logarithm and cosine are this platform's: at
// most 1e-6 from PyTorch's.
class TorchNormals final : public Normals {
 public:
  explicit TorchNormals(uint64_t seed);
  void fill(std::span<float> out) override;

 private:
  static constexpr int kState = 624;

  uint32_t next_word();
  double next_uniform53();
  float next_uniform24();
  void refill();
  double next_normal();
  void fill_blocks(std::span<float> out);
  void transform_block(std::span<float> block);

  std::array<uint32_t, kState> state_;
  int at_ = kState;
  std::optional<double> spare_;
};

// PyTorch's generator of tensors on NVIDIA GPUs, as AUTOMATIC1111 computes it on a CPU:
// Philox4x32-10 (Salmon et al. 2011) with key = seed and counter = (call, 0, element, 0); the first
// two words of a counter give one number.
class PhiloxNormals final : public Normals {
 public:
  explicit PhiloxNormals(uint64_t seed) : seed_(seed) {}
  void fill(std::span<float> out) override;

 private:
  uint64_t seed_;
  uint32_t calls_ = 0;
};

}  // namespace rbee::diffusion

#pragma once
// A case of attention over a paged cache: its operands and its formula.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/op_table.h"

namespace rbee::harness {

struct Sequence {
  int64_t queries;
  int64_t keys;
};

enum class Operand : uint8_t { none, q, k, v };

struct PagedCase {
  std::vector<Sequence> seqs;
  int64_t heads = 1, kv_heads = 1, head_dim = 1, block_size = 16;
  DType cache = DType::f32;
  DType dtype = DType::f32;
  float softcap = 0;
  int64_t window = 0;
  Form form = Form::contiguous;
  int64_t single_queries = 0;
  bool sinks = false;
  std::vector<int32_t> key_ends;  // of each token; empty: none
  bool alibi = false;
  Operand undefined = Operand::none;  // has a NaN in its first head at
  int64_t undefined_row = 0;          // this token, or key of the first sequence
  bool big = false;

  // Scores have a standard deviation of 7/3 at every width: 4/3 * sqrt(head_dim) * scale, q and k
  // in [-2, 2). A kernel may round q to the cache's 16 bits; a score's error is proportional.
  float scale() const { return 1.75f / std::sqrt(static_cast<float>(head_dim)); }
  int64_t tokens() const {
    int64_t sum = 0;
    for (const Sequence& seq : seqs) sum += seq.queries;
    return sum;
  }
  int64_t max_blocks() const {
    int64_t most = 1;
    for (const Sequence& seq : seqs) most = std::max(most, (seq.keys - 1) / block_size + 1);
    return most;
  }
  int64_t blocks() const { return max_blocks() * std::ssize(seqs) + 1; }
  // A permutation of the blocks, so that neighbours in a sequence are not neighbours in memory.
  int64_t block_of(int64_t seq, int64_t i) const {
    return (seq * max_blocks() + i) * 7 % (blocks() - (blocks() % 7 == 0 ? 1 : 0));
  }
};

// Unique for a case.
void append_to(std::string& out, const PagedCase& c);

PagedAttentionArgs build_paged(const PagedCase& c, Scene& scene);
std::vector<HostArray> paged_formula(const PagedCase& c, const std::vector<HostArray>& in);

}  // namespace rbee::harness

#pragma once
// Bidirectional attention: every token of a text sees all tokens of its text (Devlin et al. 2019).

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/tensor/tensor.h"

namespace rbee::nn {

// Neighbouring texts of one length in a batch. The batch has the tokens of one text after another.
struct TextRun {
  int64_t first_text = 0;
  int64_t texts = 0;
  int64_t first_token = 0;  // of the batch
  int64_t length = 0;       // tokens of each text
};

// lengths: tokens of each text, in the batch's order.
std::vector<TextRun> text_runs(std::span<const int64_t> lengths);

// q, k, v: (tokens, heads, head_dim), contiguous   result: (tokens, heads * head_dim) Texts of one
// run are one operation, without padding, so a batch sorted by length is fastest.
Tensor text_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                      std::span<const TextRun> runs);

}  // namespace rbee::nn

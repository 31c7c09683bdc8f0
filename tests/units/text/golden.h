#pragma once
// Compares a tokenizer with data/<name>.golden.json.

#include <string>

#include "rbee/text/tokenizer.h"

namespace rbee::text::testing {

struct GoldenOptions {
  bool samples = true;
  bool decoded = true;         // compare the samples' decoded text too
  bool sentencepiece = false;  // the text without what SentencePiece itself treats in another way
};

// Every sample, every block and the whole megabyte; fails the current test on any difference.
void expect_golden(const Tokenizer& tokenizer, const std::string& name, GoldenOptions options = {});

}  // namespace rbee::text::testing

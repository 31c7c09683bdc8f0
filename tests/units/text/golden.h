#pragma once
// Compares a tokenizer with data/<name>.golden.json.

#include <string>
#include <vector>

#include "rbee/text/tokenizer.h"

namespace rbee::text::testing {

struct GoldenOptions {
  bool decoded = true;            // compare the samples' decoded text too
  std::vector<std::string> drop;  // parts that the golden's text lacks
  bool parse_special = true;
};

// Compares every sample, every block and the whole megabyte; any difference fails the test.
void expect_golden(const Tokenizer& tokenizer, const std::string& name,
                   const GoldenOptions& options = {});

}  // namespace rbee::text::testing

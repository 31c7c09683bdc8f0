#pragma once
// Runs cases of one operation on one device and counts how they end.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/op_table.h"

namespace rbee::harness {

struct Options {
  std::string op;
  std::string match;           // part of a case's name, e.g. a dtype or a shape
  std::string implementation;  // empty: all
  std::string device = "cpu:0";
  int number = -1;            // of the case; -1: all
  double most_bytes = 0;      // of a case's operands; 0: any
  double case_seconds = 120;  // that an isolated case may take
  bool list = false;
  bool costs = false;
  bool time = false;
  bool table = false;
  bool summary = false;
  bool or_skip = false;
  bool isolate = false;
};

// Of the cases of one operation.
struct Tally {
  int passed = 0;
  int failed = 0;   // with those that ended their process
  int refused = 0;  // by every implementation
  int skipped = 0;  // too large for --most-bytes
  double worst_excess = 0;
};

// Hears which case begins, by its position among those that run, and which of its implementations.
using Told = std::function<void(size_t position, const char* implementation)>;

// The numbers of the cases that --case and --match name; throws not_found where none fits.
std::vector<size_t> fitting_cases(const OpTable& table, const Options& options);
// Runs every implementation that takes a case. Throws what a lost device says.
void check_cases(const OpTable& table, std::span<const size_t> numbers, const Options& options,
                 Device& device, Tally& tally, const Told& told);
void print_header();
void print_row(const OpTable& table, const Tally& tally);

}  // namespace rbee::harness

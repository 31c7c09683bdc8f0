// Speed of a tokenizer: tokenizer_bench FILE [TEXT]. FILE is a tokenizer.json or a .gguf file, TEXT
// any file (default: FILE itself, as far as it is text). Prints the time to load and megabytes a
// second of processor time, so that a busy machine changes little.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "rbee/text/tokenizer.h"
#include "tests/units/text/gguf_file.h"

namespace {

constexpr size_t kDefaultText = 1 << 20;
constexpr int kRounds = 5;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

int run(const std::string& path, const std::string& text_path) {
  std::clock_t start = std::clock();
  const auto tokenizer =
      path.ends_with(".gguf")
          ? rbee::text::tokenizer_from_gguf(rbee::text::testing::read_gguf_vocab(path))
          : rbee::text::tokenizer_from_json(read(path));
  std::printf("load      %8.1f ms\n", seconds_since(start) * 1e3);
  std::string text = read(text_path.empty() ? path : text_path);
  if (text_path.empty()) text.resize(std::min(text.size(), kDefaultText));
  double best = 1e9;
  std::vector<rbee::text::TokenId> ids;
  for (int round = 0; round < kRounds; ++round) {
    start = std::clock();
    ids = tokenizer->encode(text, {.add_special = false});
    best = std::min(best, seconds_since(start));
  }
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  std::printf("encode    %8.2f MB/s (%zu bytes, %zu ids)\n", megabytes / best, text.size(),
              ids.size());
  start = std::clock();
  const std::string decoded = tokenizer->decode(ids);
  const double seconds = seconds_since(start);
  std::printf("decode    %8.2f MB/s (%zu bytes)\n", megabytes / seconds, decoded.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: tokenizer_bench FILE [TEXT]\n");
    return 2;
  }
  try {
    return run(argv[1], argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tokenizer_bench: %s\n", error.what());
    return 1;
  }
}

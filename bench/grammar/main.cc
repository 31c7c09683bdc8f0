// Time of token masks: grammar_bench TOKENS SCHEMA DOCUMENT. TOKENS: a token's bytes a line, in
// hexadecimal; SCHEMA: a JSON schema; DOCUMENT: a text that fits it. The document is cut into the
// longest tokens and gone through; prints the time to compile, and of a mask and a token's step,
// where all is new and where the grammar was used before.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "rbee/core/error.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/matcher.h"

namespace {

using namespace rbee;
using Clock = std::chrono::steady_clock;

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), path, "cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::vector<std::string> read_tokens(const char* path) {
  std::ifstream file(path);
  check(file.good(), path, "cannot be read");
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) {
    std::string& token = out.emplace_back();
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
      token += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    }
  }
  return out;
}

// The longest token first, again and again.
std::vector<int32_t> cut(const std::vector<std::string>& tokens, std::string_view text) {
  std::map<std::string_view, int32_t> ids;
  size_t longest = 1;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].empty()) ids.emplace(tokens[i], static_cast<int32_t>(i));
    longest = std::max(longest, tokens[i].size());
  }
  std::vector<int32_t> out;
  while (!text.empty()) {
    size_t length = std::min(longest, text.size());
    while (length > 0 && !ids.contains(text.substr(0, length))) --length;
    check(length > 0, "TOKENS", "no token begins ", text.substr(0, 10));
    out.push_back(ids[text.substr(0, length)]);
    text.remove_prefix(length);
  }
  return out;
}

void walk(const char* name, const std::shared_ptr<const grammar::CompiledGrammar>& compiled,
          const std::vector<int32_t>& document) {
  grammar::Matcher matcher(compiled);
  std::vector<uint64_t> bits(static_cast<size_t>(compiled->vocabulary().size() + 63) / 64);
  std::vector<double> times;
  for (const int32_t id : document) {
    const auto begin = Clock::now();
    int64_t work = INT64_MAX;
    matcher.fill(bits, work);
    const bool fits = matcher.accept_token(id);
    times.push_back(microseconds_since(begin));
    check(fits, "DOCUMENT", "token ", times.size() - 1, " does not fit the schema");
  }
  check(matcher.complete(), "DOCUMENT", "it ends too early");
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double time : times) sum += time;
  std::printf("%-8s %9.2f us a token, median %.2f, longest %.2f (%zu tokens)\n", name,
              sum / static_cast<double>(times.size()), times[times.size() / 2], times.back(),
              times.size());
}

int run(char** argv) {
  const std::vector<std::string> tokens = read_tokens(argv[1]);
  const std::string schema = read(argv[2]);
  const std::vector<int32_t> document = cut(tokens, read(argv[3]));
  auto begin = Clock::now();
  const auto vocabulary =
      std::make_shared<const grammar::Vocabulary>(tokens, std::span<const int32_t>());
  std::printf("vocabulary %zu tokens, %.1f ms\n", tokens.size(), microseconds_since(begin) / 1e3);
  begin = Clock::now();
  const auto compiled = std::make_shared<const grammar::CompiledGrammar>(
      grammar::parse_json_schema(schema), vocabulary);
  std::printf("compile  %9.2f ms (%d states)\n", microseconds_since(begin) / 1e3,
              compiled->automaton().size());
  begin = Clock::now();
  compiled->masks().prepare(INT64_MAX);
  std::printf("ahead    %9.2f ms\n", microseconds_since(begin) / 1e3);
  walk("first", compiled, document);
  walk("again", compiled, document);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: grammar_bench TOKENS SCHEMA DOCUMENT\n");
    return 2;
  }
  try {
    return run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grammar_bench: %s\n", error.what());
    return 1;
  }
}

#include "mixed_text.h"
#include "tests/support/data_folder.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rbee::text::testing {
namespace {

struct Fragments {
  std::vector<std::string> words, fragments, runs, marks;
};

// Knuth's 64-bit linear congruential generator; the upper half is used.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  size_t below(size_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state_ >> 33) % limit;
  }

 private:
  uint64_t state_;
};

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    switch (text[++i]) {
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case '\\':
        out.push_back('\\');
        break;
      case 'x':
        out.push_back(
            static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
        i += 2;
        break;
      default:
        out.append({'\\', text[i]});
    }
  }
  return out;
}

Fragments read_fragments() {
  Fragments all;
  std::istringstream file(read_data("fragments.txt"));
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 2 || line[0] == '#') continue;
    const std::string value = line.substr(2);
    if (line[0] == 'w') {
      std::istringstream words(value);
      for (std::string word; std::getline(words, word, ' ');) all.words.push_back(word);
    } else {
      (line[0] == 'f'   ? all.fragments
       : line[0] == 'r' ? all.runs
                        : all.marks)
          .push_back(unescape(value));
    }
  }
  return all;
}

}  // namespace

std::string read_data(const std::string& name) {
  std::ifstream file(test::data_folder() + "/units/text/data/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> mixed_blocks(uint64_t seed, size_t bytes) {
  static const Fragments all = read_fragments();
  const auto pick = [](Random& random, const std::vector<std::string>& list) -> const std::string& {
    return list[random.below(list.size())];
  };
  Random random(seed);
  std::vector<std::string> blocks;
  for (size_t total = 0; total < bytes; total += blocks.back().size()) {
    const size_t wanted = 64 + random.below(3000);
    std::string block;
    while (block.size() < wanted) {
      const size_t kind = random.below(8);
      if (kind < 4) {
        for (size_t left = 1 + random.below(10); left > 0; --left) {
          block += pick(random, all.words);
          block += pick(random, all.marks);
        }
      } else if (kind < 7) {
        block += pick(random, all.fragments);
      } else {
        const std::string& run = pick(random, all.runs);
        for (size_t left = 1 + random.below(40); left > 0; --left) block += run;
      }
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace rbee::text::testing

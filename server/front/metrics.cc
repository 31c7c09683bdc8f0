#include "server/front/metrics.h"

#include <map>
#include <string_view>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

struct Family {
  std::string name;
  std::string head;  // its HELP and TYPE lines
  std::string samples;
};

// "# TYPE name counter" -> "name"; empty for other lines.
std::string_view family_of(std::string_view line) {
  if (!line.starts_with("# HELP ") && !line.starts_with("# TYPE ")) return {};
  line.remove_prefix(7);
  return line.substr(0, line.find(' '));
}

std::string labelled(std::string_view sample, std::string_view worker) {
  const size_t end = sample.find_first_of("{ ");
  if (end == std::string_view::npos) return {};
  const std::string label = cat("{worker=\"", worker, "\"");
  if (sample[end] == ' ') return cat(sample.substr(0, end), label, "}", sample.substr(end), "\n");
  const bool empty = sample.substr(end).starts_with("{}");
  return cat(sample.substr(0, end), label, empty ? "" : ",", sample.substr(end + 1), "\n");
}

class Merger {
 public:
  void add(std::string_view worker, std::string_view text) {
    Family* family = nullptr;
    bool first = false;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      const std::string_view name = family_of(line);
      if (!name.empty()) {
        if (family == nullptr || family->name != name) {
          const size_t before = families_.size();
          family = &find(name);
          first = families_.size() > before;
        }
        if (first) family->head += cat(line, "\n");
      } else if (family != nullptr && !line.empty() && line.front() != '#') {
        family->samples += labelled(line, worker);
      }
    }
  }
  std::string text() const {
    std::string out;
    for (const Family& family : families_) out += family.head + family.samples;
    return out;
  }

 private:
  Family& find(std::string_view name) {
    const auto [found, fresh] = index_.emplace(name, families_.size());
    if (fresh) families_.push_back({.name = std::string(name), .head = {}, .samples = {}});
    return families_[found->second];
  }

  std::vector<Family> families_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace

std::string merge_metrics(const std::vector<std::pair<std::string, std::string>>& texts) {
  Merger merger;
  for (const auto& [worker, text] : texts) merger.add(worker, text);
  return merger.text();
}

}  // namespace rbee::server

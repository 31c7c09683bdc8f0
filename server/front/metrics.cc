#include "server/front/metrics.h"

#include <map>
#include <string_view>

#include "rbee/core/cat.h"
#include "server/front/replica.h"

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

std::string front_metrics(const FrontCounts& counts, const std::vector<const Replica*>& workers) {
  std::string out;
  const auto head = [&out](std::string_view name, std::string_view type, std::string_view help) {
    out += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  };
  const auto single = [&](std::string_view name, std::string_view type, std::string_view help,
                          auto value) {
    head(name, type, help);
    out += cat(name, " ", value, "\n");
  };
  head("rbee_front_requests_total", "counter", "Requests that are over, by how they ended.");
  for (const auto& [outcome, count] :
       {std::pair{"answered", counts.answered}, std::pair{"refused", counts.refused},
        std::pair{"broken", counts.broken}, std::pair{"left", counts.left}}) {
    out += cat("rbee_front_requests_total{outcome=\"", outcome, "\"} ", count, "\n");
  }
  single("rbee_front_retries_total", "counter", "Requests sent again, their worker had ended.",
         counts.retries);
  single("rbee_front_prefix_matches_total", "counter",
         "Requests of models with several workers that went to one that had seen their beginning.",
         counts.matched);
  single("rbee_front_requests_running", "gauge", "Requests that are not over.", counts.running);
  single("rbee_front_requests_waiting", "gauge", "Requests that wait for a worker.",
         counts.waiting);
  const auto each = [&](std::string_view name, auto value) {
    for (const Replica* worker : workers) {
      out += cat(name, "{worker=\"", worker->name(), "\"} ", value(*worker), "\n");
    }
  };
  head("rbee_front_worker_up", "gauge", "1 while the worker is ready.");
  each("rbee_front_worker_up",
       [](const Replica& replica) { return replica.state() == ReplicaState::ready ? 1 : 0; });
  head("rbee_front_worker_restarts_total", "counter", "Starts after the first.");
  each("rbee_front_worker_restarts_total",
       [](const Replica& replica) { return replica.restarts(); });
  head("rbee_front_worker_running", "gauge", "Requests that the worker has from the front.");
  each("rbee_front_worker_running", [](const Replica& replica) { return replica.busy; });
  return out;
}

}  // namespace rbee::server

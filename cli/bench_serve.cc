// rbee bench serve: a server's speed with many clients at once.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/commands.h"
#include "cli/load.h"
#include "rbee/core/error.h"
#include "rbee/core/printable.h"

namespace rbee::tools {
namespace {

using nlohmann::json;

struct ServeOptions {
  std::string url = "http://127.0.0.1:8080";
  std::string api_key;
  std::string model = "default";
  bool chat = false;
  int requests = 32;
  double rate = 0;
  int concurrency = 0;
  int input_tokens = 512;
  int output_tokens = 128;
  int shared_tokens = 0;
  float temperature = 0;
  bool may_end = false;
  uint64_t seed = 1;
  bool json = false;
};

constexpr std::array kWords = {
    "amber",  "bridge", "copper", "drift", "ember",  "fallow",  "garden",  "harbor",
    "ivory",  "jungle", "kettle", "lemon", "meadow", "nickel",  "orchid",  "pebble",
    "quiet",  "river",  "silver", "tulip", "umber",  "violet",  "willow",  "yonder",
    "zephyr", "basil",  "candle", "dune",  "engine", "feather", "granite", "hollow"};

// Random words that do not depend on the standard library's distributions.
std::string some_words(int count, std::mt19937_64& random) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[(random() >> 11) % kWords.size()];
  }
  return text;
}

std::string body_of(const ServeOptions& options, const std::string& text, int output_tokens) {
  json body{{"model", options.model},
            {"max_tokens", output_tokens},
            {"temperature", options.temperature},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}};
  if (!options.may_end) body["ignore_eos"] = true;
  if (options.chat) {
    body["messages"] = {{{"role", "user"}, {"content", text}}};
  } else {
    body["prompt"] = text;
  }
  return body.dump();
}

// Converts a number of tokens, as the server counts them, to a number of words.
class WordCount {
 public:
  WordCount(const ServeOptions& options, const LoadTarget& target) {
    constexpr int kFew = 8;
    const auto count = [&](int words) {
      std::mt19937_64 random(options.seed);
      const LoadRequest request{.at = 0, .body = body_of(options, some_words(words, random), 1)};
      const LoadAnswer answer = send_load(target, {&request, 1}).front();
      if (!answer.error.empty()) fail(Code::io, "bench serve", answer.error);
      if (answer.prompt_tokens == 0) {
        fail(Code::unsupported, "bench serve", "the server does not count tokens (usage)");
      }
      return static_cast<double>(answer.prompt_tokens);
    };
    const double few = count(kFew);
    // This counts the template's tokens as words' tokens, so the second probe is not too long.
    const int more = std::max(static_cast<int>(options.input_tokens * kFew / few), 2 * kFew);
    tokens_each_ = std::max((count(more) - few) / (more - kFew), 0.1);
    around_ = few - kFew * tokens_each_;
  }
  int of(double tokens) const {
    return std::max(static_cast<int>(std::lround((tokens - around_) / tokens_each_)), 1);
  }
  int of_part(double tokens) const { return static_cast<int>(std::lround(tokens / tokens_each_)); }

 private:
  double tokens_each_ = 1;
  double around_ = 0;  // tokens of a prompt around the words
};

std::vector<LoadRequest> make_requests(const ServeOptions& options, const WordCount& words) {
  std::mt19937_64 random(options.seed + 1);
  const int shared = std::min(words.of_part(options.shared_tokens), words.of(options.input_tokens));
  const std::string beginning = some_words(shared, random);
  const int own = words.of(options.input_tokens) - shared;
  std::vector<LoadRequest> out;
  double at = 0;
  for (int i = 0; i < options.requests; ++i) {
    const std::string text =
        beginning + (shared > 0 && own > 0 ? " " : "") + some_words(own, random);
    out.push_back({.at = at, .body = body_of(options, text, options.output_tokens)});
    // Poisson arrivals: gaps are exponential.
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    if (options.rate > 0) at += -std::log1p(-uniform) / options.rate;
  }
  return out;
}

// Milliseconds.
struct Spread {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0;
};

// Percentiles by the nearest rank.
Spread spread_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::ranges::sort(seconds);
  const auto rank = [&](double share) {
    const double at = std::ceil(share * static_cast<double>(seconds.size()));
    return seconds[static_cast<size_t>(std::max(at, 1.0)) - 1] * 1000;
  };
  double sum = 0;
  for (const double value : seconds) sum += value;
  return {.mean = sum * 1000 / static_cast<double>(seconds.size()),
          .p50 = rank(0.50),
          .p95 = rank(0.95),
          .p99 = rank(0.99)};
}

struct Report {
  int completed = 0;
  std::vector<std::string> errors;
  double seconds = 0;  // until the last answer
  int64_t input_tokens = 0, output_tokens = 0;
  Spread first, per_token, gap, latency;
};

Report report_of(const std::vector<LoadAnswer>& answers) {
  Report out;
  std::vector<double> first, per_token, gap, latency;
  for (const LoadAnswer& answer : answers) {
    out.seconds = std::max(out.seconds, answer.due_s + answer.end_s);
    if (!answer.error.empty()) {
      out.errors.push_back(answer.error);
      continue;
    }
    ++out.completed;
    out.input_tokens += answer.prompt_tokens;
    out.output_tokens += answer.output_tokens;
    latency.push_back(answer.end_s);
    if (answer.first_s == 0) continue;  // no token gave text
    first.push_back(answer.first_s);
    gap.insert(gap.end(), answer.gaps_s.begin(), answer.gaps_s.end());
    if (answer.output_tokens > 1) {
      per_token.push_back((answer.end_s - answer.first_s) /
                          static_cast<double>(answer.output_tokens - 1));
    }
  }
  out.first = spread_of(std::move(first));
  out.per_token = spread_of(std::move(per_token));
  out.gap = spread_of(std::move(gap));
  out.latency = spread_of(std::move(latency));
  return out;
}

void print_table(const Report& report) {
  const double in = static_cast<double>(report.input_tokens);
  const double out = static_cast<double>(report.output_tokens);
  std::printf("requests: %d completed, %zu failed, %.2f s\n", report.completed,
              report.errors.size(), report.seconds);
  std::printf("tokens: %.0f in, %.0f out\n", in, out);
  std::printf("throughput: %.2f requests/s, %.1f output tokens/s, %.1f tokens/s in all\n\n",
              report.completed / report.seconds, out / report.seconds, (in + out) / report.seconds);
  std::printf("%-36s %10s %10s %10s %10s\n", "milliseconds", "mean", "p50", "p95", "p99");
  const auto row = [](const char* name, const Spread& s) {
    std::printf("%-36s %10.1f %10.1f %10.1f %10.1f\n", name, s.mean, s.p50, s.p95, s.p99);
  };
  row("until the first text (TTFT)", report.first);
  row("each token after it (TPOT)", report.per_token);
  row("between two pieces of text (ITL)", report.gap);
  row("until the end (E2E)", report.latency);
  // All failures usually have the same cause.
  if (!report.errors.empty())
    std::printf("\nfailed, the first: %s\n", printable_text(report.errors[0]).c_str());
}

json spread_json(const Spread& s) {
  return {{"mean", s.mean}, {"p50", s.p50}, {"p95", s.p95}, {"p99", s.p99}};
}

void print_json(const Report& report) {
  const double seconds = report.seconds;
  const json out{{"completed", report.completed},
                 {"failed", report.errors.size()},
                 {"errors", report.errors},
                 {"seconds", seconds},
                 {"input_tokens", report.input_tokens},
                 {"output_tokens", report.output_tokens},
                 {"requests_per_second", report.completed / seconds},
                 {"output_tokens_per_second", static_cast<double>(report.output_tokens) / seconds},
                 {"ttft_ms", spread_json(report.first)},
                 {"tpot_ms", spread_json(report.per_token)},
                 {"itl_ms", spread_json(report.gap)},
                 {"e2e_ms", spread_json(report.latency)}};
  std::printf("%s\n", out.dump().c_str());
}

int bench_serve(const ServeOptions& options) {
  const server::Url url = server::parse_url(options.url);
  check(!url.tls, "--url", "'", options.url, "' is https: only http can be loaded");
  const LoadTarget target{.url = url,
                          .path = options.chat ? "/v1/chat/completions" : "/v1/completions",
                          .api_key = options.api_key,
                          .concurrency = options.concurrency};
  const WordCount words(options, target);
  const std::vector<LoadRequest> requests = make_requests(options, words);
  const Report report = report_of(send_load(target, requests));
  if (options.json) {
    print_json(report);
  } else {
    print_table(report);
  }
  return report.errors.empty() ? 0 : 1;
}

}  // namespace

Command add_bench_serve(CLI::App& bench) {
  CLI::App* app = bench.add_subcommand("serve", "load a server that has OpenAI's API");
  auto options = std::make_shared<ServeOptions>();
  ServeOptions& o = *options;
  app->add_option("--url", o.url, "address of the server")->capture_default_str();
  app->add_option("--api-key", o.api_key, "sent as a bearer token");
  app->add_option("--model", o.model, "the name that requests ask for")->capture_default_str();
  app->add_flag("--chat", o.chat, "chat completions in place of completions");
  app->add_option("-n,--requests", o.requests, "requests to send")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--rate", o.rate, "arrivals a second (Poisson); 0 = all at once")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app->add_option("--concurrency", o.concurrency,
                  "requests under way at most; 0 = all that have arrived")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app->add_option("--input-tokens", o.input_tokens, "tokens of a prompt, about")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--output-tokens", o.output_tokens, "tokens of an answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--shared-tokens", o.shared_tokens, "tokens with which all prompts begin, about")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app->add_option("--temperature", o.temperature, "if 0, the likeliest token is always chosen")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  app->add_flag("--may-end", o.may_end, "answers end where the model ends them");
  app->add_option("--seed", o.seed, "seed of prompts and arrivals")->capture_default_str();
  app->add_flag("--json", o.json, "one JSON object");
  return {app, [options] { return bench_serve(*options); }};
}

}  // namespace rbee::tools

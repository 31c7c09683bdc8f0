// Prometheus text, checked as a scraper would read it.

#include "server/llm/metrics.h"

#include <gmock/gmock.h>

#include <sstream>

namespace rbee::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

TEST(Histogram, CountsAreCumulative) {
  Histogram histogram({1, 2.5});
  for (const double value : {0.5, 1.0, 2.0, 99.0}) histogram.add(value);
  std::string out;
  histogram.write(out, "h");
  EXPECT_EQ(out,
            "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2.5\"} 3\nh_bucket{le=\"+Inf\"} 4\n"
            "h_sum 102.5\nh_count 4\n");
}

TEST(Metrics, EveryLineIsWellFormedAndDescribed) {
  Metrics metrics;
  metrics.count(Outcome::completed, {.first_token = 0.02, .per_token = 0.004, .total = 1});
  metrics.count(Outcome::rejected);
  metrics.count(Outcome::cancelled);
  metrics.count(Outcome::completed, {.reason = engine::StopReason::eos});
  metrics.count(Outcome::completed, {.reason = engine::StopReason::stop_sequence});
  metrics.count(Outcome::completed, {.reason = engine::StopReason::context_full});
  metrics.begin(30);
  metrics.begin(12);
  metrics.add_piece(0.004);
  metrics.add_piece(0.06);
  engine::ModelInfo model;
  model.id = "a\"b\\c\nd";
  model.weight_bytes = 10;
  const std::string text = metrics.render(model,
                                          {.running = 5,
                                           .waiting = 6,
                                           .prompt_tokens = 7,
                                           .generated_tokens = 9,
                                           .prompt_seconds = 0.5,
                                           .decode_seconds = 2.5,
                                           .steps = 4,
                                           .step_requests = 6,
                                           .longest_text = 77,
                                           .drafts = 11,
                                           .draft_tokens = 40,
                                           .accepted_tokens = 23,
                                           .preemptions = 2,
                                           .prefix_queries = 80,
                                           .prefix_hits = 48,
                                           .kv_blocks_total = 8,
                                           .kv_blocks_used = 2,
                                           .kv_blocks_kept = 3,
                                           .host_blocks_total = 9,
                                           .host_blocks_kept = 6,
                                           .host_blocks_stored = 12,
                                           .host_blocks_loaded = 5,
                                           .host_blocks_dropped = 4,
                                           .host_hits = 160},
                                          1.5);
  EXPECT_THAT(text, HasSubstr(R"(model="a\"b\\c\nd")"));
  EXPECT_THAT(text, HasSubstr("worker_tokens_in_total 7\n"));
  EXPECT_THAT(text, HasSubstr("worker_uptime_seconds 1.5\n"));
  EXPECT_THAT(text, HasSubstr("worker_requests_total{outcome=\"completed\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("worker_requests_total{outcome=\"rejected\"} 1\n"));
  const std::string label = R"(model_name="a\"b\\c\nd")";
  EXPECT_THAT(text, HasSubstr("vllm:e2e_request_latency_seconds_count{" + label + "} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:e2e_request_latency_seconds_bucket{" + label + ",le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running{" + label + "} 5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_waiting{" + label + "} 6\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_cache_usage_perc{" + label + "} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("vllm:num_preemptions_total{" + label + "} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:prefix_cache_queries_total{" + label + "} 80\n"));
  EXPECT_THAT(text, HasSubstr("vllm:prefix_cache_hits_total{" + label + "} 48\n"));
  EXPECT_THAT(text, HasSubstr("vllm:spec_decode_num_drafts_total{" + label + "} 11\n"));
  EXPECT_THAT(text, HasSubstr("vllm:spec_decode_num_draft_tokens_total{" + label + "} 40\n"));
  EXPECT_THAT(text, HasSubstr("vllm:spec_decode_num_accepted_tokens_total{" + label + "} 23\n"));
  EXPECT_THAT(text, HasSubstr("vllm:prompt_tokens_total{" + label + "} 42\n"));
  const auto ended = [&](const char* reason) {
    return "vllm:request_success_total{" + label + ",finished_reason=\"" + reason + "\"} ";
  };
  EXPECT_THAT(text, HasSubstr(ended("stop") + "2\n"));
  EXPECT_THAT(text, HasSubstr(ended("length") + "1\n"));
  EXPECT_THAT(text, HasSubstr(ended("abort") + "1\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:prompt_tokens_total 7\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:prompt_seconds_total 0.5\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:tokens_predicted_total 9\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:tokens_predicted_seconds_total 2.5\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:prompt_tokens_cached_total 48\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:n_decode_total 4\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:n_tokens_max 77\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:n_busy_slots_per_decode 1.5\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:prompt_tokens_seconds 14\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:predicted_tokens_seconds 3.6\n"));
  const std::string between = "vllm:inter_token_latency_seconds_bucket{" + label;
  EXPECT_THAT(text, HasSubstr(between + ",le=\"0.0025\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(between + ",le=\"0.005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(between + ",le=\"0.075\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:requests_processing 5\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:requests_deferred 6\n"));
  EXPECT_THAT(text, HasSubstr("rbee_kv_cache_blocks_kept 3\n"));
  EXPECT_THAT(text, HasSubstr("rbee_host_cache_blocks 9\n"));
  EXPECT_THAT(text, HasSubstr("rbee_host_cache_blocks_kept 6\n"));
  EXPECT_THAT(text, HasSubstr("rbee_host_cache_stored_total 12\n"));
  EXPECT_THAT(text, HasSubstr("rbee_host_cache_loaded_total 5\n"));
  EXPECT_THAT(text, HasSubstr("rbee_host_cache_dropped_total 4\n"));
  EXPECT_THAT(text, HasSubstr("rbee_host_cache_hit_tokens_total 160\n"));
  EXPECT_THAT(text, HasSubstr("worker_inference_duration_ms_count 0\n"));

  const char* const comment = "# (HELP [a-z_0-9:]+ .+|TYPE [a-z_0-9:]+ (counter|gauge|histogram))";
  const char* const sample = R"([a-z_0-9:]+(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? [0-9.e+-]+)";
  std::istringstream lines(text);
  std::string line;
  std::string described;
  while (std::getline(lines, line)) {
    if (line.starts_with('#')) {
      EXPECT_THAT(line, MatchesRegex(comment));
      described = line.substr(7, line.find(' ', 7) - 7);
    } else {
      EXPECT_THAT(line, MatchesRegex(sample));
      EXPECT_THAT(line, StartsWith(described));
    }
  }
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace rbee::server

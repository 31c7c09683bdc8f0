// The worker's command line and log.

#include "workers/llm/flags.h"

#include <gmock/gmock.h>

#include "rbee/core/log.h"
#include "workers/common/logging.h"
#include "workers/common/model_paths.h"
#include "workers/common/server_flags.h"
#include "workers/common/threads.h"

namespace rbee::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::variant<Flags, int> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "llm-worker");
  return parse_flags(static_cast<int>(arguments.size()), arguments.data(),
                     {.name = "llm-worker", .kind = DeviceKind::cuda});
}

Flags flags(std::vector<const char*> arguments) {
  return std::get<Flags>(parse(std::move(arguments)));
}

// The exit status and the output.
std::pair<int, std::string> ends(std::vector<const char*> arguments) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const auto parsed = parse(std::move(arguments));
  const std::string text =
      ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  return {std::holds_alternative<int>(parsed) ? std::get<int>(parsed) : -1, text};
}

TEST(Flags, LayersOnTheGpuByLlamaCppsNames) {
  EXPECT_FALSE(flags({"--model", "m"}).gpu_layers.count().has_value());
  EXPECT_TRUE(flags({"--model", "m"}).gpu_layers.kv_offload);
  for (const char* name : {"--gpu-layers", "--n-gpu-layers", "-ngl"}) {
    EXPECT_EQ(flags({"--model", "m", name, "20"}).gpu_layers.count(), 20) << name;
    EXPECT_EQ(flags({"--model", "m", name, "0"}).gpu_layers.count(), 0) << name;
    EXPECT_EQ(flags({"--model", "m", name, "all"}).gpu_layers.count(), INT64_MAX) << name;
    EXPECT_FALSE(flags({"--model", "m", name, "auto"}).gpu_layers.count().has_value()) << name;
    for (const char* wrong : {"-2", "2147483648", "9999999999999999999", "x", "1.5", "", "3 "}) {
      const auto [status, text] = ends({"--model", "m", name, wrong});
      EXPECT_EQ(status, 2) << name << " " << wrong;
      EXPECT_THAT(text, HasSubstr("--gpu-layers")) << name << " " << wrong;
    }
  }
  EXPECT_FALSE(flags({"--model", "m", "-ngl", "-1"}).gpu_layers.count().has_value());
  EXPECT_FALSE(flags({"--model", "m", "-nkvo"}).gpu_layers.kv_offload);
  EXPECT_FALSE(flags({"--model", "m", "--no-kv-offload"}).gpu_layers.kv_offload);
  EXPECT_EQ(flags({"--model", "m"}).gpu_layers.op_offload_min_batch, 32);
  EXPECT_EQ(flags({"--model", "m", "--op-offload-min-batch", "99"}).gpu_layers.op_offload_min_batch,
            99);
  EXPECT_EQ(flags({"--model", "m", "--no-op-offload"}).gpu_layers.op_offload_min_batch, 0);
  const auto [status, text] = ends({"--model", "m", "--op-offload-min-batch", "-1"});
  EXPECT_EQ(status, 2);
  EXPECT_THAT(text, HasSubstr("--op-offload-min-batch"));
}

TEST(Flags, ExpertsOnTheCpuByLlamaCppsNames) {
  EXPECT_FALSE(flags({"--model", "m"}).gpu_layers.experts().has_value());
  for (const char* name : {"--cpu-moe", "-cmoe"}) {
    EXPECT_EQ(flags({"--model", "m", name}).gpu_layers.experts(), INT64_MAX) << name;
  }
  for (const char* name : {"--n-cpu-moe", "-ncmoe"}) {
    EXPECT_EQ(flags({"--model", "m", name, "12"}).gpu_layers.experts(), 12) << name;
    EXPECT_EQ(flags({"--model", "m", name, "0"}).gpu_layers.experts(), 0) << name;
    EXPECT_FALSE(flags({"--model", "m", name, "auto"}).gpu_layers.experts().has_value()) << name;
    for (const char* wrong : {"-1", "2147483648", "x", "1.5", "", "all"}) {
      const auto [status, text] = ends({"--model", "m", name, wrong});
      EXPECT_EQ(status, 2) << name << " " << wrong;
      EXPECT_THAT(text, HasSubstr("--n-cpu-moe")) << name << " " << wrong;
    }
    EXPECT_EQ(ends({"--model", "m", "-cmoe", name, "2"}).first, 2);
  }
}

// What Ollama's envconfig reads of the same texts.
TEST(Flags, OllamasAddress) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  const Case cases[] = {{"0.0.0.0", "0.0.0.0", 11434},
                        {"0.0.0.0:8000", "0.0.0.0", 8000},
                        {":8000", "", 8000},
                        {"example.com", "example.com", 11434},
                        {"http://example.com", "example.com", 80},
                        {"https://example.com/path", "example.com", 443},
                        {"http://10.0.0.1:8000/", "10.0.0.1", 8000},
                        {"[::1]:8000", "::1", 8000},
                        {"[::1]", "::1", 11434},
                        {"::1", "::1", 11434},
                        {"", "", 11434},
                        {" 0.0.0.0:8000\t\n", "0.0.0.0", 8000},
                        {"\"0.0.0.0:8000\"", "0.0.0.0", 8000},
                        {" 'example.com' ", "example.com", 11434}};
  for (const Case& one : cases) {
    const OllamaHost read = parse_ollama_host(one.text);
    EXPECT_EQ(read.host, one.host) << one.text;
    EXPECT_EQ(read.port, one.port) << one.text;
    EXPECT_EQ(read.warning, "") << one.text;
  }
  for (const char* wrong : {"host:", "host:x", "host:65536", "host:-1", "host:80x"}) {
    const OllamaHost read = parse_ollama_host(wrong);
    EXPECT_EQ(read.host, "host") << wrong;
    EXPECT_EQ(read.port, 11434) << wrong;
    EXPECT_THAT(read.warning, ::testing::HasSubstr(wrong));
  }
  EXPECT_EQ(parse_ollama_host("http://host:x").port, 80);
}

TEST(Flags, HowTokensAreDraftedAhead) {
  EXPECT_FALSE(flags({"--model", "m"}).speculative.on());
  EXPECT_TRUE(flags({"--model", "m", "--speculative", "ngram"}).speculative.on());
  const Flags drafts =
      flags({"--model", "m", "--draft-model", "d", "--draft-tokens", "5", "--draft-min-p", "0.4"});
  EXPECT_TRUE(drafts.speculative.on());
  EXPECT_EQ(drafts.speculative.draft_model, "d");
  EXPECT_EQ(drafts.speculative.tokens, 5);
  EXPECT_EQ(drafts.speculative.min_p, 0.4f);
  EXPECT_FALSE(
      flags({"--model", "m", "--draft-model", "d", "--speculative", "off"}).speculative.on());
  const auto refused = [](std::vector<const char*> more, const char* why) {
    more.insert(more.begin(), {"--model", "m"});
    const auto [status, text] = ends(more);
    EXPECT_EQ(status, 2);
    EXPECT_THAT(text, HasSubstr(why));
  };
  refused({"--speculative", "draft"}, "draft needs a --draft-model");
  refused({"--speculative", "ngram", "--draft-model", "d"}, "no use for a --draft-model");
  refused({"--draft-tokens", "65"}, "--draft-tokens");
  refused({"--draft-min-p", "1.5"}, "--draft-min-p");
}

TEST(Flags, AFileOfPicturesIsAFileOrAName) {
  EXPECT_EQ(no_file_or_name("hf:org/repo"), "");
  EXPECT_EQ(no_file_or_name("/proc/self/exe"), "");
  EXPECT_EQ(no_file_or_name("/dev/null"), "/dev/null: a device, not a file");
  EXPECT_EQ(no_file_or_name("/dev"), "/dev: a folder, not a file");
  EXPECT_EQ(no_file_or_name("/no/such"), "File does not exist: /no/such");
}

TEST(Flags, Defaults) {
  const Flags parsed = flags({"--model", "m.gguf"});
  EXPECT_EQ(parsed.model, "m.gguf");
  EXPECT_EQ(parsed.port, 8080);
  EXPECT_EQ(parsed.worker_id, "llm-worker-8080");
  EXPECT_EQ(parsed.host, "");
  EXPECT_EQ(parsed.context, 0);
  EXPECT_EQ(parsed.cache_type, "auto");
  EXPECT_EQ(parsed.max_running, 32);
  EXPECT_EQ(parsed.max_waiting, 256);
  EXPECT_EQ(parsed.scheduling, "fair");
  EXPECT_EQ(parsed.step_tokens, 0);
  EXPECT_EQ(parsed.cache_tokens, 0);
  EXPECT_THAT(parsed.ignored, IsEmpty());
}

TEST(Flags, WhatTheModelsFilesSayCanBeReplaced) {
  EXPECT_EQ(flags({"--model", "m"}).generation, "auto");
  EXPECT_EQ(flags({"--model", "m", "--generation-config", "vllm"}).generation, "vllm");
  EXPECT_EQ(flags({"--model", "m", "--chat-template", "/dev/../etc/passwd"}).chat_template,
            "/dev/../etc/passwd");
  EXPECT_EQ(ends({"--model", "m", "--chat-template", "/nowhere"}).first, 2);
}

TEST(Flags, FormsOfCallsAndReasoning) {
  EXPECT_EQ(flags({"--model", "m"}).tool_parser, "auto");
  EXPECT_EQ(flags({"--model", "m", "--tool-parser", "qwen3_coder"}).tool_parser, "qwen3_coder");
  EXPECT_EQ(flags({"--model", "m", "--reasoning-parser", "none"}).reasoning_parser, "none");
  EXPECT_EQ(flags({"--model", "m"}).reasoning_budget, -1);
  EXPECT_EQ(flags({"--model", "m", "--reasoning-budget", "512"}).reasoning_budget, 512);
  const auto [status, text] = ends({"--model", "m", "--tool-parser", "xml"});
  EXPECT_EQ(status, 2);
  EXPECT_THAT(text, HasSubstr("deepseek_v31"));
}

// What requests ask for; a file's name may be none.
TEST(Flags, NamesOfModelsAndAdaptersHaveNoBlanks) {
  const std::string quoted = "a\"b=/p", longest(128, 'x'), longer(129, 'x');
  for (const auto& [flag, value] :
       std::vector<std::pair<const char*, std::string>>{{"--alias", "a b"},
                                                        {"--alias", "ok,a\\b"},
                                                        {"--alias", longer},
                                                        {"--lora", "a b=/p"},
                                                        {"--lora", quoted},
                                                        {"--lora", "/adapters/my adapter.gguf"}}) {
    const auto [status, text] = ends({"--model", "m", flag, value.c_str()});
    EXPECT_EQ(status, 2) << value;
    EXPECT_THAT(text, HasSubstr("without space, quote and backslash")) << value;
  }
  EXPECT_EQ(flags({"--model", "m", "--alias", longest.c_str()}).aliases.size(), 1u);
  EXPECT_EQ(flags({"--model", "m", "--lora", "a=/my adapters/a.gguf"}).loras.at(0).name, "a");
}

TEST(Flags, AllOfThem) {
  const Flags parsed =
      flags({"--worker-id",  "w",         "--model",    "m",           "--model-ref",   "hf:x",
             "--port",       "0",         "--hive-url", "http://h",    "--host",        "::",
             "--context",    "8192",      "--threads",  "3",           "--cuda-device", "2",
             "--local-mode", "--backend", "cpu",        "--queen-url", "http://q"});
  EXPECT_EQ(parsed.worker_id, "w");
  EXPECT_EQ(parsed.model_ref, "hf:x");
  EXPECT_EQ(parsed.port, 0);
  EXPECT_EQ(parsed.hive_url, "http://h");
  EXPECT_EQ(parsed.host, "::");
  EXPECT_EQ(parsed.context, 8192);
  EXPECT_EQ(parsed.threads, 3);
  EXPECT_EQ(parsed.device, 2);
  EXPECT_EQ(flags({"--model", "m", "--cache-type", "f8e4m3"}).cache_type, "f8e4m3");
  EXPECT_EQ(flags({"--model", "m", "--cache-type", "q8_0"}).cache_type, "q8_0");
  const Flags batching =
      flags({"--model", "m", "--max-running", "1024", "--max-waiting", "0", "--step-tokens", "4096",
             "--cache-tokens", "100000", "--scheduling-policy", "priority"});
  EXPECT_EQ(batching.scheduling, "priority");
  EXPECT_EQ(batching.max_running, 1024);
  EXPECT_EQ(batching.max_waiting, 0);
  EXPECT_EQ(batching.step_tokens, 4096);
  EXPECT_EQ(batching.cache_tokens, 100000);
}

TEST(Flags, AsAHiveStartsIt) {
  const Flags parsed = flags({"--worker-id", "worker-cpu-8081", "--model", "m", "--device", "1",
                              "--port", "8081", "--queen-url", "http://localhost:7833"});
  EXPECT_EQ(parsed.device, 1);
  EXPECT_EQ(parsed.hive_url, "http://localhost:7833");
  EXPECT_THAT(parsed.ignored, IsEmpty());
  EXPECT_EQ(flags({"--model", "m", "--device", "GPU-0"}).device, 0);
  EXPECT_EQ(flags({"--model", "m", "--local-mode"}).host, "127.0.0.1");
}

TEST(Flags, ADeviceByItsNumberOrItsName) {
  const auto device = [](const char* text) {
    return flags({"--model", "m", "--device", text}).device;
  };
  EXPECT_EQ(device("3"), 3);
  EXPECT_EQ(device("cuda:2"), 2);
  EXPECT_EQ(device("cuda"), 0);
  EXPECT_EQ(device("GPU:1"), 0) << "a label";
  EXPECT_TRUE(flags({"--model", "m", "--device", "auto"}).any_device);
  EXPECT_FALSE(flags({"--model", "m"}).any_device);
  EXPECT_FALSE(flags({"--model", "m", "--device", "auto", "--cuda-device", "1"}).any_device);
  EXPECT_EQ(flags({"--model", "m", "--device", "cuda:2", "--cuda-device", "1"}).device, 1);
  for (const char* wrong : {"rocm:1", "cpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1024", "cuda:1 ",
                            "-1", "1024", "99999999999"}) {
    const auto [status, text] = ends({"--model", "m", "--device", wrong});
    EXPECT_EQ(status, 2) << wrong;
    EXPECT_THAT(text, HasSubstr(wrong));
    EXPECT_THAT(text, HasSubstr("is none of this worker's, 0 to 1023 or cuda:N"));
  }
}

TEST(Flags, UnknownOnesAreKeptForAWarning) {
  EXPECT_THAT(
      flags({"--model", "m", "--kv-cache-size-mb", "64", "--port", "81", "--verbose"}).ignored,
      ElementsAre("--kv-cache-size-mb", "64", "--verbose"));
}

TEST(Flags, WrongUsage) {
  EXPECT_THAT(ends({}).second, HasSubstr("--model is required"));
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{
           {},
           {"--port", "80"},
           {"--model"},
           {"--model", "m", "--port", "65536"},
           {"--model", "m", "--port", "-1"},
           {"--model", "m", "--port", "http"},
           {"--model", "m", "--threads", "-1"},
           {"--model", "m", "--context", "x"},
           {"--model", "m", "--cache-type", "q3"},
           {"--model", "m", "--max-running", "0"},
           {"--model", "m", "--max-waiting", "-1"},
           {"--model", "m", "--step-tokens", "65537"},
           {"--model", "m", "--cache-tokens", "-1"},
           {"--model", "m", "--rocm-device", "-1"},
           {"--model", "m", "stray"},
       }) {
    EXPECT_EQ(ends(arguments).first, 2);
  }
}

// An origin that no browser sends would silently allow no page at all.
TEST(Flags, OriginsAreAsBrowsersSendThem) {
  for (const char* good : {"https://a.example", "http://localhost:3000", "http://[::1]:3000",
                           "chrome-extension://abc", "null", "*"}) {
    const Flags parsed = flags({"--model", "m", "--cors-origin", good});
    EXPECT_EQ(parsed.cors_origins, std::vector<std::string>{good});
  }
  for (const char* bad : {"a.example", "https://a.example/", "https://a.example/chat", "https://",
                          "https://A.example", "https://u@a.example", "://a", "https://a b"}) {
    const auto [status, text] = ends({"--model", "m", "--cors-origin", bad});
    EXPECT_EQ(status, 2) << bad;
    EXPECT_THAT(text, HasSubstr("is no origin")) << bad;
  }
}

TEST(Flags, InformationEndsWithZero) {
  for (const char* flag : {"--help", "--version", "--build-info"}) {
    const auto [status, text] = ends({flag});
    EXPECT_EQ(status, 0) << flag;
    EXPECT_FALSE(text.empty());
  }
  EXPECT_THAT(ends({"--version"}).second, HasSubstr("llm-worker " RBEE_VERSION));
  EXPECT_THAT(ends({"--version"}).second, HasSubstr("Apache-2.0 OR MIT"));
  EXPECT_THAT(ends({"--build-info"}).second, HasSubstr("compiler"));
  EXPECT_THAT(ends({"--help"}).second, HasSubstr("--model-ref"));
}

TEST(Flags, Hosts) {
  EXPECT_EQ(default_host(true), "0.0.0.0");
  EXPECT_EQ(default_host(false), "127.0.0.1");
}

TEST(Flags, ThreadsAreNoMoreThanProcessors) {
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel, std::string_view text, auto) { warnings.emplace_back(text); },
               LogLevel::warn);
  EXPECT_EQ(thread_count(0, {.there = 2, .quota = 1}), 0);
  EXPECT_EQ(thread_count(2, {.there = 2, .quota = 2}), 2);
  EXPECT_EQ(thread_count(1000, {}), 1000);
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ(thread_count(1000, {.there = 2}), 2);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("--threads is more than there are")));
  warnings.clear();
  EXPECT_EQ(thread_count(4, {.there = 8, .quota = 3}), 4);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("--threads is more than the control group")));
  set_log_sink(nullptr, LogLevel::error);
}

std::string logged(LogFormat format, const char* level) {
  ::testing::internal::CaptureStdout();
  start_logging(format, level);
  log(LogLevel::debug, "small \x1b[31m");
  log(LogLevel::info, "a \"b\"", {{"key", "x\ny"}});
  set_log_sink(nullptr, LogLevel::error);
  return ::testing::internal::GetCapturedStdout();
}

TEST(Logging, Formats) {
  EXPECT_THAT(logged(LogFormat::json, ""),
              ::testing::MatchesRegex("\\{\"timestamp\":\"[-0-9T:.Z]*\",\"level\":\"INFO\","
                                      "\"message\":\"a .\"b.\"\",\"key\":\"x.u000ay\"\\}\n"));
  EXPECT_THAT(logged(LogFormat::pretty, ""), HasSubstr(" INFO a \"b\" key=x\ny\n"));
  EXPECT_THAT(logged(LogFormat::pretty, "trace"), HasSubstr("DEBUG small \\x1b[31m\n"));
  EXPECT_EQ(log_format("json", LogFormat::pretty), LogFormat::json);
  EXPECT_EQ(log_format("pretty", LogFormat::json), LogFormat::pretty);
  EXPECT_EQ(log_format("", LogFormat::json), LogFormat::json);
}

TEST(Logging, Levels) {
  EXPECT_THAT(logged(LogFormat::pretty, "debug"), HasSubstr("DEBUG small"));
  EXPECT_THAT(logged(LogFormat::pretty, "hyper=off,TRACE"), HasSubstr("DEBUG small"));
  EXPECT_EQ(logged(LogFormat::pretty, "warn"), "");
  EXPECT_EQ(logged(LogFormat::pretty, "off"), "");
  EXPECT_THAT(logged(LogFormat::pretty, "nonsense"), HasSubstr("INFO"));
}

}  // namespace
}  // namespace rbee::workers

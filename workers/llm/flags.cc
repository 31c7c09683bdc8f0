#include "workers/llm/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "rbee/core/cat.h"

namespace rbee::workers {
namespace {

constexpr const char* kBuildInfo = RBEE_VERSION " (" RBEE_BUILD_TYPE ", compiler " __VERSION__ ")";

// Flags that hives pass and this worker has no use for.
struct Tolerated {
  std::string backend;
  std::string device;
  std::string queen_url;
  bool local_mode = false;
};

void add_flags(CLI::App& app, Flags& flags, Tolerated& tolerated) {
  app.add_option("--model", flags.model, "GGUF or safetensors file, or Hugging Face folder")
      ->required();
  app.add_option("--model-ref", flags.model_ref, "Name reported for the model, e.g. hf:org/name");
  app.add_option("--worker-id", flags.worker_id, "Name of this worker")
      ->default_str("llm-worker-<port>");
  app.add_option("--port", flags.port, "Port to listen on; 0 = any free one")
      ->capture_default_str();
  app.add_option("--host", flags.host,
                 "Address to listen on; by default 127.0.0.1, and 0.0.0.0 when LLORCH_API_TOKEN "
                 "is set");
  app.add_option("--hive-url", flags.hive_url, "Where heartbeats go, e.g. http://localhost:7835");
  app.add_option("--context", flags.context, "Tokens of context; 0 = the model's, at most 4096")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  app.add_option("--dtype", flags.dtype,
                 "What layers compute in; auto = f32 on a CPU, on a GPU by the weights' type")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16"}))
      ->capture_default_str();
  app.add_option("--cache-type", flags.cache_type,
                 "What keys and values are kept in; auto = 16 bits, f8e4m3 and q8_0 halve "
                 "them")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "f8e4m3", "q8_0"}))
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads; 0 = one for each core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--cuda-device,--rocm-device,--metal-device", flags.device,
                 "Which device of the worker's kind")
      ->check(CLI::Range(0, 1023));
  app.add_option("--device", tolerated.device, "Same, as hives call it");
  app.add_option("--backend", tolerated.backend, "Label; not used");
  app.add_option("--queen-url", tolerated.queen_url, "Where heartbeats go without --hive-url");
  app.add_flag("--local-mode", tolerated.local_mode, "Listen on 127.0.0.1 only");
}

void apply(const Tolerated& tolerated, const CLI::App& app, Flags& flags) {
  if (flags.worker_id.empty()) flags.worker_id = cat("llm-worker-", flags.port);
  if (flags.hive_url.empty()) flags.hive_url = tolerated.queen_url;
  if (tolerated.local_mode && flags.host.empty()) flags.host = "127.0.0.1";
  int ordinal = 0;
  const std::string& text = tolerated.device;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ordinal);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (number && app.count("--cuda-device") == 0) flags.device = ordinal;
  flags.ignored = app.remaining();
}

}  // namespace

std::variant<Flags, int> parse_flags(int argc, const char* const* argv, const char* program) {
  CLI::App app("Serves a chat model over HTTP.", program);
  Flags flags;
  Tolerated tolerated;
  add_flags(app, flags, tolerated);
  app.set_version_flag("--version", std::string(program) + " " RBEE_VERSION);
  app.add_flag_callback("--build-info", [] { throw CLI::CallForVersion(kBuildInfo, 0); })
      ->group("");
  app.allow_extras();
  try {
    app.parse(argc, argv);
    // Only what looks like a flag, or follows one, may be unknown.
    const std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && !rest.front().starts_with("-")) {
      throw CLI::ExtrasError(std::vector<std::string>{rest.front()});
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  apply(tolerated, app, flags);
  return flags;
}

}  // namespace rbee::workers

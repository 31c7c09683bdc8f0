#include "workers/llm/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "rbee/core/served_name.h"
#include "rbee/text/output/output_format.h"
#include "workers/common/flags.h"
#include "workers/common/group_flags.h"
#include "workers/common/model_paths.h"

namespace rbee::workers {
namespace {

// Flags that are converted after parsing, and flags that hives pass but this worker does not
// use.
struct Tolerated {
  std::vector<std::string> loras;
  std::string backend;
  std::string queen_url;
  bool local_mode = false;
};

// The hash that vLLM offers too and other programs can make.
constexpr const char* kBlockHash = "sha256_cbor";

void add_kv_event_flags(CLI::App& app, Flags& flags) {
  const auto read = [&flags](const std::string& json) {
    try {
      flags.kv_events = parse_kv_events_config(json);
    } catch (const Error& error) {
      throw CLI::ValidationError(error.what());
    }
  };
  app.add_option_function<std::string>(
      "--kv-events-config", read,
      "JSON as vLLM's: tell routers which texts the cache holds, with GET /kv-events and ZeroMQ");
  app.add_option("--prefix-caching-hash-algo", "How KV events name texts; sha256_cbor alone")
      ->check(CLI::IsMember({kBlockHash}));
}

void add_batching_flags(CLI::App& app, Flags& flags) {
  app.add_option("--max-running", flags.max_running, "Requests answered at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--max-waiting", flags.max_waiting, "Requests queued in addition")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option(
         "--scheduling-policy", flags.scheduling,
         "fair: clients take turns; priority: requests may also ask to go before all others")
      ->check(CLI::IsMember({"fair", "priority"}))
      ->capture_default_str();
  add_speculative_flags(app, flags.speculative);
  app.add_option("--step-tokens", flags.step_tokens,
                 "Tokens evaluated at once at most; 0 = 512 on a CPU, else 2048")
      ->check(CLI::Range(int64_t{0}, int64_t{65536}));
  app.add_option("--cache-tokens", flags.cache_tokens,
                 "Tokens whose keys and values are kept, of all requests; 0 = as memory allows")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  app.add_option("--host-cache-gib", flags.host_cache_gib,
                 "GiB of host memory for texts that --cache-tokens has no room for; 0 = none")
      ->check(CLI::Range(0.0, 65536.0));
  add_kv_event_flags(app, flags);
}

// "auto" and the names of a parser.
CLI::IsMember named_forms(std::string_view names) {
  std::vector<std::string> out{"auto"};
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(", ", at), names.size());
    out.emplace_back(names.substr(at, end - at));
    at = end + 2;
  }
  return CLI::IsMember(out);
}

void add_output_flags(CLI::App& app, Flags& flags) {
  app.add_option("--chat-template,--chat-template-file", flags.chat_template,
                 "File of a Jinja template instead of the model's")
      ->check(CLI::ExistingFile);
  app.add_option(
         "--generation-config", flags.generation,
         "auto: the model's generation_config.json gives the sampling defaults of OpenAI's and "
         "Anthropic's routes; off or vllm: it is ignored")
      ->check(CLI::IsMember({"auto", "off", "vllm"}))
      ->capture_default_str();
  app.add_option("--tool-parser", flags.tool_parser,
                 "How the model writes function calls; auto = as its chat template")
      ->check(named_forms(text::kToolFormatNames))
      ->capture_default_str();
  app.add_option("--reasoning-parser", flags.reasoning_parser,
                 "How the model writes its reasoning; auto = as its chat template")
      ->check(named_forms(text::kReasoningFormatNames))
      ->capture_default_str();
  app.add_option(
         "--reasoning-budget", flags.reasoning_budget,
         "Tokens of reasoning at most in chats that name no budget; 0 = none, -1 = no limit")
      ->check(CLI::Range(-1, INT32_MAX))
      ->capture_default_str();
}

void add_lora_flags(CLI::App& app, Flags& flags, Tolerated& tolerated) {
  app.add_option("--lora,--lora-modules", tolerated.loras,
                 "NAME=PATH[:SCALE]: a LoRA adapter, PEFT's folder or a GGUF file, that requests "
                 "can name; may be given several times")
      ->check([](const std::string& text) -> std::string {
        try {
          const std::string name = engine::parse_lora(text).name;
          if (is_served_name(name)) return "";
          return cat("the name '", name, "' must be ", kServedNameRule, ": write NAME=PATH");
        } catch (const Error& error) {
          return error.what();
        }
      });
  app.add_flag("--apply-loras", flags.apply_loras,
               "Requests that name no adapter use all of --lora, at their scales");
  app.add_flag("--lora-loading", flags.lora_loading,
               "Clients may load and unload adapters, from any path that the worker can read");
}

void add_picture_flags(CLI::App& app, Flags& flags) {
  app.add_option("--mmproj", flags.mmproj, "GGUF file by which a GGUF model reads pictures")
      ->check(no_file_or_name);
  app.add_option("--pan-and-scan", flags.pan_and_scan,
                 "Long pictures are shown in parts too; auto = as the model's files say")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--max-pictures", flags.max_pictures, "Pictures of a request at most")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--grammar-cache", flags.grammar_cache_mib,
                 "MiB of grammars and their masks kept for later requests")
      ->check(CLI::Range(int64_t{16}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--picture-cache", flags.picture_cache_mib,
                 "MiB of encoded pictures kept for later requests about them")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
}

// llama-server's names, except --model-ref.
void add_request_flags(CLI::App& app, Flags& flags) {
  app.add_option("--model-ref", flags.model_ref, "Name reported for the model, e.g. hf:org/name");
  app.add_option("--alias,--served-model-name", flags.aliases,
                 "More names of the model, in lists of models; the first is reported where "
                 "--model-ref is not given")
      ->delimiter(',')
      ->check([](const std::string& text) -> std::string {
        return is_served_name(text) ? "" : cat("'", text, "' must be ", kServedNameRule);
      });
  app.add_option("--tags", flags.tags, "Tags in lists of models, separated by commas")
      ->delimiter(',');
  app.add_option("--temp,--temperature", flags.temperature, "Temperature of requests without one")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--seed", flags.seed, "Seed of requests without one");
  app.add_option("--response-store-mib", flags.response_store_mib,
                 "MiB of responses kept for previous_response_id; 0 = none are kept")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--response-store-count", flags.response_store_count,
                 "Responses that are kept at most")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--response-store-hours", flags.response_store_hours,
                 "Hours after which a kept response is forgotten")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--n-predict,--predict", flags.max_answer,
                 "Tokens of an answer at most, where a request names no limit; -1 = no limit")
      ->check(CLI::Range(-1, INT32_MAX))
      ->capture_default_str();
}

void add_flags(CLI::App& app, Flags& flags, Tolerated& tolerated) {
  add_common_flags(app, flags);
  app.add_option("--model", flags.model,
                 "GGUF or safetensors file, Hugging Face folder, or hf:org/repo[:QUANTIZATION]; "
                 "absent: --model-ref, if it begins with hf:");
  add_picture_flags(app, flags);
  add_request_flags(app, flags);
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
  add_gpu_layer_flags(app, flags.gpu_layers);
  add_group_flags(app, flags.group);
  app.add_option("--pooling", flags.pooling,
                 "Make embeddings from these states, or rank by the model's yes and no; auto = as "
                 "its files say")
      ->check(CLI::IsMember({"auto", "mean", "cls", "last", "rank"}))
      ->capture_default_str();
  add_batching_flags(app, flags);
  add_lora_flags(app, flags, tolerated);
  add_output_flags(app, flags);
  app.add_option("--backend", tolerated.backend, "Label; not used");
  app.add_option("--queen-url", tolerated.queen_url, "Where heartbeats go without --hive-url");
  app.add_flag("--local-mode", tolerated.local_mode, "Listen on 127.0.0.1 only");
}

// What a hive names is what it reports. Throws CLI::RequiredError.
void find_model(Flags& flags) {
  if (flags.model.empty() && hub::is_hub_name(flags.model_ref)) flags.model = flags.model_ref;
  if (flags.model.empty()) throw CLI::RequiredError("--model");
}

void apply(const Tolerated& tolerated, Flags& flags) {
  for (const std::string& text : tolerated.loras) flags.loras.push_back(engine::parse_lora(text));
  if (flags.model_ref.empty() && !flags.aliases.empty()) flags.model_ref = flags.aliases.front();
  if (flags.model_ref.empty() && hub::is_hub_name(flags.model)) flags.model_ref = flags.model;
  if (flags.hive_url.empty()) flags.hive_url = tolerated.queen_url;
  if (tolerated.local_mode && flags.host.empty()) flags.host = "127.0.0.1";
}

}  // namespace

std::variant<Flags, int> parse_flags(int argc, const char* const* argv, const Program& program) {
  CLI::App app("Serves a chat model over HTTP.", program.name);
  Flags flags;
  flags.kind = program.kind;
  Tolerated tolerated;
  add_flags(app, flags, tolerated);
  const auto status = parse_command_line(app, argc, argv, "llm-worker", flags, [&] {
    find_model(flags);
    check_speculative_flags(flags.speculative);
    check_group_flags(flags.group);
  });
  if (status) return *status;
  apply(tolerated, flags);
  return flags;
}

}  // namespace rbee::workers

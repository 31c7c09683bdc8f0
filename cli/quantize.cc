// rbee quantize: a model in a smaller type.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "cli/commands.h"
#include "cli/model_paths.h"
#include "rbee/core/error.h"
#include "rbee/core/printable.h"
#include "rbee/io/checkpoint.h"
#include "tools/convert/importance.h"
#include "tools/convert/metadata.h"
#include "tools/convert/recipe.h"
#include "tools/convert/to_gguf.h"
#include "tools/convert/type_plan.h"
#include "tools/convert/write_model.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOp = "quantize";

struct QuantizeOptions {
  std::string from;
  std::string to;
  std::string type;
  ImportanceOptions importance;  // of no file: all columns are equal
  int threads = 0;
  bool pure = false;
  bool dry_run = false;
  bool no_vocabulary = false;
  bool quiet = false;
};

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

// From here on these signals stop the work cleanly, so that no half-written file remains.
void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_asked = true; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

void print_plan(const TensorPlan& plan, int64_t bytes, size_t index, size_t count) {
  const io::TensorEntry& stored = plan.tensor->stored;
  std::printf("[%4zu/%4zu] %-44s %-7s -> %-7s %10.2f MB%s%s\n", index + 1, count,
              printable_line(stored.name).c_str(), name(stored.dtype), name(plan.to),
              static_cast<double>(bytes) / 1e6, plan.why.empty() ? "" : "  ", plan.why.c_str());
  std::fflush(stdout);
}

void print_total(const std::vector<TensorPlan>& plans, const std::string& path) {
  int64_t from = 0, elements = 0;
  for (const TensorPlan& plan : plans) {
    for (const io::TensorEntry& source : plan.tensor->sources()) {
      from += static_cast<int64_t>(source.data.size());
    }
    elements += numel(plan.tensor->stored.shape);
  }
  const auto to = static_cast<double>(planned_bytes(plans));
  std::printf("%s: %.2f MB of tensors, from %.2f MB; %.2f bits a weight\n", path.c_str(), to / 1e6,
              static_cast<double>(from) / 1e6,
              elements == 0 ? 0.0 : 8 * to / static_cast<double>(elements));
}

void warn_of_second_loss(const std::vector<TensorPlan>& plans) {
  const auto lossy = [](const TensorPlan& plan) {
    const DType stored = plan.tensor->stored.dtype;
    return is_quantized(stored) && plan.to != stored;
  };
  if (!std::ranges::any_of(plans, lossy)) return;
  std::fprintf(
      stderr,
      "warning: the input is quantised already, and what that lost stays lost; the original "
      "gives a better file\n");
}

void warn_of_missing(const Importance& importance, const std::vector<TensorPlan>& plans) {
  const std::vector<std::string> names = importance.missing(plans);
  if (names.empty()) return;
  std::fprintf(stderr, "warning: the importance matrix has nothing for %zu matrices, e.g. %s\n",
               names.size(), printable_line(names.front()).c_str());
}

// Writer: GgufWriter or SafetensorsWriter, with its keys set. importance: null for none.
template <typename Writer>
void write(Writer& writer, const std::vector<TensorPlan>& plans, const QuantizeOptions& options,
           const Importance* importance) {
  if (importance != nullptr) warn_of_missing(*importance, plans);
  warn_of_second_loss(plans);
  const auto progress = [&](const TensorPlan& plan, int64_t bytes, size_t index) {
    if (!options.quiet) print_plan(plan, bytes, index, plans.size());
  };
  if (options.dry_run) {
    for (size_t i = 0; i < plans.size(); ++i) {
      progress(plans[i], planned_bytes(std::span(plans).subspan(i, 1)), i);
    }
    return print_total(plans, options.to);
  }
  check_target(plans, options.to);
  catch_signals();
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  write_model(writer, plans,
              {.to = options.to,
               .threads = options.threads > 0 ? options.threads : static_cast<int>(cores),
               .stop = &stop_asked,
               .importance = importance,
               .progress = progress});
  print_total(plans, options.to);
}

// The last part of a path that may end in a slash.
std::string stem_of(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path last = whole.has_filename() ? whole : whole.parent_path();
  return (fs::is_directory(last) ? last.filename() : last.stem()).string();
}

void write_gguf(const io::Checkpoint& checkpoint, const Recipe& recipe,
                const QuantizeOptions& options) {
  io::GgufWriter writer;
  const std::vector<SourceTensor> tensors =
      to_gguf(checkpoint, {.name = stem_of(options.from), .vocabulary = !options.no_vocabulary},
              recipe, writer);
  std::optional<Importance> importance;
  if (!options.importance.file.empty()) {
    importance.emplace(options.importance);
    importance->set_keys(writer);
  }
  const PlanOptions how{.recipe = recipe,
                        .pure = options.pure,
                        .gqa = gqa_of(checkpoint),
                        .experts = experts_of(checkpoint),
                        .weighted = importance.has_value()};
  if (recipe.wants_importance && !importance) {
    std::fprintf(stderr,
                 "warning: files of %s are poor without an importance matrix; `rbee "
                 "imatrix` makes one for --imatrix\n",
                 std::string(recipe.name).c_str());
  }
  write(writer, plan_types(tensors, how), options, importance ? &*importance : nullptr);
}

void write_safetensors(const io::Checkpoint& checkpoint, const Recipe& recipe,
                       const QuantizeOptions& options) {
  const std::vector<SourceTensor> tensors = as_stored(checkpoint);
  io::SafetensorsWriter writer;
  writer.set_metadata("format", "pt");
  write(writer, plan_types(tensors, {.recipe = recipe, .gguf = false}), options, nullptr);
  if (!options.dry_run) std::printf("put config.json and the tokenizer's files beside it\n");
}

int quantize(QuantizeOptions options) {
  use_local_path(options.from, "cpu");
  const Recipe& recipe = find_recipe(options.type);
  const std::string extension = fs::path(options.to).extension().string();
  check(extension == ".gguf" || extension == ".safetensors", kOp, "the output ", options.to,
        " has to end in .gguf or .safetensors");
  const io::Checkpoint checkpoint = io::Checkpoint::open(options.from);
  if (extension == ".gguf") {
    write_gguf(checkpoint, recipe, options);
    return 0;
  }
  check(checkpoint.format() == io::Checkpoint::Format::safetensors, kOp,
        "a GGUF file becomes a GGUF file; the output ", options.to, " has to end in .gguf");
  check(!is_quantized(recipe.base), kOp, "safetensors files hold f32, f16 and bf16; for ",
        recipe.name, " the output has to end in .gguf");
  check(options.importance.file.empty(), "--imatrix",
        "safetensors files have no type that uses it");
  write_safetensors(checkpoint, recipe, options);
  return 0;
}

constexpr const char* kFooter =
    R"(Types: f32 f16 bf16 q8_0 q8_k q5_0 q5_1 q4_0 q4_1 iq4_nl iq4_xs mxfp4 nvfp4 tq1_0 tq2_0, and the
mixtures q6_k, q5_k_m q5_k_s, q4_k_m q4_k_s, q3_k_l q3_k_m q3_k_s, q2_k q2_k_s; q5_k, q4_k and q3_k
are the _m ones. With --imatrix also iq3_m iq3_s iq3_xs iq3_xxs, iq2_m iq2_s iq2_xs iq2_xxs, iq1_m
iq1_s: without one they are poor.
A GGUF file becomes one GGUF file with the same metadata and vocabulary; split files are joined.
A Hugging Face folder becomes a GGUF file with its tokenizer and chat template, or one .safetensors
file of f32, f16 or bf16.
In GGUF files vectors, norms, routers and heads that rank stay f32. Block types keep the output
matrix at q6_k at least, and mixtures give more bits to the matrices that need them; --pure gives
every matrix the same type. Rows that do not divide into the type's block get the next larger type
that fits. Each line says which rule was used.)";

}  // namespace

Command add_quantize(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("quantize", "write a checkpoint in a smaller type");
  auto options = std::make_shared<QuantizeOptions>();
  app->add_option("input", options->from, "a .gguf file, a Hugging Face folder, or hf:org/repo")
      ->required();
  app->add_option("output", options->to, "the new .gguf or .safetensors file; replaced when there")
      ->required();
  app->add_option("type", options->type, "of the weights, e.g. q4_k_m; see below")->required();
  app->add_option("-t,--threads", options->threads, "0 = one for each core")
      ->check(CLI::Range(0, 1024));
  app->add_option("--imatrix", options->importance.file,
                  "an importance matrix, of rbee imatrix or llama-imatrix");
  app->add_option(
         "--include-weights", options->importance.included,
         "of the matrix, only entries with this in their names; may be given several times")
      ->allow_extra_args(false);
  app->add_option("--exclude-weights", options->importance.excluded,
                  "no entries with this in their names; may be given several times")
      ->allow_extra_args(false);
  app->add_flag("--pure", options->pure, "no mixture: every matrix in the same type");
  app->add_flag("--dry-run", options->dry_run, "print the types and sizes, write nothing");
  app->add_flag("--no-vocabulary", options->no_vocabulary,
                "a Hugging Face folder's weights only, without its tokenizer");
  app->add_flag("-q,--quiet", options->quiet, "no line for each tensor");
  app->footer(kFooter);
  return {app, [options] { return quantize(*options); }};
}

}  // namespace rbee::tools

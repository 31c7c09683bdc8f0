// rbee quantize: a model in a smaller type.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "rbee/core/error.h"
#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/io/safetensors_writer.h"
#include "tools/rbee/commands.h"
#include "tools/rbee/quantize_plan.h"
#include "tools/rbee/tensor_rows.h"

namespace rbee::tools {
namespace {

constexpr const char* kOp = "quantize";

struct QuantizeOptions {
  std::string from;
  std::string to;
  std::string type;
  int threads = 0;
  bool pure = false;
  bool quiet = false;
};

// Keys that the new file says itself or that no longer hold.
bool is_replaced(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" ||
         key.starts_with("split.") || key.starts_with("quantize.imatrix.");
}

void copy_metadata(const io::Checkpoint& checkpoint, DType wanted, io::GgufWriter& writer) {
  for (const io::MetaEntry& entry : checkpoint.metadata().entries()) {
    if (!is_replaced(entry.key)) writer.copy(entry);
  }
  writer.set_u32("general.file_type", gguf_file_type(wanted));
  if (is_quantized(wanted)) writer.set_u32("general.quantization_version", 2);
}

DType wanted_type(const std::string& text) {
  const auto dtype = parse_dtype(text);
  if (dtype && can_convert_to(*dtype)) return *dtype;
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto each = static_cast<DType>(i);
    if (can_convert_to(each)) known += cat(known.empty() ? "" : ", ", each);
  }
  fail(Code::invalid_argument, kOp, "'", text, "' is none of ", known);
}

void check_paths(const io::Checkpoint& checkpoint, const QuantizeOptions& options, DType wanted) {
  namespace fs = std::filesystem;
  const bool gguf = checkpoint.format() == io::Checkpoint::Format::gguf;
  const char* extension = gguf ? ".gguf" : ".safetensors";
  if (!gguf && (is_quantized(wanted) || fs::path(options.to).extension() == ".gguf")) {
    fail(
        Code::unsupported, kOp,
        "a Hugging Face checkpoint becomes a .safetensors file of f32, f16 ",
        "or bf16 here; convert it to a GGUF file first (llama.cpp's convert_hf_to_gguf.py), which ",
        "takes the vocabulary along, and quantise that");
  }
  check(fs::path(options.to).extension() == extension, kOp, "the output ", options.to,
        " has to end in ", extension);
}

void print_plan(const TensorPlan& plan, int64_t bytes, size_t index, size_t count) {
  std::printf("[%4zu/%4zu] %-44s %-7s -> %-7s %10.2f MB%s%s\n", index + 1, count,
              plan.tensor->name.c_str(), name(plan.tensor->dtype), name(plan.to),
              static_cast<double>(bytes) / 1e6, plan.why.empty() ? "" : "  ", plan.why.c_str());
  std::fflush(stdout);
}

void warn_of_second_loss(const std::vector<TensorPlan>& plans) {
  const auto lossy = [](const TensorPlan& plan) {
    return is_quantized(plan.tensor->dtype) && plan.to != plan.tensor->dtype;
  };
  if (!std::ranges::any_of(plans, lossy)) return;
  std::fprintf(
      stderr,
      "warning: the input is quantised already, and what that lost stays lost; the original "
      "gives a better file\n");
}

// Writer: GgufWriter or SafetensorsWriter.
template <typename Writer>
void write_tensors(Writer& writer, const std::vector<TensorPlan>& plans,
                   const QuantizeOptions& options) {
  for (const TensorPlan& plan : plans) {
    writer.add_tensor(plan.tensor->name, plan.to, plan.tensor->shape);
  }
  writer.begin(options.to);
  const int threads = options.threads > 0
                          ? options.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int64_t total_in = 0, total_out = 0;
  for (size_t i = 0; i < plans.size(); ++i) {
    const TensorPlan& plan = plans[i];
    int64_t bytes = 0;
    convert_rows(*plan.tensor, plan.to, threads, [&](std::span<const std::byte> rows) {
      bytes += static_cast<int64_t>(rows.size());
      writer.write(rows);
    });
    plan.tensor->file->dont_need(plan.tensor->data);
    total_in += static_cast<int64_t>(plan.tensor->data.size());
    total_out += bytes;
    if (!options.quiet) print_plan(plan, bytes, i, plans.size());
  }
  writer.finish();
  std::printf("%s: %.2f MB of tensors, from %.2f MB\n", options.to.c_str(),
              static_cast<double>(total_out) / 1e6, static_cast<double>(total_in) / 1e6);
}

int quantize(const QuantizeOptions& options) {
  const DType wanted = wanted_type(options.type);
  const io::Checkpoint checkpoint = io::Checkpoint::open(options.from);
  check_paths(checkpoint, options, wanted);
  const std::vector<TensorPlan> plans = plan_types(checkpoint, wanted, options.pure);
  warn_of_second_loss(plans);
  if (checkpoint.format() == io::Checkpoint::Format::gguf) {
    io::GgufWriter writer;
    copy_metadata(checkpoint, wanted, writer);
    write_tensors(writer, plans, options);
  } else {
    io::SafetensorsWriter writer;
    writer.set_metadata("format", "pt");
    write_tensors(writer, plans, options);
    std::printf("put config.json and the tokenizer's files beside it\n");
  }
  return 0;
}

constexpr const char* kFooter =
    R"(Types: f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4.
A GGUF file becomes one GGUF file with the same metadata and vocabulary; split files are joined.
A Hugging Face folder becomes one .safetensors file of f32, f16 or bf16; block types need a GGUF
file, because safetensors has none.
In GGUF files vectors, norms and routers stay f32. The token table and the output matrix become
q6_k or q8_0 where the wanted type is smaller, because their errors meet every token and logit
directly; --pure gives them the wanted type too. Rows that do not divide into the type's block get
the nearest larger type that fits. Each line says which rule was used.)";

}  // namespace

Command add_quantize(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("quantize", "a checkpoint in a smaller type");
  auto options = std::make_shared<QuantizeOptions>();
  app->add_option("input", options->from, "a .gguf file or a Hugging Face folder")->required();
  app->add_option("output", options->to, "the new .gguf or .safetensors file; replaced when there")
      ->required();
  app->add_option("type", options->type, "of the weights, e.g. q4_k; see below")->required();
  app->add_option("-t,--threads", options->threads, "0 = one for each core")
      ->check(CLI::Range(0, 1024));
  app->add_flag("--pure", options->pure, "the token table and the output in the wanted type too");
  app->add_flag("-q,--quiet", options->quiet, "no line for each tensor");
  app->footer(kFooter);
  return {app, [options] { return quantize(*options); }};
}

}  // namespace rbee::tools

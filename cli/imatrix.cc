// rbee imatrix: the mean squares of what a model's matrices are multiplied by, over a text.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/model_paths.h"
#include "rbee/core/input_file.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/io/importance_matrix.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/input_watch.h"

namespace rbee::tools {
namespace {

constexpr const char* kOp = "imatrix";

struct ImatrixOptions {
  ModelOptions model;
  std::string file;
  std::string out = "imatrix.gguf";
  std::string format = "gguf";
  std::vector<std::string> in_files;
  int64_t chunks = -1;
  int64_t from_chunk = 0;
  int64_t output_frequency = 10;
  bool process_output = false;
};

// Sums squares for each matrix of the layers, by its name.
class Collector final : public InputWatch {
 public:
  explicit Collector(bool process_output) : process_output_(process_output) {
    set_input_watch(this);
  }
  ~Collector() override { set_input_watch(nullptr); }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void on_weight(const std::string& name, const Tensor& weight) override {
    if (!name.starts_with("blk.") && !(process_output_ && name == "output.weight")) return;
    Entry& entry = entries_[name];
    const bool experts = weight.rank() == 3;
    entry.columns = static_cast<size_t>(weight.dim(-1));
    entry.counts.resize(experts ? static_cast<size_t>(weight.dim(0)) : 1);
    entry.sums.resize(entry.columns * entry.counts.size());
    by_data_[weight.view().data] = &entry;
  }

  void on_linear(const Tensor& x, std::span<const LinearWeights* const> layers) override {
    const std::vector<Entry*> entries = entries_of(layers);
    if (entries.empty() || x.numel() == 0) return;
    const std::vector<float> values = cast(x, DType::f32).to_host<float>();
    for (Entry* entry : entries) {
      for (int64_t row = 0; row < x.dim(0); ++row) entry->add(values, row, 0);
    }
  }

  void on_experts(const Tensor& x, const Tensor& ids,
                  std::span<const LinearWeights* const> layers) override {
    const std::vector<Entry*> entries = entries_of(layers);
    if (entries.empty() || ids.numel() == 0) return;
    const std::vector<float> values = cast(x, DType::f32).to_host<float>();
    const std::vector<int32_t> chosen = ids.to_host<int32_t>();
    const int64_t choices_of_row = ids.numel() / x.dim(0);
    for (Entry* entry : entries) {
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i] < 0) continue;
        entry->add(values, static_cast<int64_t>(i) / choices_of_row,
                   static_cast<size_t>(chosen[i]));
      }
    }
  }

  // Throws internal if a sum is not finite, not_found if there are none.
  io::ImportanceMatrix result() const {
    io::ImportanceMatrix out;
    for (const auto& [name, entry] : entries_) {
      io::ImportanceEntry& to = out.entries[name];
      to.sums.assign(entry.sums.begin(), entry.sums.end());
      to.counts.assign(entry.counts.begin(), entry.counts.end());
      if (!std::ranges::all_of(to.sums, [](float sum) { return std::isfinite(sum); })) {
        fail(Code::internal, kOp, "the inputs of ", name, " are not finite");
      }
    }
    if (out.entries.empty()) {
      fail(Code::not_found, kOp, "the model has no matrix under a name of GGUF files");
    }
    return out;
  }

 private:
  struct Entry {
    size_t columns = 0;
    std::vector<double> sums;     // (matrices, columns)
    std::vector<int64_t> counts;  // (matrices)

    void add(const std::vector<float>& values, int64_t row, size_t matrix) {
      const float* x = values.data() + static_cast<size_t>(row) * columns;
      double* to = sums.data() + matrix * columns;
      for (size_t i = 0; i < columns; ++i) to[i] += double{x[i]} * double{x[i]};
      ++counts[matrix];
    }
  };

  // Each once: rows of one matrix may be several layers.
  std::vector<Entry*> entries_of(std::span<const LinearWeights* const> layers) const {
    std::vector<Entry*> out;
    for (const LinearWeights* layer : layers) {
      const auto found = by_data_.find(layer->weight.view().data);
      if (found == by_data_.end() || std::ranges::find(out, found->second) != out.end()) continue;
      out.push_back(found->second);
    }
    return out;
  }

  bool process_output_;
  std::map<std::string, Entry> entries_;
  std::unordered_map<const void*, Entry*> by_data_;
};

// Evaluates a chunk; logits of every token are asked for, so that no layer leaves a token out.
void evaluate(engine::Stepper& stepper, std::span<const int32_t> ids) {
  constexpr int64_t kPiece = 128;  // logits of a large vocabulary take much memory
  engine::Sequence sequence(stepper.pool());
  sequence.tokens.assign(ids.begin(), ids.end());
  const auto length = static_cast<int64_t>(ids.size());
  while (sequence.cached < length) {
    const int64_t count = std::min(kPiece, length - sequence.cached);
    std::vector<int32_t> rows(static_cast<size_t>(count));
    std::iota(rows.begin(), rows.end(), 0);
    const engine::Stepper::Work work[] = {{&sequence, count}};
    stepper.step(work, rows);
  }
}

class Imatrix {
 public:
  explicit Imatrix(const ImatrixOptions& options) : options_(options) {
    before_.chunk_size = options.model.context;
    for (const std::string& file : options.in_files) before_.add(io::read_importance(file));
  }

  int combine() const {
    save(before_);
    return 0;
  }

  int collect() {
    Collector collector(options_.process_output);
    const engine::TextModel model = load(options_.model);
    const int64_t window = model.info.context_length;
    check(window == options_.model.context, "--context", "the model takes at most ", window,
          " tokens; wanted chunks of ", options_.model.context);
    const std::vector<int32_t> ids = model.tokenizer->encode(read_file(options_.file));
    const int64_t all = static_cast<int64_t>(ids.size()) / window;
    check(all > options_.from_chunk, "--file", ids.size(), " tokens are ", all, " chunks of ",
          window, "; wanted more than ", options_.from_chunk);
    const int64_t left = all - options_.from_chunk;
    const int64_t chunks = options_.chunks < 0 ? left : std::min(options_.chunks, left);
    const std::optional<int32_t> bos = model.tokenizer->bos();
    const bool starts = bos && ids.front() == *bos;  // each chunk, as the text does
    engine::Stepper stepper(*model.model, *model.device, {.cache_tokens = window, .kv_dtype = {}});
    for (int64_t i = 0; i < chunks; ++i) {
      const auto first = ids.begin() + (options_.from_chunk + i) * window;
      std::vector<int32_t> chunk(first, first + window);
      if (starts) chunk.front() = *bos;
      evaluate(stepper, chunk);
      std::printf("chunk %" PRId64 " of %" PRId64 "\n", i + 1, chunks);
      std::fflush(stdout);
      const bool last = i + 1 == chunks;
      if (last || (i + 1) % options_.output_frequency == 0) save(sum(collector, i + 1));
    }
    return 0;
  }

 private:
  io::ImportanceMatrix sum(const Collector& collector, int64_t chunks) const {
    io::ImportanceMatrix now = collector.result();
    now.chunk_size = options_.model.context;
    now.chunks = chunks;
    now.datasets = {options_.file};
    io::ImportanceMatrix out = before_;
    out.add(now);
    return out;
  }

  void save(const io::ImportanceMatrix& matrix) const {
    io::write_importance(
        matrix, options_.out,
        options_.format == "dat" ? io::ImportanceFormat::dat : io::ImportanceFormat::gguf);
    std::printf("%s: %zu matrices, %" PRId64 " chunks\n", options_.out.c_str(),
                matrix.entries.size(), matrix.chunks);
    for (const auto& [name, entry] : matrix.entries) {
      const auto unseen = std::ranges::count(entry.counts, 0.0f);
      if (unseen == 0) continue;
      std::fprintf(stderr, "warning: %s: %td of %zu experts saw no token of the text\n",
                   name.c_str(), unseen, entry.counts.size());
    }
  }

  const ImatrixOptions& options_;
  io::ImportanceMatrix before_;  // of --in-file
};

int imatrix(ImatrixOptions options) {
  if (options.file.empty()) {
    check(!options.in_files.empty(), "--file", "no text is given, and no --in-file to combine");
    return Imatrix(options).combine();
  }
  check(!options.model.model.empty(), "--model", "no model is given for the text");
  options.model.device = "cpu";
  use_local_paths(options.model);
  return Imatrix(options).collect();
}

constexpr const char* kFooter =
    R"(The text is cut into chunks of --context tokens. The CPU evaluates them, and for each matrix of the
layers the squares of its inputs are summed, for each expert on its own. `rbee quantize --imatrix`
reads the file, and so does llama-quantize; both forms of llama.cpp are read and written.
Without --file, the files of --in-file are added up.)";

}  // namespace

Command add_imatrix(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("imatrix", "measure which weights matter, over a text");
  auto options = std::make_shared<ImatrixOptions>();
  options->model.context = 512;
  app->add_option("-m,--model", options->model.model,
                  "a .gguf file, a Hugging Face folder, or hf:org/repo");
  app->add_option("-c,--context,--ctx-size", options->model.context, "tokens in a chunk")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24))
      ->capture_default_str();
  app->add_option("-t,--threads", options->model.threads, "0 = one for each core")
      ->check(CLI::Range(0, 1024));
  app->add_option("-f,--file", options->file, "text file")->check(CLI::ExistingFile);
  app->add_option("-o,--output,--output-file", options->out, "the new file; replaced when there")
      ->capture_default_str();
  app->add_option("--output-format", options->format, "llama.cpp's form, or its older one")
      ->check(CLI::IsMember({"gguf", "dat"}))
      ->capture_default_str();
  app->add_option("--in-file", options->in_files,
                  "a file to add to, of either form; may be given several times")
      ->allow_extra_args(false);
  app->add_option("--chunks", options->chunks, "chunks at most; -1 = all")
      ->check(CLI::Range(int64_t{-1}, INT64_MAX));
  app->add_option("--chunk,--from-chunk", options->from_chunk, "the first chunk")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--output-frequency", options->output_frequency, "chunks after which to save")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_flag("--process-output", options->process_output, "collect for the output matrix too");
  app->footer(kFooter);
  return {app, [options] { return imatrix(*options); }};
}

}  // namespace rbee::tools

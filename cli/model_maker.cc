#include "cli/model_maker.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "cli/made_files.h"
#include "cli/work_folder.h"
#include "rbee/core/background.h"
#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/io/checkpoint.h"
#include "rbee/models/lora_file.h"
#include "rbee/models/lora_matrices.h"
#include "tools/convert/metadata.h"
#include "tools/convert/to_gguf.h"
#include "tools/convert/type_plan.h"
#include "tools/convert/write_model.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using server::CreateStep;
using server::CreateWatch;
using server::ModelKind;
using server::OllamaRecord;
using server::ServedModel;

// Ollama's clients draw a bar for it.
constexpr std::string_view kNoDigest = "0000000000000000000";

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

void write_gguf(const fs::path& from, const fs::path& to, const Recipe& recipe,
                const std::string& name, const CreateWatch& watch) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(from);
  io::GgufWriter writer;
  const std::vector<SourceTensor> tensors = to_gguf(checkpoint, {.name = name}, recipe, writer);
  const std::vector<TensorPlan> plans =
      plan_types(tensors, {.recipe = recipe, .gqa = gqa_of(checkpoint)});
  check_target(plans, to);
  CreateStep step{.status = cat("quantizing model to ", upper(recipe.name)),
                  .digest = std::string(kNoDigest),
                  .total = planned_bytes(plans)};
  watch.step(step);
  const unsigned cores = std::max(2U, std::thread::hardware_concurrency());
  write_model(writer, plans,
              {.to = to,
               .threads = static_cast<int>(cores / 2),  // requests have the others
               .stop = cancel_flag(),
               .progress = [&](const TensorPlan&, int64_t bytes, size_t) {
                 step.done += bytes;
                 watch.step(step);
               }});
}

// What is wrong with a client's files is the client's to mend, also what is missing in them.
void blame(const std::string& field, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const bool theirs = error.code() == Code::not_found || error.code() == Code::unsupported ||
                        error.code() == Code::invalid_argument;
    if (!theirs || error.op() == field) throw;
    fail(Code::invalid_argument, field, error.what());
  }
}

// The word after this flag; empty: it is not there.
std::string value_of(const std::vector<std::string>& flags, std::string_view flag) {
  const auto at = std::ranges::find(flags, flag);
  return at == flags.end() || at + 1 == flags.end() ? "" : *(at + 1);
}

}  // namespace

// The model of a record that is not saved yet.
class ModelMaker::Opened {
 public:
  Opened(const HubModels& models, ModelRecords& records, const OllamaRecord& record) {
    if (record.files.empty()) {
      const ServedModel base = models.describe(record.from);
      kind = base.kind;
      model = base.model;
      mmproj = value_of(base.flags, "--mmproj");
      return;
    }
    links_.emplace(records.links());
    link_files(records.blobs(), record.files, "files", links_->path());
    blame("files", [&] {
      const MadeModelFiles files = model_in(links_->path(), record.files);
      model = files.model;
      mmproj = files.mmproj;
      kind = models.describe_made(record.name, model, mmproj).kind;
    });
  }

  ModelKind kind = ModelKind::chat;
  fs::path model, mmproj;

 private:
  std::optional<WorkFolder> links_;
};

namespace {

// Its worker would find it out at the first request.
void check_fit(const models::LoraFile& adapter, const std::string& name, const fs::path& model) {
  const bool gguf = model.extension() == ".gguf";
  check(!adapter.is_gguf() || gguf, "adapters", name,
        " is a GGUF file, and the model is none: take the adapter in PEFT's form");
  const io::Checkpoint checkpoint = io::Checkpoint::open(model);
  check(!adapter.is_gguf() || adapter.architecture() == checkpoint.architecture(), "adapters", name,
        " is of a model of the architecture ", adapter.architecture(), ", not ",
        checkpoint.architecture());
  const std::map<std::string, Shape> known = models::lora_matrices(checkpoint, adapter.is_gguf());
  for (const models::LoraFileLayer& layer : adapter.layers()) {
    const auto matrix = known.find(layer.module);
    check(matrix != known.end(), "adapters", name, " changes ", layer.module,
          ", which is no layer of the model that adapters may change");
    const Shape needed{layer.up->shape[0], layer.down->shape[1]};
    check(matrix->second == needed, "adapters", name, " is for another model: its ", layer.module,
          " is for a matrix (", needed, "), the model's is (", matrix->second, ")");
  }
}

}  // namespace

ModelKind ModelMaker::check_files(OllamaRecord& record) const {
  record.files = with_endings(records_->blobs(), record.files);
  record.adapters = with_endings(records_->blobs(), record.adapters);
  const Opened opened(*models_, *records_, record);
  if (record.adapters.empty()) return opened.kind;
  check(opened.kind == ModelKind::chat, "adapters", "a model for embeddings takes none");
  check_adapters(record, opened.model.string());
  return opened.kind;
}

void ModelMaker::check_adapters(const OllamaRecord& record, const std::string& model) const {
  const WorkFolder links(records_->links());
  link_files(records_->blobs(), record.adapters, "adapters", links.path());
  blame("adapters", [&] {
    for (const fs::path& path : adapters_in(links.path(), record.adapters)) {
      check_fit(models::LoraFile(path), path.filename().string(), model);
    }
  });
}

OllamaRecord ModelMaker::quantized(OllamaRecord record, const Recipe& recipe,
                                   const CreateWatch& watch) const {
  record.files = with_endings(records_->blobs(), record.files);
  const Opened opened(*models_, *records_, record);
  check(opened.kind != ModelKind::image, "from", "a model for pictures is not quantized here");
  watch.begin();
  BlobStore& blobs = records_->blobs();
  const WorkFolder work(blobs.work());
  const fs::path file = work.path() / "model.gguf", projector = work.path() / "mmproj.gguf";
  OllamaRecord::Files files;
  run_in_background([&] {
    blame("quantize", [&] { write_gguf(opened.model, file, recipe, record.name, watch); });
    if (!opened.mmproj.empty()) fs::copy_file(opened.mmproj, projector);
    files[cat("model-", recipe.name, ".gguf")] = blobs.take(file);
    if (!opened.mmproj.empty()) files["mmproj.gguf"] = blobs.take(projector);
  });
  for (const auto& [name, digest] : files) {
    watch.step({.status = cat("creating new layer sha256:", digest)});
  }
  record.files = std::move(files);
  record.from.clear();
  return record;
}

}  // namespace rbee::tools

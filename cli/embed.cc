// rbee embed: the vectors of texts, or the scores of documents, as JSON.

#include <CLI/CLI.hpp>
#include <future>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/model_paths.h"
#include "rbee/core/printable.h"
#include "rbee/engine/embedding/engine.h"

namespace rbee::tools {
namespace {

struct EmbedOptions {
  ModelOptions model;
  std::vector<std::string> texts;  // empty = a text for each line of standard input
  std::string query;               // for a model that ranks
  std::string instruction;         // for a ranker that takes instructions; empty = the default
  std::string pooling = "auto";
  std::string prompt_name;  // empty = the checkpoint's default
  int64_t dimensions = 0;
  bool similarity = false;
};

class Result final : public engine::EmbeddingSink {
 public:
  void on_embedded(engine::EmbeddingResult result) noexcept override {
    promise_.set_value(std::move(result));
  }
  void on_failed(const engine::Failed& failed) noexcept override {
    promise_.set_exception(std::make_exception_ptr(Error(failed.code, "embed", failed.message)));
  }
  engine::EmbeddingResult wait() { return promise_.get_future().get(); }

 private:
  std::promise<engine::EmbeddingResult> promise_;
};

engine::EmbeddingRequest request_of(const EmbedOptions& options,
                                    const std::vector<std::string>& texts) {
  engine::EmbeddingRequest request{.dimensions = options.dimensions};
  if (options.similarity) request.normalise = true;
  if (!options.prompt_name.empty()) request.prompt_name = options.prompt_name;
  const engine::SharedText query = options.query, instruction = options.instruction;
  for (const std::string& text : texts) {
    if (options.query.empty()) {
      request.inputs.emplace_back(text);
    } else {
      request.inputs.emplace_back(engine::TextPair{query, text, instruction});
    }
  }
  return request;
}

// The cosine of each vector with the first.
void print_similarities(const std::vector<std::string>& texts,
                        const std::vector<std::vector<float>>& vectors) {
  for (size_t i = 0; i < vectors.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < vectors[i].size(); ++k) {
      sum += double{vectors[0][k]} * double{vectors[i][k]};
    }
    std::printf("%7.4f  %s\n", sum, printable_line(texts[i]).c_str());
  }
}

int embed(EmbedOptions options) {
  use_local_paths(options.model);
  std::vector<std::string> texts = options.texts;
  for (std::string line; options.texts.empty() && std::getline(std::cin, line);) {
    texts.push_back(line);
  }
  const auto engine = engine::make_embedding_engine(
      engine::load_embedding_source(options.model.model, text_model_options(options.model, true),
                                    options.pooling),
      {});
  const auto result = std::make_shared<Result>();
  engine->submit(request_of(options, texts), result);
  const engine::EmbeddingResult made = result->wait();
  if (options.similarity) {
    print_similarities(texts, made.vectors);
  } else if (options.query.empty()) {
    std::printf("%s\n", nlohmann::json(made.vectors).dump().c_str());
  } else {
    for (size_t i = 0; i < texts.size(); ++i) {
      std::printf("%7.4f  %s\n", double{made.vectors[i].at(0)}, printable_line(texts[i]).c_str());
    }
  }
  return 0;
}

}  // namespace

Command add_embed(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("embed", "print the vectors of texts, or rank documents");
  auto options = std::make_shared<EmbedOptions>();
  add_model_options(*app, options->model);
  app->add_option("text", options->texts, "texts; absent = the lines of standard input");
  app->add_option("-q,--query", options->query, "for a ranker: how well each text answers this");
  app->add_option("--instruction", options->instruction,
                  "for a ranker that takes instructions: what counts as an answer");
  app->add_option("--pooling", options->pooling, "auto = as the model's files say")
      ->check(CLI::IsMember({"auto", "mean", "cls", "last", "rank"}))
      ->capture_default_str();
  app->add_option("--prompt-name", options->prompt_name,
                  "name of a prompt in the model's files, put before each text, e.g. query");
  app->add_option("--dimensions", options->dimensions, "leading numbers that are kept; 0 = all")
      ->check(CLI::NonNegativeNumber);
  app->add_flag("--similarity", options->similarity, "the cosine of each text with the first");
  return {app, [options] { return embed(*options); }};
}

}  // namespace rbee::tools

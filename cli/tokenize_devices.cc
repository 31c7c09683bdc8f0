// rbee tokenize: the tokens of a text. rbee devices: what this program can run on.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>

#include "backends/api/registry.h"
#include "cli/commands.h"
#include "cli/model_paths.h"
#include "rbee/core/error.h"
#include "rbee/core/printable.h"
#include "rbee/engine/text/text_model.h"
#include "rbee/io/checkpoint.h"

namespace rbee::tools {
namespace {

struct TokenizeCommand {
  std::string model;
  std::string text;
  bool ids_only = false;
  bool no_special = false;
};

int tokenize(TokenizeCommand options) {
  use_local_path(options.model, "cpu");
  const auto tokenizer = engine::load_tokenizer(io::Checkpoint::open(options.model));
  std::string text = options.text;
  if (text.empty()) {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  const auto ids = tokenizer->encode(text, {.add_special = !options.no_special});
  for (const text::TokenId id : ids) {
    if (options.ids_only) {
      std::printf("%d ", id);
    } else {
      std::printf("%7d  '%s'\n", id, printable_line(tokenizer->piece(id, true)).c_str());
    }
  }
  if (options.ids_only) std::printf("\n");
  std::fprintf(stderr, "%zu tokens\n", ids.size());
  return 0;
}

// The error's text without the operation's name at its start.
std::string_view without(std::string_view op, std::string_view text) {
  return text.starts_with(cat(op, ": ")) ? text.substr(op.size() + 2) : text;
}

// Lists the other devices even if this one is unusable.
void list_device(const BackendInfo& backend, int ordinal) {
  const std::string id = cat(DeviceId{backend.kind, ordinal});
  try {
    const Device& device = backend.device(ordinal);
    const std::string why = device.host_accessible() ? "" : device.capture_refusal();
    const MemoryInfo memory = device.memory();
    std::printf("%s  %s, %.1f of %.1f GB free%s\n", id.c_str(), device.description().c_str(),
                static_cast<double>(memory.free) / 1e9, static_cast<double>(memory.total) / 1e9,
                why.empty() ? "" : cat(", steps are not captured: ", why).c_str());
  } catch (const Error& error) {
    const std::string_view reason = without(id, without(error.op(), error.what()));
    std::printf("%s  cannot be used: %s\n", id.c_str(), std::string(reason).c_str());
  }
}

int list_devices() {
  for (const BackendInfo& backend : backends()) {
    const int count = backend.device_count();
    for (int i = 0; i < count; ++i) list_device(backend, i);
    if (count == 0) {
      const std::string reason = backend.unavailable_reason();
      std::printf("%s  none: %s\n", std::string(name(backend.kind)).c_str(),
                  std::string(without(name(backend.kind), reason)).c_str());
    }
  }
  return 0;
}

}  // namespace

Command add_tokenize(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("tokenize", "show the tokens of a text");
  auto options = std::make_shared<TokenizeCommand>();
  app->add_option("-m,--model", options->model, "checkpoint whose tokenizer to use")->required();
  app->add_option("text", options->text, "the text; absent = standard input");
  app->add_flag("--ids", options->ids_only, "ids only, on one line");
  app->add_flag("--no-special", options->no_special, "without the tokens around a prompt");
  return {app, [options] { return tokenize(*options); }};
}

Command add_devices(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("devices", "list the devices this program can use");
  return {app, list_devices};
}

}  // namespace rbee::tools

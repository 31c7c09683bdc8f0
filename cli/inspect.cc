// rbee inspect: what a checkpoint holds, without loading it.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_paths.h"
#include "rbee/core/error.h"
#include "rbee/core/printable.h"
#include "rbee/io/checkpoint.h"

namespace rbee::tools {
namespace {

using nlohmann::ordered_json;

struct InspectOptions {
  std::string path;
  bool json = false;
  bool full = false;
};

constexpr size_t kShownItems = 6;
constexpr size_t kShownBytes = 72;

struct TypeTotal {
  int64_t tensors = 0;
  int64_t elements = 0;
  int64_t bytes = 0;
};

struct Totals {
  TypeTotal all;
  std::array<TypeTotal, kDTypeCount> by_type{};
};

Totals count(const io::Checkpoint& checkpoint) {
  Totals totals;
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    for (TypeTotal* total : {&totals.all, &totals.by_type[static_cast<size_t>(tensor.dtype)]}) {
      ++total->tensors;
      total->elements += numel(tensor.shape);
      total->bytes += static_cast<int64_t>(tensor.data.size());
    }
  }
  return totals;
}

// The double that prints as briefly as the float: 1e-06, not 9.999999974752427e-07.
double shortest(double value) {
  return std::strtod(cat(static_cast<float>(value)).c_str(), nullptr);
}

// The first `count` items of an array of such numbers.
template <typename T>
std::vector<T> numbers(const io::MetaEntry& entry, size_t count) {
  std::vector<T> out(std::min(static_cast<size_t>(entry.count), count));
  if (!out.empty()) std::memcpy(out.data(), entry.items().data(), out.size() * sizeof(T));
  return out;
}

// The first `count` items of an array, or the value itself.
ordered_json value_of(const io::Metadata& metadata, const io::MetaEntry& entry, size_t count) {
  if (entry.type != io::MetaType::array) {
    if (entry.type == io::MetaType::string) return metadata.require_string(entry.key);
    if (entry.type == io::MetaType::boolean) return metadata.require_bool(entry.key);
    if (entry.type == io::MetaType::u64) return metadata.require_u64(entry.key);
    if (is_integer(entry.type)) return metadata.require_i64(entry.key);
    if (entry.type == io::MetaType::f32) return shortest(metadata.require_f64(entry.key));
    return metadata.require_f64(entry.key);
  }
  const auto first = [count](auto values) {
    values.resize(std::min(values.size(), count));
    return ordered_json(values);
  };
  if (entry.element == io::MetaType::string) return first(metadata.require_strings(entry.key));
  if (entry.element == io::MetaType::boolean) return first(*metadata.get_bools(entry.key));
  if (entry.element == io::MetaType::u64) return numbers<uint64_t>(entry, count);
  if (is_integer(entry.element)) return first(metadata.require_ints(entry.key));
  if (entry.element == io::MetaType::f64) return numbers<double>(entry, count);
  if (entry.element == io::MetaType::f32) {
    std::vector<double> shown;
    std::ranges::transform(numbers<float>(entry, count), std::back_inserter(shown), shortest);
    return shown;
  }
  return entry.describe_type();
}

// Invalid UTF-8, which vocabularies contain, becomes U+FFFD. escaped: writes other characters than
// ASCII as \u....
std::string to_text(const ordered_json& value, int indent = -1, bool escaped = false) {
  return value.dump(indent, ' ', escaped, ordered_json::error_handler_t::replace);
}

std::string shortened(std::string text) {
  if (text.size() <= kShownBytes) return text;
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

double megabytes(int64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

void print_metadata(const io::Metadata& metadata, bool full) {
  if (metadata.entries().empty()) return;
  std::printf("\nmetadata\n");
  for (const io::MetaEntry& entry : metadata.entries()) {
    const size_t count = full ? entry.count : kShownItems;
    std::string value = to_text(value_of(metadata, entry, count));
    if (entry.type == io::MetaType::array && entry.count > count) {
      value = cat(value, " of ", entry.count);
    }
    std::printf("  %-44s %-6s %s\n", printable_line(entry.key).c_str(),
                std::string(name(entry.type)).c_str(),
                printable_line(full ? value : shortened(value)).c_str());
  }
}

void print_totals(const Totals& totals) {
  std::printf("\ntypes\n");
  for (size_t i = 0; i < totals.by_type.size(); ++i) {
    const TypeTotal& total = totals.by_type[i];
    if (total.tensors == 0) continue;
    std::printf("  %-8s %6lld tensors %12.3f M elements %12.3f MB\n", name(static_cast<DType>(i)),
                static_cast<long long>(total.tensors), static_cast<double>(total.elements) / 1e6,
                megabytes(total.bytes));
  }
}

const char* format_name(const io::Checkpoint& checkpoint) {
  return checkpoint.format() == io::Checkpoint::Format::gguf ? "gguf" : "safetensors";
}

// Weights without a config.json can be inspected too.
std::string architecture_of(const io::Checkpoint& checkpoint) {
  try {
    return checkpoint.architecture();
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return "";
  }
}

void print_text(const io::Checkpoint& checkpoint, const Totals& totals, bool full) {
  const std::string architecture = architecture_of(checkpoint);
  std::printf("format        %s\n", format_name(checkpoint));
  std::printf("architecture  %s\n",
              architecture.empty() ? "not named" : printable_line(architecture).c_str());
  std::printf("files         %.3f MB\n", megabytes(checkpoint.file_bytes()));
  std::printf("tensors       %lld, %.3f M elements, %.3f MB",
              static_cast<long long>(totals.all.tensors),
              static_cast<double>(totals.all.elements) / 1e6, megabytes(totals.all.bytes));
  if (totals.all.elements > 0) {
    std::printf(", %.2f bits each", static_cast<double>(totals.all.bytes) * 8 /
                                        static_cast<double>(totals.all.elements));
  }
  std::printf("\n");
  print_metadata(checkpoint.metadata(), full);
  std::printf("\ntensors\n");
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    std::printf("  %-48s %-8s %-20s %14lld bytes\n", printable_line(tensor.name).c_str(),
                name(tensor.dtype), cat("(", tensor.shape, ")").c_str(),
                static_cast<long long>(tensor.data.size()));
  }
  print_totals(totals);
}

ordered_json json_of(const io::Metadata& metadata, bool full) {
  ordered_json out = ordered_json::object();
  for (const io::MetaEntry& entry : metadata.entries()) {
    ordered_json& pair = out[std::string(entry.key)];
    pair["type"] = name(entry.type);
    if (entry.type == io::MetaType::array) {
      pair["element_type"] = name(entry.element);
      pair["count"] = entry.count;
    }
    pair["value"] = value_of(metadata, entry, full ? entry.count : kShownItems);
  }
  return out;
}

void print_json(const io::Checkpoint& checkpoint, const Totals& totals, bool full) {
  const std::string architecture = architecture_of(checkpoint);
  ordered_json out;
  out["format"] = format_name(checkpoint);
  out["architecture"] = architecture.empty() ? ordered_json() : ordered_json(architecture);
  out["file_bytes"] = checkpoint.file_bytes();
  out["elements"] = totals.all.elements;
  out["tensor_bytes"] = totals.all.bytes;
  out["metadata"] = json_of(checkpoint.metadata(), full);
  out["tensors"] = ordered_json::array();
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    out["tensors"].push_back(
        {{"name", tensor.name},
         {"type", name(tensor.dtype)},
         {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
         {"bytes", tensor.data.size()}});
  }
  std::printf("%s\n", to_text(out, 1, isatty(STDOUT_FILENO) == 1).c_str());
}

int inspect(InspectOptions options) {
  use_local_path(options.path, "cpu");
  const io::Checkpoint checkpoint = io::Checkpoint::open(options.path);
  const Totals totals = count(checkpoint);
  if (options.json) {
    print_json(checkpoint, totals, options.full);
  } else {
    print_text(checkpoint, totals, options.full);
  }
  return 0;
}

}  // namespace

Command add_inspect(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("inspect", "show a checkpoint's metadata and tensors");
  auto options = std::make_shared<InspectOptions>();
  app->add_option("checkpoint", options->path,
                  "a .gguf file, a .safetensors file, a Hugging Face folder, or hf:org/repo")
      ->required();
  app->add_flag("--json", options->json, "as one JSON object");
  app->add_flag("--full", options->full, "arrays and long values whole");
  return {app, [options] { return inspect(*options); }};
}

}  // namespace rbee::tools

#include "rbee/hub/gguf_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <regex>
#include <set>
#include <tuple>

#include "rbee/core/byte_text.h"
#include "rbee/core/error.h"
#include "rbee/core/printable.h"

namespace rbee::hub {
namespace {

constexpr std::string_view kGguf = ".gguf";
constexpr size_t kMaxName = 64;                // characters of a quantization
constexpr size_t kSplitChars = 15;             // "-00001-of-00003"
constexpr std::string_view kUsual = "Q4_K_M";  // where the memory is not known

struct Quantization {
  std::string name;
  std::vector<RepoFile> files;
  int64_t bytes = 0;
  int models = 1;  // that have it
};

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

std::string_view stem_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(kGguf)) name.remove_suffix(kGguf.size());
  return name;
}

// Without the extension and the number of a part; with the folder.
std::string_view whole_name(std::string_view path) {
  std::string_view out = path.substr(0, path.rfind('.'));
  return out.substr(0, std::min(split_begin(out), out.size()));
}

std::string_view extension_of(std::string_view path) {
  return path.substr(std::min(path.rfind('.'), path.size()));
}

int64_t parts_of(std::string_view path) {
  const std::string_view stem = path.substr(0, path.rfind('.'));
  if (split_begin(stem) == std::string_view::npos) return 1;
  int64_t out = 1;
  std::from_chars(stem.data() + stem.size() - 5, stem.data() + stem.size(), out);
  return out;
}

bool is_16_bit(std::string_view quantization) {
  return quantization == "F32" || quantization == "F16" || quantization == "BF16";
}

// Each model file with its parts. Files of one quantization and different names, such as a model
// and its draft, are models of their own; the largest stands for the quantization.
std::vector<Quantization> quantizations(std::span<const RepoFile> files) {
  std::map<std::string, Quantization> models;
  for (const RepoFile& file : files) {
    if (!is_gguf_model(file.path)) continue;
    Quantization& model = models[std::string(whole_name(file.path))];
    model.name = quantization_of(file.path);
    model.files.push_back(file);
    model.bytes += file.size;
  }
  std::map<std::string, Quantization> by_name;
  for (auto& [path, model] : models) {
    const auto [same, is_new] = by_name.try_emplace(model.name, model);
    if (is_new) continue;
    model.models = same->second.models + 1;
    if (same->second.bytes < model.bytes) {
      same->second = std::move(model);
    } else {
      same->second.models = model.models;
    }
  }
  std::vector<Quantization> out;
  for (auto& [name, model] : by_name) out.push_back(std::move(model));
  std::ranges::sort(out, {}, &Quantization::bytes);
  for (Quantization& one : out) std::ranges::sort(one.files, {}, &RepoFile::path);
  return out;
}

std::string names_of(std::span<const Quantization> list) {
  std::string out;
  for (const Quantization& one : list) {
    out += cat(out.empty() ? "" : ", ", one.name.empty() ? one.files.front().path : one.name);
  }
  return printable_line(out);
}

const Quantization& asked_for(std::span<const Quantization> list, std::string_view name) {
  const std::string wanted = upper(name);
  for (const std::string& candidate : {wanted, "UD-" + wanted}) {
    const auto found = std::ranges::find(list, candidate, &Quantization::name);
    if (found != list.end()) return *found;
  }
  fail(Code::not_found, "hub", "the repository has no quantization ", printable_line(name),
       "; it has ", names_of(list));
}

// What the choice is, for people.
std::string title_of(const Quantization& one, size_t quantizations) {
  if (!one.name.empty()) return one.name;
  if (one.models > 1) return "the largest of the GGUF files whose names tell no quantization";
  return quantizations > 1 ? "the GGUF file whose name tells no quantization"
                           : "the only GGUF file";
}

bool fits(const Quantization& one, int64_t memory) {
  return needed_memory(one.bytes) <= memory;
}

const Quantization& best(std::span<const Quantization> list, const WantedFiles& wanted,
                         std::string& why) {
  const Quantization* found = nullptr;
  if (wanted.is_there) {
    for (const Quantization& one : list) {
      if (std::ranges::all_of(one.files, wanted.is_there)) found = &one;
    }
    why = "it is in the cache";
    if (found != nullptr) return *found;
  }
  for (const Quantization& one : list) {
    const bool usual = one.name == kUsual;
    if (!is_16_bit(one.name) && (wanted.memory > 0 ? fits(one, wanted.memory) : usual))
      found = &one;
  }
  why = wanted.memory > 0 ? cat("the largest below 16 bits that fits into ",
                                bytes_to_text(wanted.memory), " with a context")
                          : std::string("the usual one");
  if (found != nullptr) return *found;
  why = wanted.memory > 0 ? cat("the smallest; it may not fit into ", bytes_to_text(wanted.memory))
                          : std::string("the smallest");
  return list.front();
}

}  // namespace

size_t split_begin(std::string_view stem) {
  if (stem.size() < kSplitChars) return std::string_view::npos;
  const std::string_view end = stem.substr(stem.size() - kSplitChars);
  const auto digits = [&](size_t at) {
    return std::ranges::all_of(end.substr(at, 5), [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool split = end[0] == '-' && digits(1) && end.substr(6, 4) == "-of-" && digits(10);
  return split ? stem.size() - kSplitChars : std::string_view::npos;
}

bool is_other_part(std::string_view path, std::string_view other) {
  return path != other && parts_of(path) > 1 && parts_of(path) == parts_of(other) &&
         whole_name(path) == whole_name(other) && extension_of(path) == extension_of(other);
}

bool is_mmproj(std::string_view path) {
  return path.ends_with(kGguf) && upper(stem_of(path)).find("MMPROJ") != std::string::npos;
}

bool is_gguf_model(std::string_view path) {
  return path.ends_with(kGguf) && !is_mmproj(path) &&
         upper(stem_of(path)).find("IMATRIX") == std::string::npos;
}

std::string quantization_of(std::string_view path) {
  static const std::regex pattern(
      "(?:^|[-._])((?:UD-)?(?:I?Q[1-8]_[0-9A-Z_]+|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4|BF16|F16|F32|FP16|"
      "FP32))$");
  std::string stem = upper(stem_of(path));
  stem.resize(std::min(split_begin(std::string(stem_of(path))), stem.size()));
  // Names are short, and the search of long ones takes the square of their length.
  if (stem.size() > kMaxName) stem.erase(0, stem.size() - kMaxName);
  std::smatch match;
  if (!std::regex_search(stem, match, pattern)) return {};
  const std::string name = match[1];
  return name == "FP16" ? "F16" : name == "FP32" ? "F32" : name;
}

void check_parts(std::span<const RepoFile> files) {
  using Whole = std::tuple<std::string_view, std::string_view, int64_t>;
  std::map<Whole, std::set<std::string_view>> found;
  for (const RepoFile& file : files) {
    const int64_t wanted = parts_of(file.path);
    if (wanted == 1) continue;
    found[{whole_name(file.path), extension_of(file.path), wanted}].insert(file.path);
  }
  for (const auto& [whole, parts] : found) {
    const int64_t wanted = std::get<int64_t>(whole);
    if (static_cast<int64_t>(parts.size()) == wanted) continue;
    fail(Code::not_found, "hub", printable_line(*parts.begin()), " is one of ", wanted,
         " parts, and ", parts.size(), " are there");
  }
}

void add_mmproj(std::span<const RepoFile> files, Choice& choice) {
  const RepoFile* found = nullptr;
  const auto rank = [](const RepoFile& file) {
    const std::string name = quantization_of(file.path);
    return std::pair(name == "F16" ? 0 : name == "BF16" ? 1 : 2, file.size);
  };
  for (const RepoFile& file : files) {
    if (!is_mmproj(file.path)) continue;
    if (found == nullptr || rank(file) < rank(*found)) found = &file;
  }
  if (found == nullptr) return;
  choice.mmproj = found->path;
  choice.files.push_back(*found);
}

Choice choose_gguf(std::span<const RepoFile> files, const WantedFiles& wanted) {
  const std::vector<Quantization> list = quantizations(files);
  std::string why = "the one asked for";
  const Quantization& one =
      wanted.quantization.empty() ? best(list, wanted, why) : asked_for(list, wanted.quantization);
  check_parts(one.files);
  Choice out{.files = one.files, .model = one.files.front().path};
  out.why = cat(title_of(one, list.size()), ": ", why);
  if (list.size() > 1) out.why += cat("; there are ", names_of(list));
  add_mmproj(files, out);
  return out;
}

}  // namespace rbee::hub

#include "rbee/engine/image/lora_folder.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>

#include "rbee/core/error.h"
#include "rbee/io/mapped_file.h"
#include "rbee/io/safetensors_reader.h"
#include "rbee/models/peft_config.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdapter = ".safetensors";
constexpr const char* kField = "loras.path";

// A link to itself, or a name that is too long, is none.
bool is_file(const fs::path& path) {
  std::error_code refused;
  return fs::is_regular_file(path, refused);
}

bool is_alike(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_plain(const std::string& name) {
  return std::ranges::none_of(
      name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

// Of a folder of PEFT's, which goes by the folder's name.
bool is_peft_file(const fs::path& path) {
  return path.filename() == models::PeftConfig::kWeightsName &&
         is_file(path.parent_path() / models::PeftConfig::kName);
}

// The file of a place below the folder; empty where there is none.
fs::path file_at(const fs::path& folder, const std::string& name) {
  for (const fs::path& candidate : {folder / name, folder / (name + kAdapter),
                                    folder / name / models::PeftConfig::kWeightsName}) {
    if (is_file(candidate)) return candidate;
  }
  return {};
}

// Invalid files have no title: a client that names one gets the reason when it is loaded.
std::string read_title(const fs::path& path) {
  try {
    const auto file = io::MappedFile::open(path);
    return io::read_safetensors_metadata(*file, "ss_output_name").value_or("");
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

struct LoraFolder::Titles {
  struct Known {
    fs::file_time_type written;
    uintmax_t bytes = 0;
    std::string title;
  };

  std::string of(const fs::path& path) {
    std::error_code gone;
    const auto written = fs::last_write_time(path, gone);
    const uintmax_t bytes = gone ? 0 : fs::file_size(path, gone);
    if (gone) return {};
    const std::scoped_lock lock(mutex);
    const auto [at, is_new] = known.try_emplace(path);
    Known& entry = at->second;
    if (is_new || entry.written != written || entry.bytes != bytes) {
      entry = {written, bytes, read_title(path)};
    }
    return entry.title;
  }

  std::mutex mutex;
  std::map<fs::path, Known> known;
};

LoraFolder::LoraFolder(fs::path folder)
    : folder_(std::move(folder)), titles_(std::make_unique<Titles>()) {}
LoraFolder::~LoraFolder() = default;
LoraFolder::LoraFolder(LoraFolder&&) noexcept = default;
LoraFolder& LoraFolder::operator=(LoraFolder&&) noexcept = default;

std::vector<std::string> LoraFolder::names() const {
  std::vector<std::string> out;
  std::error_code refused;  // a file that cannot be read has no names
  fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied,
                                      refused);
  for (; at != fs::recursive_directory_iterator() && !refused; at.increment(refused)) {
    const fs::path& path = at->path();
    if (path.extension() != kAdapter || !is_file(path)) continue;
    const fs::path name = is_peft_file(path) && path.parent_path() != folder_
                              ? path.parent_path()
                              : fs::path(path).replace_extension();
    out.push_back(name.lexically_relative(folder_).generic_string());
  }
  std::ranges::sort(out);
  return out;
}

std::vector<LoraName> LoraFolder::list() const {
  std::vector<LoraName> out;
  std::map<std::string, int> meanings;  // how many adapters each name would be for
  for (const std::string& path : names()) {
    const std::string title = titles_->of(file_at(folder_, path));
    const std::string file = fs::path(path).filename().string();
    for (const std::string& name : std::set<std::string>{path, file, title}) ++meanings[name];
    out.push_back({path, title});
  }
  for (LoraName& each : out) {
    const bool known = !each.alias.empty() && is_plain(each.alias) && meanings[each.alias] == 1;
    if (!known) each.alias = each.path;
  }
  return out;
}

fs::path LoraFolder::find(const std::string& name) const {
  check(is_plain(name), kField, "a name with control characters");
  const fs::path relative(name);
  const bool inside = relative.is_relative() &&
                      std::ranges::none_of(relative, [](const fs::path& p) { return p == ".."; });
  check(inside, kField, "\"", name, "\" is not below the folder of LoRAs");
  if (const fs::path file = file_at(folder_, name); !file.empty()) return file;
  const std::string own = relative.extension() == kAdapter ? relative.stem().string() : name;
  std::string last, alike;
  for (const std::string& known : names()) {
    // Keeps the last one, as AUTOMATIC1111, where later files overwrite the table.
    const std::string file = fs::path(known).filename().string();
    if (file == own) last = known;
    if (is_alike(file, own)) alike = known;
  }
  if (!last.empty()) return file_at(folder_, last);
  if (const fs::path titled = find_title(name); !titled.empty()) return titled;
  // Where files have no case, as on Windows, prompts are written so.
  if (!alike.empty()) return file_at(folder_, alike);
  fail(Code::not_found, kField, "there is no \"", name, "\" in the folder of LoRAs");
}

fs::path LoraFolder::find_title(const std::string& title) const {
  std::vector<std::string> found;
  for (const std::string& known : names()) {
    if (titles_->of(file_at(folder_, known)) == title) found.push_back(known);
  }
  if (found.empty()) return {};
  check(found.size() == 1, kField, "\"", title,
        "\" is what several files call themselves: ", found.front(), ", ", found.back(),
        "; give a file's name");
  return file_at(folder_, found.front());
}

std::string LoraFolder::without_folder(std::string text) const {
  const std::string folder = (folder_ / "").string();
  if (folder.empty()) return text;
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
    text.erase(at, folder.size());
  }
  return text;
}

}  // namespace rbee::engine

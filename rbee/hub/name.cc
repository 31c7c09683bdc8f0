#include "rbee/hub/name.h"

#include <algorithm>
#include <cctype>

#include "rbee/core/error.h"
#include "rbee/core/printable.h"

namespace rbee::hub {
namespace {

constexpr std::string_view kPrefix = "hf:";
constexpr size_t kMaxRepo = 96;       // characters, as the hub allows
constexpr size_t kMaxRevision = 200;  // characters; a name of a file has 255
constexpr size_t kMaxFile = 1024;
constexpr size_t kMaxWritten = 1400;             // all three, and what stands between them
constexpr std::string_view kLatest = ":latest";  // Ollama's clients add it

struct ShortName {
  std::string_view name, repo;
};

constexpr ShortName kShortNames[] = {
    {"v1-5", "stable-diffusion-v1-5/stable-diffusion-v1-5"},
    {"v1.5", "stable-diffusion-v1-5/stable-diffusion-v1-5"},
    {"1.5", "stable-diffusion-v1-5/stable-diffusion-v1-5"},
    {"v1-5-inpaint", "stable-diffusion-v1-5/stable-diffusion-inpainting"},
    {"v1.5-inpaint", "stable-diffusion-v1-5/stable-diffusion-inpainting"},
    {"v2-1", "stabilityai/stable-diffusion-2-1"},
    {"v2.1", "stabilityai/stable-diffusion-2-1"},
    {"2.1", "stabilityai/stable-diffusion-2-1"},
    {"v2-inpaint", "stabilityai/stable-diffusion-2-inpainting"},
    {"v2.1-inpaint", "stabilityai/stable-diffusion-2-inpainting"},
    {"xl", "stabilityai/stable-diffusion-xl-base-1.0"},
    {"xl-inpaint", "diffusers/stable-diffusion-xl-1.0-inpainting-0.1"},
    {"turbo", "stabilityai/sdxl-turbo"},
    {"3-medium", "stabilityai/stable-diffusion-3-medium-diffusers"},
    {"3.5-medium", "stabilityai/stable-diffusion-3.5-medium"},
    {"flux-dev", "black-forest-labs/FLUX.1-dev"},
    {"flux.1-dev", "black-forest-labs/FLUX.1-dev"},
    {"flux1-dev", "black-forest-labs/FLUX.1-dev"},
    {"flux-schnell", "black-forest-labs/FLUX.1-schnell"},
    {"flux.1-schnell", "black-forest-labs/FLUX.1-schnell"},
    {"flux1-schnell", "black-forest-labs/FLUX.1-schnell"},
    {"z-image", "Tongyi-MAI/Z-Image"},
    {"z-image-turbo", "Tongyi-MAI/Z-Image-Turbo"},
};

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Takes `front` away, in any case. False: the text does not begin with it.
bool take_front(std::string_view& text, std::string_view front) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  if (!std::ranges::equal(text.substr(0, front.size()), front, same)) return false;
  text.remove_prefix(front.size());
  return true;
}

// Neither empty, nor "." or "..", of any part between slashes.
bool has_plain_parts(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

// Of a page that names a revision and perhaps a file.
bool begins_page(std::string_view rest) {
  constexpr std::string_view kPages[] = {"tree/", "blob/", "resolve/"};
  return std::ranges::any_of(kPages, [&](std::string_view page) { return rest.starts_with(page); });
}

// One of the two names within "org/repo".
bool is_repo_part(std::string_view part) {
  const auto edge = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && std::ranges::all_of(part, is_plain) && !edge(part.front()) &&
         !edge(part.back()) && part.find("--") == std::string_view::npos &&
         part.find("..") == std::string_view::npos;
}

void check_quantization(std::string_view text) {
  const bool plain = !text.empty() && text.size() <= 64 && std::ranges::all_of(text, is_plain);
  check(plain, "model", "the quantization '", printable_line(text),
        "' is not letters, digits, '.', '_' and '-', such as Q4_K_M");
}

// Cuts `text` at its last `mark`; what follows it is returned, if there is a mark.
std::optional<std::string> cut_at(std::string& text, char mark) {
  const size_t at = text.rfind(mark);
  if (at == std::string::npos) return std::nullopt;
  std::string rest = text.substr(at + 1);
  text.resize(at);
  return rest;
}

}  // namespace

bool is_hub_name(std::string_view text) {
  return text.starts_with(kPrefix);
}

ModelName parse_model_name(std::string_view text) {
  check(is_hub_name(text), "model", "'", printable_line(text), "' does not begin with hf:");
  ModelName out{.repo = std::string(text.substr(kPrefix.size())), .revision = "main"};
  if (auto revision = cut_at(out.repo, '@')) {
    if (auto quantization = cut_at(*revision, ':')) {
      out.quantization = *quantization;
      check_quantization(out.quantization);
    }
    out.revision = *revision;
  }
  const size_t org_end = out.repo.find('/');
  const size_t repo_end = org_end == std::string::npos ? org_end : out.repo.find('/', org_end + 1);
  if (const size_t slash = repo_end; slash != std::string::npos) {
    out.file = out.repo.substr(slash + 1);
    out.repo.resize(slash);
    check_file(out.file);
    check(out.quantization.empty(), "model", "'", printable_line(text),
          "' names a file and a quantization; a file is of one already");
  } else if (auto quantization = cut_at(out.repo, ':')) {
    check(out.quantization.empty(), "model", "'", printable_line(text),
          "' names two quantizations");
    check_quantization(*quantization);
    out.quantization = *quantization;
  }
  check_repo(out.repo);
  check_revision(out.revision);
  return out;
}

bool looks_like_repo(std::string_view text) {
  if (text.find('/') == std::string_view::npos) return false;
  try {
    check_repo(text);
    return !text.ends_with(".gguf") && !text.ends_with(".safetensors");
  } catch (const Error&) {
    return false;
  }
}

std::string name_of_page(std::string_view text, std::string_view endpoint) {
  const std::string begin = cat(endpoint, "/");
  if (!text.starts_with(begin)) return std::string(text);
  text.remove_prefix(begin.size());
  while (text.ends_with('/')) text.remove_suffix(1);
  const auto is_page = [&](size_t end) {
    return end != text.npos && begins_page(text.substr(end + 1));
  };
  size_t repo_end = text.find('/');
  if (!is_page(repo_end) && repo_end != text.npos) repo_end = text.find('/', repo_end + 1);
  if (!is_page(repo_end)) return std::string(text);
  const std::string_view repo = text.substr(0, repo_end);
  std::string_view rest = text.substr(repo_end + 1);
  rest.remove_prefix(rest.find('/') + 1);  // which page
  const size_t end = std::min(rest.find('/'), rest.size());
  return cat(repo, rest.substr(end), "@", rest.substr(0, end));
}

std::optional<std::string> model_of_address(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) take_front(text, scheme);
  for (const std::string_view host : {"hf.co/", "huggingface.co/"}) {
    if (!take_front(text, host)) continue;
    if (text.ends_with(kLatest)) text.remove_suffix(kLatest.size());
    return cat(kPrefix, name_of_page(cat("/", text), ""));
  }
  return std::nullopt;
}

void check_written_name(std::string_view text) {
  check(!text.empty() && text.size() <= kMaxWritten, "model", "a name has 1 to ", kMaxWritten,
        " characters");
  const std::optional<std::string> address = model_of_address(text);
  if (address || is_hub_name(text)) {
    if (!address && text.ends_with(kLatest)) text.remove_suffix(kLatest.size());
    (void)parse_model_name(address ? std::string_view(*address) : text);
    return;
  }
  const auto allowed = [](char c) { return is_plain(c) || c == '/' || c == ':' || c == '@'; };
  for (const std::string_view scheme : {"https://", "http://"}) take_front(text, scheme);
  check(has_plain_parts(text) && std::ranges::all_of(text, allowed), "model", "'",
        printable_line(text),
        "' is no name of a model: letters, digits, '.', '_', '-', ':' and '@' between slashes, and "
        "no part that is empty, '.' or '..'");
}

std::string to_text(const ModelName& name) {
  std::string out = cat(kPrefix, name.repo);
  if (!name.quantization.empty()) out += cat(":", name.quantization);
  if (!name.file.empty()) out += cat("/", name.file);
  if (name.revision != "main") out += cat("@", name.revision);
  return out;
}

std::optional<std::string> model_of_short_name(std::string_view name) {
  const auto* const found = std::ranges::find(kShortNames, name, &ShortName::name);
  if (found == std::end(kShortNames)) return std::nullopt;
  return cat(kPrefix, found->repo);
}

std::vector<std::string> short_names() {
  std::vector<std::string> out;
  for (const ShortName& row : kShortNames) out.emplace_back(row.name);
  return out;
}

void check_repo(std::string_view repo) {
  const size_t slash = repo.find('/');
  const bool has_org = slash != std::string_view::npos;
  const bool valid = repo.size() <= kMaxRepo && is_repo_part(repo.substr(0, slash)) &&
                     (!has_org || is_repo_part(repo.substr(slash + 1)));
  check(valid, "model", "'", printable_line(repo),
        "' is no repository: org/repo, or repo, of letters, digits, '.', '_' and '-', at most ",
        kMaxRepo, ", neither with '--' or '..' nor with '-' or '.' at an end of a name");
}

void check_revision(std::string_view revision) {
  const auto allowed = [](char c) { return is_plain(c) || c == '/'; };
  const bool valid = revision.size() <= kMaxRevision && has_plain_parts(revision) &&
                     std::ranges::all_of(revision, allowed);
  check(valid, "model", "'", printable_line(revision),
        "' is no revision: a branch, tag or commit of letters, digits, '.', '_', '-' and '/', at "
        "most ",
        kMaxRevision);
}

void check_file(std::string_view file) {
  const auto harmless = [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != 0x7f && c != '\\' && c != ':';
  };
  const bool valid =
      file.size() <= kMaxFile && has_plain_parts(file) && std::ranges::all_of(file, harmless);
  check(valid, "model", "'", printable_line(file),
        "' is no file of a repository: a relative path without '..', '\\', ':' and control "
        "characters");
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && std::ranges::all_of(text, is_hex);
}

}  // namespace rbee::hub

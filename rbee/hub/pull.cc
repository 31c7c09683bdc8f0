#include "rbee/hub/pull.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "rbee/hub/library.h"

namespace rbee::hub {
namespace {

struct Listing {
  std::string commit;
  std::vector<RepoFile> files;
};

// For a sentence that begins with what failed already.
std::string reason_of(const Error& error) {
  const std::string begin = error.op() + ": ";
  const std::string_view words = error.what();
  return std::string(words.starts_with(begin) ? words.substr(begin.size()) : words);
}

// What the cache knows without the hub. `reason`: why the hub is not asked.
Listing cached_listing(const ModelName& name, const Cache& cache, std::string_view reason) {
  const auto commit = cache.commit_of(name.repo, name.revision);
  const auto found = cache.find(name.repo);
  if (commit && found) {
    for (const CachedRevision& revision : found->revisions) {
      if (revision.commit == *commit) return {*commit, revision.files};
    }
  }
  fail(Code::not_found, "hub", to_text(name), " is not in the cache ", cache.root().string(),
       ", and ", reason);
}

Listing fresh_listing(const ModelName& name, Client& client, const Cache& cache) {
  Listing out;
  out.commit =
      is_commit(name.revision) ? name.revision : client.commit_of(name.repo, name.revision);
  if (auto kept = cache.listing(name.repo, out.commit)) {
    out.files = std::move(*kept);
  } else {
    out.files = client.list_files(name.repo, out.commit);
    cache.set_listing(name.repo, out.commit, out.files);
  }
  cache.set_commit(name.repo, name.revision, out.commit);
  return out;
}

Listing listing_of(const ModelName& name, Client& client, const Cache& cache) {
  if (client.settings().offline) return cached_listing(name, cache, "HF_HUB_OFFLINE is set");
  try {
    return fresh_listing(name, client, cache);
  } catch (const Error& error) {
    if (error.code() != Code::io || !cache.commit_of(name.repo, name.revision)) throw;
    Listing out = cached_listing(name, cache, reason_of(error));
    log(LogLevel::warn, "the hub cannot be asked; the model is taken from the cache as it is",
        {{"model", to_text(name)}, {"error", error.what()}});
    return out;
  }
}

Choice choose(const ModelName& name, const Listing& listing, const Cache& cache, int64_t memory) {
  const WantedFiles wanted{.file = name.file,
                           .quantization = name.quantization,
                           .memory = memory,
                           .is_there = [&](const RepoFile& file) {
                             return cache.has_file(name.repo, listing.commit, file);
                           }};
  try {
    return choose_files(listing.files, wanted);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    fail(Code::not_found, "hub", name.repo, ": ", reason_of(error));
  }
}

}  // namespace

ModelState look_up(const ModelName& name, const PullOptions& options) {
  Client client(options.settings);
  const Cache cache(options.settings.cache);
  const Listing listing = listing_of(name, client, cache);
  ModelState out{.commit = listing.commit,
                 .files = listing.files,
                 .in_cache = {},
                 .choice = choose(name, listing, cache, options.memory)};
  std::ranges::copy_if(listing.files, std::back_inserter(out.in_cache), [&](const RepoFile& file) {
    return cache.has_file(name.repo, listing.commit, file);
  });
  return out;
}

PulledModel pull(const ModelName& name, const PullOptions& options) {
  Client client(options.settings);
  const Cache cache(options.settings.cache);
  const Listing listing = listing_of(name, client, cache);
  const bool listed =
      name.file.empty() ||
      std::ranges::find(listing.files, name.file, &RepoFile::path) != listing.files.end();
  if (!listed && !options.settings.offline) cache.set_absent(name.repo, listing.commit, name.file);
  PulledModel out{.commit = listing.commit, .choice = choose(name, listing, cache, options.memory)};
  std::vector<RepoFile> missing;
  int64_t bytes = 0;
  for (const RepoFile& file : out.choice.files) {
    if (cache.has_file(name.repo, listing.commit, file)) {
      if (options.next_file) options.next_file(file, true);
      continue;
    }
    missing.push_back(file);
    bytes += file.size;
  }
  log(LogLevel::info, "files of the model",
      {{"model", to_text(name)},
       {"commit", listing.commit},
       {"choice", printable_line(out.choice.why)},
       {"files", cat(out.choice.files.size())},
       {"bytes", cat(out.choice.bytes())},
       {"to_fetch", cat(bytes)}});
  if (options.chosen) options.chosen(out.choice, bytes);
  check_free_space(cache.repo_folder(name.repo), bytes);
  ProgressMeter meter(bytes, options.progress);
  for (const RepoFile& file : missing) {
    if (options.next_file) options.next_file(file, false);
    download_file(client, cache, name.repo, listing.commit, file, meter, options.download);
  }
  out.path = cache.snapshot(name.repo, listing.commit);
  if (!out.choice.mmproj.empty()) out.mmproj = out.path / out.choice.mmproj;
  if (!out.choice.model.empty()) out.path /= out.choice.model;
  return out;
}

std::optional<std::string> name_on_hub(const std::string& text) {
  if (is_hub_name(text)) return text;
  std::error_code error;
  if (std::filesystem::exists(text, error)) return std::nullopt;
  if (auto found = model_of_short_name(text)) return found;
  if (auto found = model_of_address(text)) return found;
  if (auto found = model_of_library_name(text)) return found;
  if (looks_like_repo(text)) {
    fail(Code::not_found, text, "there is no such file or folder; for the hub write hf:", text);
  }
  return std::nullopt;
}

ModelPath resolve_model_path(const std::string& text, const PullOptions& options) {
  const std::optional<std::string> name = name_on_hub(text);
  if (!name) return {.path = text, .mmproj = {}, .name = {}};
  const ModelName parsed = parse_model_name(*name);
  const PulledModel pulled = pull(parsed, options);
  const std::filesystem::path last(parsed.file.empty() ? parsed.repo : parsed.file);
  return {.path = pulled.path.string(),
          .mmproj = pulled.mmproj.string(),
          .name = (parsed.file.empty() ? last.filename() : last.stem()).string()};
}

}  // namespace rbee::hub

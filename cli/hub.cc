// rbee pull, list, show, rm, search: models on the hub and in the cache.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "cli/commands.h"
#include "cli/model_paths.h"
#include "rbee/core/byte_text.h"
#include "rbee/core/error.h"
#include "rbee/core/printable.h"
#include "rbee/hub/library.h"

namespace rbee::tools {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownCommit = 12;  // digits

struct HubOptions {
  std::vector<std::string> names;
  std::string device = "auto";
  int limit = 20;
  bool json = false;
};

// What follows rbee pull and its like: a short name, one of Ollama's, org/repo with hf: or
// without, or a page.
hub::ModelName name_of(const std::string& text) {
  if (const auto found = hub::model_of_short_name(text)) return hub::parse_model_name(*found);
  if (const auto found = hub::model_of_library_name(text)) return hub::parse_model_name(*found);
  if (const auto found = hub::model_of_address(text)) return hub::parse_model_name(*found);
  if (hub::is_hub_name(text)) return hub::parse_model_name(text);
  // Of a mirror's page as of the hub's own.
  const std::string name = hub::name_of_page(text, hub::Settings{}.endpoint);
  return hub::parse_model_name("hf:" + hub::name_of_page(name, hub::read_settings().endpoint));
}

void print_json(const ordered_json& value) {
  std::cout << value.dump(1, ' ', true, ordered_json::error_handler_t::replace) << '\n';
}

int pull(const HubOptions& options) {
  for (const std::string& text : options.names) {
    const hub::PulledModel pulled = hub::pull(name_of(text), pull_options(options.device));
    std::printf("%s\n", pulled.path.c_str());
    if (!pulled.mmproj.empty()) std::printf("%s\n", pulled.mmproj.c_str());
  }
  return 0;
}

// The branches and tags that lead to a revision, or the first digits of its commit.
std::string revision_text(const hub::CachedRevision& revision) {
  std::string out;
  for (const std::string& ref : revision.refs) out += cat(out.empty() ? "" : ", ", ref);
  return out.empty() ? revision.commit.substr(0, kShownCommit) : printable_line(out);
}

int list(const HubOptions& options) {
  const hub::Cache cache(hub::read_settings().cache);
  ordered_json out = ordered_json::array();
  for (const hub::CachedRepo& repo : cache.list()) {
    for (const hub::CachedRevision& revision : repo.revisions) {
      int64_t bytes = 0;
      for (const hub::RepoFile& file : revision.files) bytes += file.size;
      if (options.json) {
        out.push_back({{"name", "hf:" + repo.repo},
                       {"commit", revision.commit},
                       {"refs", revision.refs},
                       {"files", revision.files.size()},
                       {"bytes", bytes},
                       {"path", cache.snapshot(repo.repo, revision.commit).string()}});
      } else {
        std::printf("%-56s %9s %4zu files  %s\n", ("hf:" + repo.repo).c_str(),
                    bytes_to_text(bytes).c_str(), revision.files.size(),
                    revision_text(revision).c_str());
      }
    }
  }
  if (options.json) {
    print_json(out);
  } else if (cache.list().empty()) {
    std::fprintf(stderr, "there is none in %s: rbee pull hf:org/repo fetches one\n",
                 printable_line(hub::read_settings().cache.string()).c_str());
  }
  return 0;
}

std::set<std::string_view> paths_of(std::span<const hub::RepoFile> files) {
  std::set<std::string_view> out;
  for (const hub::RepoFile& file : files) out.insert(file.path);
  return out;
}

int show(const HubOptions& options) {
  const hub::ModelName name = name_of(options.names.front());
  const hub::PullOptions how = pull_options(options.device);
  const hub::ModelState state = hub::look_up(name, how);
  const std::set<std::string_view> in_cache = paths_of(state.in_cache);
  const std::set<std::string_view> chosen = paths_of(state.choice.files);
  if (options.json) {
    ordered_json files = ordered_json::array();
    for (const hub::RepoFile& file : state.files) {
      files.push_back({{"path", file.path},
                       {"bytes", file.size},
                       {"in_cache", in_cache.contains(file.path)},
                       {"chosen", chosen.contains(file.path)}});
    }
    print_json({{"name", hub::to_text(name)},
                {"commit", state.commit},
                {"choice", state.choice.why},
                {"files", files}});
    return 0;
  }
  std::printf("%s\ncommit  %s\nchoice  %s\n\n", hub::to_text(name).c_str(), state.commit.c_str(),
              printable_line(state.choice.why).c_str());
  for (const hub::RepoFile& file : state.files) {
    std::printf("%c %c %9s  %s\n", chosen.contains(file.path) ? '*' : ' ',
                in_cache.contains(file.path) ? 'c' : ' ', bytes_to_text(file.size).c_str(),
                printable_line(file.path).c_str());
  }
  return 0;
}

// The cache deletes repositories as a whole. A name of a part means all only if there is no more.
bool names_all_of(const hub::ModelName& name, const hub::CachedRepo& cached) {
  if (name.file.empty() && name.quantization.empty() && name.revision == "main") return true;
  if (cached.revisions.size() != 1) return false;
  hub::PullOptions how = pull_options("cpu");
  how.settings.offline = true;
  const hub::ModelState state = hub::look_up(name, how);
  const std::set<std::string_view> chosen = paths_of(state.choice.files);
  return std::ranges::all_of(paths_of(state.in_cache),
                             [&](std::string_view path) { return chosen.contains(path); });
}

int remove(const HubOptions& options) {
  const hub::Cache cache(hub::read_settings().cache);
  for (const std::string& text : options.names) {
    const hub::ModelName name = name_of(text);
    const auto found = cache.find(name.repo);
    if (!found) {
      fail(Code::not_found, "rm", "hf:", name.repo, " is not in the cache ", cache.root().string());
    }
    check(names_all_of(name, *found), "rm", "'", printable_line(text),
          "' is not all that the cache ", "has of hf:", name.repo,
          ", which is deleted as a whole: name hf:", name.repo);
    if (cache.remove(name.repo)) {
      std::printf("hf:%s: %s freed\n", name.repo.c_str(), bytes_to_text(found->bytes).c_str());
    }
  }
  return 0;
}

int search(const HubOptions& options) {
  std::string words;
  for (const std::string& word : options.names) words += (words.empty() ? "" : " ") + word;
  hub::Client client(hub::read_settings());
  ordered_json out = ordered_json::array();
  for (const hub::SearchResult& found : client.search(words, options.limit)) {
    if (options.json) {
      out.push_back({{"name", "hf:" + found.repo},
                     {"downloads", found.downloads},
                     {"likes", found.likes},
                     {"task", found.task}});
    } else {
      std::printf("%-64s %12lld downloads  %s\n", printable_line("hf:" + found.repo).c_str(),
                  static_cast<long long>(found.downloads), printable_line(found.task).c_str());
    }
  }
  if (options.json) print_json(out);
  return 0;
}

constexpr const char* kNames =
    R"(Names: hf:org/repo, hf:org/repo:Q4_K_M, hf:org/repo/file.gguf, any of them with @revision, or a
short name such as xl, flux-dev or, of Ollama's library, llama3.2:3b. hf: may be left out here. The
cache is Hugging Face's: HF_HOME, HF_HUB_CACHE; HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and
HTTPS_PROXY have their usual meanings.)";

Command add_hub_command(CLI::App& parent, const char* name, const char* about,
                        int (*run)(const HubOptions&),
                        const std::function<void(CLI::App&, HubOptions&)>& add) {
  CLI::App* app = parent.add_subcommand(name, about);
  auto options = std::make_shared<HubOptions>();
  add(*app, *options);
  return {app, [options, run] { return run(*options); }};
}

void add_device(CLI::App& app, HubOptions& options) {
  app.add_option("--device", options.device,
                 "whose memory the quantization must fit: auto, cpu, cuda:N, rocm:N or metal:N")
      ->capture_default_str();
}

void add_json(CLI::App& app, HubOptions& options) {
  app.add_flag("--json", options.json, "as JSON");
}

}  // namespace

Command add_pull(CLI::App& parent) {
  return add_hub_command(parent, "pull", "fetch models into the cache", pull,
                         [](CLI::App& app, HubOptions& options) {
                           app.add_option("name", options.names, "names of models")->required();
                           add_device(app, options);
                           app.footer(kNames);
                         });
}

Command add_list(CLI::App& parent) {
  return add_hub_command(parent, "list", "list the models in the cache", list, add_json);
}

Command add_show(CLI::App& parent) {
  return add_hub_command(
      parent, "show", "list a model's files: * would be fetched, c are in the cache", show,
      [](CLI::App& app, HubOptions& options) {
        app.add_option("name", options.names, "the name of a model")->required()->expected(1);
        add_device(app, options);
        add_json(app, options);
        app.footer(kNames);
      });
}

Command add_rm(CLI::App& parent) {
  return add_hub_command(parent, "rm", "delete models from the cache", remove,
                         [](CLI::App& app, HubOptions& options) {
                           app.add_option("name", options.names, "repositories")->required();
                         });
}

Command add_search(CLI::App& parent) {
  return add_hub_command(
      parent, "search", "find models on the hub", search, [](CLI::App& app, HubOptions& options) {
        app.add_option("words", options.names, "words of their names")->required();
        app.add_option("-n,--limit", options.limit, "models at most")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        add_json(app, options);
      });
}

}  // namespace rbee::tools

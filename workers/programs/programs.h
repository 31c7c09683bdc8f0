#pragma once
// The workers that `rbee` holds: for each backend of this build one for chats and embeddings, and
// one for pictures.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::workers {

// E.g. "llm-worker-rbee-cpu", "sd-worker-cpu".
std::vector<std::string_view> held_workers();

// One line that names the held workers; empty if `name` is one of them.
std::string why_not_held(std::string_view name);

// Runs the worker that the command line names: by the file name of argv[0], which is a link's, or
// by its first argument. Nothing if it names none. Exit status: the worker's, or 2 if this build
// does not hold it.
std::optional<int> run_named_worker(int argc, const char* const* argv);

}  // namespace rbee::workers

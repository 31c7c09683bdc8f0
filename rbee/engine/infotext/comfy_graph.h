#pragma once
// ComfyUI's graph of nodes in its API's form, as its files hold it: by number a "class_type" and
// "inputs", which are values or [number, output] of another node. Includes nlohmann's large header:
// for .cc files of the readers only.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rbee::engine {

// AUTOMATIC1111's text of the graph's first pass. Nothing if no node samples.
std::optional<std::string> infotext_of_graph(const nlohmann::json& graph);

}  // namespace rbee::engine

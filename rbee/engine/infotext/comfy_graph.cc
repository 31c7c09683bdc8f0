#include "rbee/engine/infotext/comfy_graph.h"

#include <initializer_list>
#include <set>

#include "rbee/engine/infotext/infotext_writer.h"

namespace rbee::engine {
namespace {

using nlohmann::json;

constexpr int kMaxSteps = 256;          // from node to node
constexpr int kMaxSearched = 256 * 64;  // such steps before the samplers of a graph
constexpr size_t kMaxId = 256;          // bytes of a node's name, which each step looks up

class Graph {
 public:
  explicit Graph(const json& nodes) : nodes_(nodes) {}

  std::optional<std::string> run() {
    const json* sampler = find_sampler();
    if (sampler == nullptr) return std::nullopt;
    InfotextWriter out;
    const json& guider = linked(*sampler, {"guider"});
    const json& sigmas = linked(*sampler, {"sigmas"});
    const json& conditions = guider.is_null() ? *sampler : guider;
    out.prompt = text(linked(conditions, {"positive", "conditioning"}));
    out.negative_prompt = text(linked(conditions, {"negative"}));
    add_loras(linked(conditions, {"model"}), out);
    const json& schedule = sigmas.is_null() ? *sampler : sigmas;
    out.text("Steps", number(schedule, {"steps"}));
    const json& chosen = linked(*sampler, {"sampler"});
    out.text("Sampler", value(chosen.is_null() ? *sampler : chosen, {"sampler_name"}));
    out.text("Schedule type", value(schedule, {"scheduler"}));
    // A model that was trained with guidance has it beside its prompt.
    const std::string inside =
        number(linked(conditions, {"positive", "conditioning"}), {"guidance"});
    out.text("CFG scale", inside.empty() ? number(conditions, {"cfg"}) : inside);
    const json& noise = linked(*sampler, {"noise"});
    out.text("Seed", number(noise.is_null() ? *sampler : noise, {"seed", "noise_seed"}));
    add_size(linked(*sampler, {"latent_image", "samples"}), out);
    const std::string strength = number(schedule, {"denoise"});
    if (!strength.empty() && strength != "1" && strength != "1.0") {
      out.text("Denoising strength", strength);
    }
    out.constant("RNG", "CPU");
    out.constant("Emphasis", "Comfy");
    return out.finish();
  }

 private:
  static const json& inputs(const json& node) { return part_of(node, "inputs"); }

  static bool samples(const json& node) {
    const json& in = inputs(node);
    const bool model = in.contains("model") || in.contains("guider");
    return model && in.contains("latent_image") && (in.contains("steps") || in.contains("sigmas"));
  }

  // The node that an input of one of these names comes from; null: none does.
  const json& linked(const json& node, std::initializer_list<const char*> names) {
    static const json kNull;
    for (const char* name : names) {
      const json& link = part_of(inputs(node), name);
      if (!link.is_array() || link.size() != 2) continue;
      std::string key;
      if (link[0].is_string()) key = link[0].get_ref<const std::string&>().substr(0, kMaxId + 1);
      if (link[0].is_number_integer()) key = link[0].dump();
      if (++steps_ > kMaxSteps || key.size() > kMaxId) return kNull;
      return part_of(nodes_, key.c_str());
    }
    return kNull;
  }

  // The first of several passes: the one that gets no other's picture.
  const json* find_sampler() {
    const json* out = nullptr;
    int searched = 0;
    for (const auto& [key, node] : nodes_.items()) {
      if (!samples(node)) continue;
      const bool first = !has_sampler_before(node);
      if (out == nullptr || first) out = &node;
      searched += steps_;
      steps_ = 0;
      if (first || searched > kMaxSearched) break;
    }
    return out;
  }

  bool has_sampler_before(const json& node) {
    steps_ = 0;
    const json* at = &linked(node, {"latent_image"});
    while (!at->is_null() && !samples(*at)) {
      at = &linked(*at, {"samples", "latent", "latent_image", "pixels", "image", "images"});
    }
    return !at->is_null();
  }

  std::string value(const json& node, std::initializer_list<const char*> names) {
    const json* at = &node;
    for (int depth = 0; depth < kMaxSteps && !at->is_null(); ++depth) {
      for (const char* name : names) {
        if (std::string out = text_of(inputs(*at), name); !out.empty()) return out;
      }
      at = &linked(*at, names);
      if (at->is_null()) break;
      for (const char* name : {"value", "string", "text"}) {
        if (std::string out = text_of(inputs(*at), name); !out.empty()) return out;
      }
    }
    return {};
  }

  std::string number(const json& node, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (std::string out = number_text(inputs(node), name); !out.empty()) return out;
    }
    const json& from = linked(node, names);
    for (const char* name : {"value", "seed", "noise_seed", "int", "float", "number"}) {
      if (std::string out = number_text(inputs(from), name); !out.empty()) return out;
    }
    return {};
  }

  // Of an encoder of texts, or of what passes its conditions on.
  std::string text(const json& node) {
    const json* at = &node;
    for (int depth = 0; depth < kMaxSteps && !at->is_null(); ++depth) {
      for (const char* name : {"text", "text_g", "t5xxl", "clip_l", "text_l", "prompt", "string"}) {
        if (part_of(inputs(*at), name).is_null()) continue;
        if (std::string out = value(*at, {name}); !out.empty()) return out;
      }
      at = &linked(*at, {"conditioning", "conditioning_1", "conditioning_to", "positive"});
    }
    return {};
  }

  // The nodes that load LoRAs, up to the one that loads the model.
  void add_loras(const json& first, InfotextWriter& out) {
    std::set<const json*> seen;  // nodes in a circle would repeat their names
    for (const json* at = &first; !at->is_null() && seen.insert(at).second;) {
      const json& in = inputs(*at);
      const std::string lora = text_of(in, "lora_name");
      if (!lora.empty()) out.lora(lora, number_text(in, "strength_model"));
      for (const char* name : {"ckpt_name", "unet_name"}) {
        if (const std::string file = text_of(in, name); !file.empty()) out.text("Model", file);
      }
      at = &linked(*at, {"model"});
    }
  }

  void add_size(const json& first, InfotextWriter& out) {
    const json* at = &first;
    for (int depth = 0; depth < kMaxSteps && !at->is_null(); ++depth) {
      const std::string width = number(*at, {"width"}), height = number(*at, {"height"});
      if (!width.empty() && !height.empty()) return out.text("Size", width + "x" + height);
      at = &linked(*at, {"samples", "latent", "latent_image", "pixels", "image"});
    }
  }

  const json& nodes_;
  int steps_ = 0;
};

}  // namespace

std::optional<std::string> infotext_of_graph(const json& graph) {
  return Graph(graph).run();
}

}  // namespace rbee::engine

#include "rbee/engine/infotext/infotext.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/engine/infotext/comfy_graph.h"
#include "rbee/engine/infotext/infotext_writer.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/exif.h"
#include "rbee/io/image/hidden_text.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/webp.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

using nlohmann::json;
using std::string_view;

// Null unless it is an object.
json object_of(string_view text) try {
  json out = io::parse_json(text, "settings", {.bytes = size_t{4} << 20});
  return out.is_object() ? out : json();
} catch (const Error&) {
  return {};
}

// What its version 4 says of the picture and of each character in it, a line for each; `plain` is
// what it says of the picture elsewhere.
std::string novelai_caption(const json& prompt, std::string plain) {
  const json& caption = part_of(prompt, "caption");
  std::string out = text_of(caption, "base_caption");
  if (out.empty()) out = std::move(plain);
  for (const json& character : list_of(caption, "char_captions")) {
    const std::string text = text_of(character, "char_caption");
    if (!text.empty()) out += cat(out.empty() ? "" : "\n", text);
  }
  return out;
}

void replace_all(std::string& text, string_view from, string_view to) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(from, at), text.size());
    out += text.substr(at, found - at);
    if (found < text.size()) out += to;
    at = found + from.size();
  }
  text = std::move(out);
}

// https://docs.novelai.net; A1111 reads it so.
std::string from_novelai(const json& comment, const std::string& description) {
  InfotextWriter out;
  out.prompt = novelai_caption(part_of(comment, "v4_prompt"), text_of(comment, "prompt"));
  if (out.prompt.empty()) out.prompt = description;
  out.negative_prompt =
      novelai_caption(part_of(comment, "v4_negative_prompt"), text_of(comment, "uc"));
  out.number("Steps", comment, "steps");
  out.text("Sampler", text_of(comment, "sampler"));
  const std::string schedule = text_of(comment, "noise_schedule");
  if (schedule != "native") out.text("Schedule type", schedule);  // the model's own
  out.number("CFG scale", comment, "scale");
  out.number("CFG Rescale", comment, "cfg_rescale");
  out.number("Seed", comment, "seed");
  out.size(comment, "width", "height");
  out.constant("RNG", "CPU");
  return out.finish();
}

// InvokeAI from 3.0 on.
std::string from_invokeai(const json& data) {
  InfotextWriter out;
  out.prompt = text_of(data, "positive_prompt");
  out.negative_prompt = text_of(data, "negative_prompt");
  for (const json& lora : list_of(data, "loras")) {
    const json& model = part_of(lora, lora.contains("model") ? "model" : "lora");
    std::string name = text_of(model, "name");
    if (name.empty()) name = text_of(model, "model_name");
    if (!name.empty()) out.lora(name, number_text(lora, "weight"));
  }
  out.number("Steps", data, "steps");
  out.text("Sampler", text_of(data, "scheduler"));
  out.number("CFG scale", data, "cfg_scale");
  out.number("CFG Rescale", data, "cfg_rescale_multiplier");
  out.number("Seed", data, "seed");
  out.size(data, "width", "height");
  out.number("Denoising strength", data, "strength");
  const json& model = part_of(data, "model");
  out.text("Model", text_of(model, model.contains("name") ? "name" : "model_name"));
  out.constant("RNG", text_of(data, "rand_device") == "cuda" ? "GPU" : "CPU");
  return out.finish();
}

// InvokeAI 2: a prompt may be a list of texts with weights; brackets hold the negative prompt.
std::string from_old_invokeai(const json& data) {
  const json& image = part_of(data, "image");
  std::string all = text_of(image, "prompt");
  for (const json& part : list_of(image, "prompt")) {
    if (!all.empty()) all += ' ';
    all += text_of(part, "prompt");
  }
  InfotextWriter out;
  for (size_t at = 0; at < all.size();) {
    const size_t open = std::min(all.find('[', at), all.size());
    out.prompt += all.substr(at, open - at);
    const size_t close = std::min(all.find(']', open), all.size());
    if (open < all.size()) out.negative_prompt += all.substr(open + 1, close - open - 1);
    at = close + 1;
  }
  out.number("Steps", image, "steps");
  out.text("Sampler", text_of(image, "sampler"));
  out.number("CFG scale", image, "cfg_scale");
  out.number("Seed", image, "seed");
  out.size(image, "width", "height");
  out.number("Denoising strength", image, "strength");
  out.text("Model", text_of(data, "model_weights"));
  return out.finish();
}

// InvokeAI 1 and 2, which write their command line: "a fox" -s 50 -S123 -A k_lms.
std::string from_dream(string_view line) {
  constexpr std::pair<char, const char*> kOptions[] = {
      {'s', "steps"}, {'S', "seed"},   {'C', "cfg_scale"}, {'A', "sampler"},
      {'W', "width"}, {'H', "height"}, {'f', "strength"}};
  const bool quoted = line.starts_with('"');
  const size_t end = std::min(line.find(quoted ? "\" -" : " -", 1), line.size());
  string_view prompt = line.substr(0, end);
  if (quoted) prompt.remove_prefix(1);
  if (quoted && prompt.ends_with('"')) prompt.remove_suffix(1);
  json image = {{"prompt", prompt}};
  for (string_view rest = line.substr(end); !rest.empty();) {
    rest.remove_prefix(std::min(rest.find(" -"), rest.size()));
    rest.remove_prefix(std::min<size_t>(2, rest.size()));
    const auto option = std::ranges::find(kOptions, rest.empty() ? ' ' : rest.front(),
                                          &std::pair<char, const char*>::first);
    if (option == std::end(kOptions)) continue;
    rest.remove_prefix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    image[option->second] = rest.substr(0, rest.find(' '));
  }
  return from_old_invokeai({{"image", std::move(image)}});
}

// The scheme "fooocus": its log has names for people, its files have names of fields.
std::string from_fooocus(const json& data) {
  const auto text = [&](const char* field, const char* shown) {
    return text_of(data, data.contains(field) ? field : shown);
  };
  InfotextWriter out;
  out.prompt = text("prompt", "Prompt");
  out.negative_prompt = text("negative_prompt", "Negative Prompt");
  for (const auto& [key, value] : data.items()) {
    if (!key.starts_with("lora_combined_") || !value.is_string()) continue;
    const std::string whole = value.get<std::string>();
    const size_t colon = whole.rfind(" : ");
    if (colon == std::string::npos) continue;
    out.lora(whole.substr(0, colon), whole.substr(colon + 3));
  }
  out.number("Steps", data, data.contains("steps") ? "steps" : "Steps");
  out.text("Sampler", text("sampler", "Sampler"));
  out.text("Schedule type", text("scheduler", "Scheduler"));
  out.number("CFG scale", data,
             data.contains("guidance_scale") ? "guidance_scale" : "Guidance Scale");
  out.number("Seed", data, data.contains("seed") ? "seed" : "Seed");
  // "(1024, 768)"
  const std::string pair = text("resolution", "Resolution");
  const size_t comma = pair.find(", ");
  if (comma != std::string::npos && pair.starts_with('(') && pair.ends_with(')')) {
    out.text("Size",
             cat(pair.substr(1, comma - 1), "x", pair.substr(comma + 2, pair.size() - comma - 3)));
  }
  out.number("Clip skip", data, "clip_skip");
  out.text("Model", text("base_model", "Base Model"));
  out.constant("RNG", "CPU");
  return out.finish();
}

// SwarmUI, which draws by ComfyUI.
std::string from_swarm(const json& data) {
  InfotextWriter out;
  out.prompt = text_of(data, "prompt");
  out.negative_prompt = text_of(data, "negativeprompt");
  const json &loras = list_of(data, "loras"), &weights = list_of(data, "loraweights");
  for (size_t i = 0; i < loras.size(); ++i) {
    if (!loras[i].is_string()) continue;
    const json weight = {{"", i < weights.size() ? weights[i] : json(1)}};
    out.lora(loras[i].get<std::string>(), number_text(weight, ""));
  }
  out.number("Steps", data, "steps");
  out.text("Sampler", text_of(data, "sampler"));
  out.text("Schedule type", text_of(data, "scheduler"));
  out.number("CFG scale", data, "cfgscale");
  out.number("Seed", data, "seed");
  out.size(data, "width", "height");
  out.text("Model", text_of(data, "model"));
  out.constant("RNG", "CPU");
  out.constant("Emphasis", "Comfy");
  return out.finish();
}

// Draw Things: JSON in Exif's comment of an XMP packet.
std::optional<std::string> from_xmp(string_view packet) {
  constexpr string_view kComment = "<exif:UserComment>", kItem = "<rdf:li", kEnd = "</rdf:li>";
  const size_t comment = packet.find(kComment), item = packet.find(kItem, comment);
  const size_t begin = packet.find('>', item), end = packet.find(kEnd, begin);
  if (comment == string_view::npos || item == string_view::npos || end == string_view::npos)
    return std::nullopt;
  std::string text(packet.substr(begin + 1, end - begin - 1));
  for (const auto& [entity, meant] :
       {std::pair{"&quot;", "\""}, std::pair{"&apos;", "'"}, std::pair{"&lt;", "<"},
        std::pair{"&gt;", ">"}, std::pair{"&#xA;", "\n"}, std::pair{"&amp;", "&"}}) {
    replace_all(text, entity, meant);
  }
  const json data = object_of(text);
  if (data.is_null()) return std::nullopt;
  InfotextWriter out;
  out.prompt = text_of(data, "c");
  out.negative_prompt = text_of(data, "uc");
  for (const json& lora : list_of(data, "lora")) {
    out.lora(text_of(lora, "model"), number_text(lora, "weight"));
  }
  out.number("Steps", data, "steps");
  out.text("Sampler", text_of(data, "sampler"));
  out.number("CFG scale", data, "scale");
  out.number("Seed", data, "seed");
  out.text("Size", text_of(data, "size"));
  out.text("Model", text_of(data, "model"));
  return out.finish();
}

// Easy Diffusion has a text of a PNG file for each field.
std::optional<std::string> from_easy_diffusion(string_view file) {
  json data;
  for (const char* key :
       {"prompt", "negative_prompt", "num_inference_steps", "guidance_scale", "sampler_name",
        "seed", "width", "height", "use_stable_diffusion_model"}) {
    if (const auto text = io::png_text(file, key)) data[key] = io::sound_text(*text).value_or("");
  }
  if (!data.contains("num_inference_steps")) return std::nullopt;
  InfotextWriter out;
  out.prompt = text_of(data, "prompt");
  out.negative_prompt = text_of(data, "negative_prompt");
  out.number("Steps", data, "num_inference_steps");
  out.text("Sampler", text_of(data, "sampler_name"));
  out.number("CFG scale", data, "guidance_scale");
  out.number("Seed", data, "seed");
  out.size(data, "width", "height");
  out.text("Model", text_of(data, "use_stable_diffusion_model"));
  return out.finish();
}

std::optional<std::string> read_parameters(std::string text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return text;
  const json data = object_of(text);
  const json& swarm = part_of(data, "sui_image_params");
  if (swarm.is_object()) return from_swarm(swarm);
  const bool fooocus = data.contains("prompt") || data.contains("Prompt");
  return fooocus ? from_fooocus(data) : std::move(text);
}

std::optional<std::string> read_png(string_view file) {
  const auto object = [&](const char* key) {
    const auto text = io::png_text(file, key);
    return text ? object_of(*text) : json();
  };
  if (io::png_text(file, "Software") == "NovelAI") {
    const json comment = object("Comment");
    if (!comment.is_null()) {
      return from_novelai(comment, io::png_text(file, "Description").value_or(""));
    }
  }
  if (const json data = object("invokeai_metadata"); !data.is_null()) return from_invokeai(data);
  if (const json data = object("sd-metadata"); data.contains("image")) {
    return from_old_invokeai(data);
  }
  if (const auto line = io::png_text(file, "Dream")) {
    return from_dream(io::sound_text(*line).value_or(""));
  }
  if (const json graph = object("prompt"); !graph.is_null()) return infotext_of_graph(graph);
  if (auto settings = from_easy_diffusion(file)) return settings;
  const auto packet = io::png_text(file, "XML:com.adobe.xmp");
  return packet ? from_xmp(*packet) : std::nullopt;
}

std::optional<std::string> read_text(std::string text) {
  // WebP and JPEG files of ComfyUI and of its extensions.
  constexpr string_view kPrompt = "prompt:", kOther = "Prompt:";
  if (!text.starts_with(kPrompt) && !text.starts_with(kOther)) {
    return read_parameters(std::move(text));
  }
  const json graph = object_of(string_view(text).substr(kPrompt.size()));
  return graph.is_null() ? std::move(text) : infotext_of_graph(graph);
}

// For a picture with unchanged pixels.
std::optional<std::string> read_hidden(string_view file) try {
  if (!file.starts_with(io::kPngSignature) && !io::is_webp(file)) return std::nullopt;
  auto text = io::hidden_text(io::decode_image(file, "image"));
  if (!text) return std::nullopt;
  const json data = object_of(*text);  // NovelAI's: what its PNG files have as texts
  const json comment = object_of(text_of(data, "Comment"));
  if (comment.is_null()) return read_text(*std::move(text));
  return from_novelai(comment, text_of(data, "Description"));
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

std::optional<std::string> read_infotext(string_view file) {
  auto text = io::image_parameters(file);
  if (text && !text->empty()) return read_text(*std::move(text));
  if (file.starts_with(io::kPngSignature)) {
    if (auto settings = read_png(file)) return settings;
  }
  text = io::image_comment(file);
  return text ? read_text(*std::move(text)) : read_hidden(file);
}

}  // namespace rbee::engine

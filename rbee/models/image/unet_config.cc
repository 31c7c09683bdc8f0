#include "rbee/models/image/unet_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "rbee/core/error.h"

namespace rbee::models {
namespace {

using io::JsonConfig;

constexpr size_t kMaxLevels = 8;

[[noreturn]] void fail_setting(const JsonConfig& config, std::string_view field,
                               std::string_view value) {
  fail(Code::unsupported, config.describe(field), value, " is not implemented");
}

// Settings of the class that every Stable Diffusion model leaves at their defaults.
void refuse_unknown(const JsonConfig& config) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kTexts = {{
      {"act_fn", "silu"},
      {"resnet_time_scale_shift", "default"},
      {"time_embedding_type", "positional"},
      {"attention_type", "default"},
      {"class_embed_type", ""},
      {"encoder_hid_dim_type", ""},
      {"time_embedding_act_fn", ""},
      {"timestep_post_act", ""},
      {"cross_attention_norm", ""},
  }};
  for (const auto& [field, known] : kTexts) {
    const std::string value = config.text_or(field, known);
    if (value != known) fail_setting(config, field, cat("\"", value, "\""));
  }
  for (const char* field : {"dual_cross_attention", "center_input_sample", "resnet_skip_time_act",
                            "class_embeddings_concat"}) {
    if (config.flag_or(field, false)) fail_setting(config, field, "true");
  }
  for (const char* field : {"num_class_embeds", "time_embedding_dim"}) {
    if (config.has(field)) fail_setting(config, field, cat(config.integer(field)));
  }
  for (const char* field : {"conv_in_kernel", "conv_out_kernel"}) {
    const int64_t size = config.integer_or(field, 3);
    if (size != 3) fail_setting(config, field, cat(size));
  }
  for (const char* field : {"mid_block_scale_factor", "resnet_out_scale_factor"}) {
    const double factor = config.number_or(field, 1);
    if (factor != 1) fail_setting(config, field, cat(factor));
  }
  const bool listed = config.is_list("only_cross_attention");
  const bool crossed = listed ? config.any_flag("only_cross_attention")
                              : config.flag_or("only_cross_attention", false);
  if (crossed) fail_setting(config, "only_cross_attention", "true");
}

bool has_attention(const JsonConfig& config, const char* field, const std::string& type,
                   std::string_view plain, std::string_view crossed) {
  if (type == crossed) return true;
  if (type == plain) return false;
  fail(Code::unsupported, config.describe(field), "\"", type, "\" is not implemented; known are ",
       plain, " and ", crossed);
}

std::vector<std::string> block_types(const JsonConfig& config, const char* field, size_t levels) {
  std::vector<std::string> types = config.texts(field);
  check(types.size() == levels, config.describe(field), "it lists ", types.size(),
        " blocks, block_out_channels ", levels);
  return types;
}

struct Depths {
  std::vector<std::vector<int64_t>> down, up;  // by level, by resnet
  int64_t middle = 0;
};

// An item is one depth for all resnets of a level, or a list of one for each.
std::vector<int64_t> spread(const JsonConfig& config, const char* field,
                            const std::vector<int64_t>& item, size_t resnets) {
  if (item.size() == 1) return std::vector<int64_t>(resnets, item.front());
  check(item.size() == resnets, config.describe(field), "a level lists ", item.size(),
        " depths for ", resnets, " resnets");
  return item;
}

Depths read_depths(const JsonConfig& config, const std::vector<int64_t>& layers) {
  constexpr const char* kDown = "transformer_layers_per_block";
  constexpr const char* kUp = "reverse_transformer_layers_per_block";
  const size_t levels = layers.size();
  const auto down = config.integer_lists(kDown, levels, {0, 256}, 1);
  auto up = down;
  std::ranges::reverse(up);
  if (config.has(kUp)) up = config.integer_lists(kUp, levels, {0, 256}, 1);
  Depths out;
  for (size_t i = 0; i < levels; ++i) {
    out.down.push_back(spread(config, kDown, down[i], static_cast<size_t>(layers[i])));
    const auto resnets = static_cast<size_t>(layers[levels - 1 - i]) + 1;
    // Lists of the way down do not fit the way up, which has one resnet more.
    const bool fits = up[i].size() == 1 || up[i].size() == resnets;
    check(fits, config.describe(kUp), "a level of the way up needs a depth, or ", resnets,
          " depths");
    out.up.push_back(spread(config, kUp, up[i], resnets));
  }
  out.middle = down.back().front();
  return out;
}

void read_added(const JsonConfig& config, UnetConfig& out) {
  const std::string type = config.text_or("addition_embed_type", "");
  if (type.empty()) return;
  if (type != "text_time") fail_setting(config, "addition_embed_type", cat("\"", type, "\""));
  out.size_width = config.integer("addition_time_embed_dim", {2, 1 << 16});
  out.added_width = config.integer("projection_class_embeddings_input_dim", {1, 1 << 20});
}

void read_middle(const JsonConfig& config, int64_t depth, UnetConfig& out) {
  // Absent and null differ: a distilled model without a middle has null.
  const std::string type = config.is_null("mid_block_type")
                               ? ""
                               : config.text_or("mid_block_type", "UNetMidBlock2DCrossAttn");
  out.has_middle = !type.empty();
  if (type == "UNetMidBlock2DCrossAttn") {
    out.middle_depth = depth;
  } else if (!type.empty() && type != "UNetMidBlock2D") {
    fail_setting(config, "mid_block_type", cat("\"", type, "\""));
  }
}

void read_levels(const JsonConfig& config, UnetPaths paths, UnetConfig& out) {
  const std::vector<int64_t> channels = config.integers("block_out_channels", {1, 1 << 16});
  const size_t levels = channels.size();
  check(levels >= 1 && levels <= kMaxLevels, config.describe("block_out_channels"), "it lists ",
        levels, " levels, wanted 1 to ", kMaxLevels);
  const auto layers = config.integer_each("layers_per_block", levels, {1, 64}, 2);
  // The field is misnamed: diffusers reads it as the number of heads unless the other is there.
  const char* heads_field =
      config.has("num_attention_heads") ? "num_attention_heads" : "attention_head_dim";
  const auto heads = config.integer_each(heads_field, levels, {1, 4096}, 8);
  const auto context = config.integer_each("cross_attention_dim", levels, {1, 1 << 16}, 1280);
  const auto down_types = block_types(config, "down_block_types", levels);
  const bool goes_up = paths == UnetPaths::both;
  const auto up_types =
      goes_up ? block_types(config, "up_block_types", levels) : std::vector<std::string>{};
  const Depths depths = read_depths(config, layers);
  for (size_t i = 0; i < levels; ++i) {
    const size_t back = levels - 1 - i;
    check(channels[i] % heads[i] == 0, config.describe(heads_field), heads[i],
          " heads do not divide the ", channels[i], " channels of level ", i);
    out.down.push_back({channels[i],
                        has_attention(config, "down_block_types", down_types[i], "DownBlock2D",
                                      "CrossAttnDownBlock2D"),
                        heads[i], context[i], depths.down[i]});
    if (!goes_up) continue;
    out.up.push_back(
        {channels[back],
         has_attention(config, "up_block_types", up_types[i], "UpBlock2D", "CrossAttnUpBlock2D"),
         heads[back], context[back], depths.up[i]});
  }
  read_middle(config, depths.middle, out);
}

}  // namespace

UnetConfig UnetConfig::read(const JsonConfig& config, UnetPaths paths) {
  refuse_unknown(config);
  UnetConfig out;
  out.in_channels = config.integer_or("in_channels", 4, {1, 1 << 12});
  out.out_channels = config.integer_or("out_channels", 4, {1, 1 << 12});
  if (config.has("sample_size")) {
    out.sample_size = config.integer_each("sample_size", 2).front();  // height and width
  }
  read_levels(config, paths, out);
  out.groups = config.integer_or("norm_num_groups", 32);
  out.eps = static_cast<float>(config.number_or("norm_eps", 1e-5, io::kZeroToOne));
  out.sin_first = !config.flag_or("flip_sin_to_cos", true);
  out.frequency_shift = config.number_or("freq_shift", 0, io::kZeroToOne);
  out.guidance_width = config.integer_or("time_cond_proj_dim", 0, {0, 1 << 16});
  read_added(config, out);
  return out;
}

}  // namespace rbee::models

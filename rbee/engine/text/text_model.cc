#include "rbee/engine/text/text_model.h"

#include <algorithm>

#include "rbee/core/log.h"
#include "rbee/engine/common/device_choice.h"
#include "rbee/engine/common/gguf_vocab.h"
#include "rbee/engine/text/generation_config.h"
#include "rbee/engine/text/group/text_group.h"
#include "rbee/engine/text/prompt/chat_prompt.h"
#include "rbee/engine/text/prompt/fallback_template.h"
#include "rbee/engine/text/prompt/special_text.h"
#include "rbee/engine/text/prompt/tool_prompt.h"
#include "rbee/io/checkpoint.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::engine {
namespace {

constexpr int64_t kDefaultContext = 4096;

// The places of a checkpoint's templates.
struct TemplatePlaces {
  const char* gguf;    // key
  const char* file;    // of a folder
  const char* config;  // name in the list of tokenizer_config.json
};
constexpr TemplatePlaces kDefault{"tokenizer.chat_template", "chat_template.jinja", "default"};
constexpr TemplatePlaces kWithTools{"tokenizer.chat_template.tool_use",
                                    "additional_chat_templates/tool_use.jinja", "tool_use"};

// A text, or the first one of a list. The model still answers raw prompts without it.
std::optional<std::string> gguf_template(const io::Metadata& metadata, std::string_view key) {
  const io::MetaEntry* entry = metadata.find(key);
  if (entry == nullptr) return std::nullopt;
  std::string_view text;
  if (entry->type == io::MetaType::string) {
    text = *metadata.get_string(key);
  } else if (entry->type == io::MetaType::array && entry->element == io::MetaType::string) {
    const auto texts = *metadata.get_strings(key);
    if (!texts.empty()) text = texts.front();
  }
  if (text.empty()) {
    log(LogLevel::warn, "the file's chat template is no text and is left out",
        {{"key", std::string(key)}, {"type", entry->describe_type()}});
    return std::nullopt;
  }
  return std::string(text);
}

std::optional<std::string> chat_template_source(const io::Checkpoint& checkpoint,
                                                const TemplatePlaces& places) {
  if (checkpoint.format() == io::Checkpoint::Format::gguf) {
    return gguf_template(checkpoint.metadata(), places.gguf);
  }
  std::optional<std::string> source = checkpoint.text_file(places.file);
  if (source) return source;
  const auto config = checkpoint.text_file("tokenizer_config.json");
  return config ? chat_template_of(*config, places.config) : std::nullopt;
}

SamplingDefaults sampling_defaults_of(const io::Checkpoint& checkpoint) {
  if (checkpoint.format() == io::Checkpoint::Format::gguf) {
    return sampling_defaults(checkpoint.metadata());
  }
  const auto text = checkpoint.text_file("generation_config.json");
  return text ? sampling_defaults(*text) : SamplingDefaults{};
}

std::unique_ptr<text::ChatTemplate> make_chat_template(const std::optional<std::string>& source) {
  if (!source) return nullptr;
  try {
    return std::make_unique<text::ChatTemplate>(*source);
  } catch (const Error& error) {
    // The model still answers raw prompts.
    log(LogLevel::warn, "the chat template is not usable", {{"error", error.what()}});
    return nullptr;
  }
}

ModelInfo make_info(const io::Checkpoint& checkpoint, const TextModelOptions& options,
                    const std::filesystem::path& path, const models::LanguageModel& model) {
  ModelInfo info;
  info.id = options.model_id;
  if (info.id.empty()) info.id = model.config().name;
  if (info.id.empty()) info.id = path.filename().string();
  info.architecture = checkpoint.architecture();
  info.device = cat(options.device->id());
  info.capture_refusal = options.device->capture_refusal();
  info.quantization = model.quantization();
  info.vocab_size = model.config().vocab_size;
  const int64_t trained = model.config().context_length;
  const int64_t wanted = options.context > 0 ? options.context : std::min(trained, kDefaultContext);
  check(wanted <= INT32_MAX, "context", wanted, " is above ", INT32_MAX);
  if (wanted > trained) {
    log(LogLevel::warn, "the context is longer than the model was trained for",
        {{"context", cat(wanted)}, {"trained", cat(trained)}});
  }
  info.context_length = static_cast<int32_t>(wanted);
  info.parameters = model.parameters();
  info.weight_bytes = model.weight_bytes();
  return info;
}

std::vector<text::TokenId> end_tokens_of(const io::Checkpoint& checkpoint,
                                         const text::Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<text::TokenId> ids = tokenizer.end_tokens();
  if (checkpoint.format() == io::Checkpoint::Format::safetensors) {
    for (const char* file : {"generation_config.json", "config.json"}) {
      if (const auto text = checkpoint.text_file(file)) {
        const auto more = end_token_ids(*text, file, vocab_size);
        ids.insert(ids.end(), more.begin(), more.end());
      }
    }
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// The type that most bytes of the checkpoint are in.
DType most_common_type(const io::Checkpoint& checkpoint) {
  nn::WeightFigures figures;
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    figures.bytes_by_type[static_cast<size_t>(entry.dtype)] +=
        static_cast<int64_t>(entry.data.size());
  }
  return figures.most_common();
}

std::string kind_of(std::string_view gguf_model) {
  if (gguf_model == "llama") return "gguf-spm";
  if (gguf_model == "t5") return "gguf-unigram";
  return gguf_model == "bert" ? "gguf-wordpiece" : "gguf-bpe";
}

// The marks of Gemma 3's processor around a picture's tokens; its template writes the first one.
constexpr std::string_view kPictureSpace = "\n\n";
constexpr std::string_view kPictureBegin = "<start_of_image>";
constexpr std::string_view kPictureEnd = "<end_of_image>";
constexpr std::string_view kPictureToken = "<image_soft_token>";

int64_t count_pictures(const std::vector<ChatMessage>& messages) {
  int64_t count = 0;
  for (const ChatMessage& message : messages) count += std::ssize(message.pictures);
  return count;
}

int64_t count_marks(std::string_view prompt) {
  int64_t count = 0;
  for (size_t at = prompt.find(kPictureBegin); at != std::string_view::npos;
       at = prompt.find(kPictureBegin, at + kPictureBegin.size())) {
    ++count;
  }
  return count;
}

// The prompt with marks for the parts of pictures that have some, and the words of Gemma 3's
// processor around them.
std::string mark_parts(std::string_view prompt, std::span<const PictureSquares> pictures) {
  std::string out;
  for (const PictureSquares& squares : pictures) {
    const size_t at = prompt.find(kPictureBegin);
    out += prompt.substr(0, at);
    prompt.remove_prefix(at + kPictureBegin.size());
    if (squares.size() == 1) {
      out += kPictureBegin;
      continue;
    }
    out += cat("Here is the original image ", kPictureBegin,
               " and here are some crops to help you see better ");
    for (size_t i = 1; i < squares.size(); ++i) out += cat(i == 1 ? "" : " ", kPictureBegin);
  }
  return out += prompt;
}

// What stands in a list of tokens for a picture's rows. GGUF files may leave it out: any known
// token does, since the model does not read it.
text::TokenId find_picture_token(const text::Tokenizer& tokenizer, int64_t vocab_size) {
  for (const std::string_view mark : {kPictureBegin, kPictureEnd}) {
    if (tokenizer.encode(mark, {.add_special = false}).size() != 1) {
      fail(Code::unsupported, "tokenizer", "the model reads pictures, but ", mark,
           " is not among its tokens");
    }
  }
  const std::vector<text::TokenId> soft = tokenizer.encode(kPictureToken, {.add_special = false});
  return soft.size() == 1 && soft.front() < vocab_size ? soft.front() : 0;
}

std::string token_text(const text::Tokenizer& tokenizer, std::optional<text::TokenId> id) {
  return id ? tokenizer.piece(*id, true) : std::string();
}

// Whether a text begins with it, for templates that leave it to the tokenizer.
bool adds_bos(const text::Tokenizer& tokenizer) {
  const std::vector<text::TokenId> tokens = tokenizer.encode("a");
  return tokenizer.bos() && !tokens.empty() && tokens.front() == *tokenizer.bos();
}

// chat_template: of chats with tools, or null.
ToolPromptPlace place_of_tools(const text::ChatTemplate* chat_template) {
  if (chat_template == nullptr) return ToolPromptPlace::system;
  if (shows_tools(*chat_template)) return ToolPromptPlace::chat_template;
  return takes_system(*chat_template) ? ToolPromptPlace::system : ToolPromptPlace::user;
}

}  // namespace

DType default_activations(const io::Checkpoint& checkpoint, const Device& device) {
  if (device.host_accessible()) return DType::f32;
  const DType weights = most_common_type(checkpoint);
  return weights == DType::f32 || weights == DType::f16 ? weights : DType::bf16;
}

std::unique_ptr<text::ChatTemplate> load_chat_template(const io::Checkpoint& checkpoint) {
  return make_chat_template(chat_template_source(checkpoint, kDefault));
}

std::unique_ptr<text::Tokenizer> load_tokenizer(const io::Checkpoint& checkpoint,
                                                std::string* kind) {
  if (checkpoint.format() == io::Checkpoint::Format::gguf) {
    text::GgufVocab vocab = gguf_vocab(checkpoint.metadata());
    if (kind != nullptr) *kind = kind_of(vocab.model);
    return text::tokenizer_from_gguf(std::move(vocab));
  }
  const auto json = checkpoint.text_file("tokenizer.json");
  if (!json) {
    fail(Code::not_found, "tokenizer",
         "tokenizer.json is not beside the weights; save the tokenizer in its \"fast\" form");
  }
  if (kind != nullptr) *kind = "hf-json";
  return text::tokenizer_from_json(*json,
                                   checkpoint.text_file("tokenizer_config.json").value_or(""),
                                   checkpoint.text_file("special_tokens_map.json").value_or(""));
}

namespace {

void tell_of_chats(const std::string& chat_template, TextModel& model) {
  const bool chats = model.chat_template != nullptr;
  model.info.chat_template = chat_template;
  model.info.calls_tools = chats && model.format.tools != text::ToolFormat::none;
  model.info.reasons = chats && model.format.reasoning != text::ReasoningFormat::none;
}

std::unique_ptr<models::LanguageModel> load_weights(const io::Checkpoint& checkpoint,
                                                    const TextModelOptions& options) {
  std::optional<io::Checkpoint> tower;
  if (!options.mmproj.empty()) tower = io::Checkpoint::open(options.mmproj);
  const DType activations =
      options.activations.value_or(default_activations(checkpoint, *options.device));
  const bool on_cpu = options.device->host_accessible();
  const auto progress = [&options](int64_t done, int64_t total) {
    if (options.group) options.group->leader().check_alive();
    if (options.progress) options.progress(done, total);
  };
  auto out = models::load_language_model(
      checkpoint, {.device = options.device,
                   .context = options.context,
                   .pictures = tower ? &*tower : nullptr,
                   .gpu_layers = on_cpu ? models::kAllLayers : options.gpu_layers,
                   .host = on_cpu ? nullptr : &host_device(),
                   .cpu_moe_layers = on_cpu ? 0 : options.cpu_moe_layers,
                   .op_offload_min_batch = on_cpu ? 0 : options.op_offload_min_batch,
                   .expert_parallel = options.expert_parallel,
                   .group = options.membership,
                   .activations = activations,
                   .progress = progress});
  if (options.cpu_moe_layers > 0 && !on_cpu && out->cpu_moe_layers() == 0 &&
      !out->host_layers().any()) {
    log(LogLevel::warn, "the layers that are to leave their experts to the CPU have none",
        {{"cpu_moe_layers", cat(options.cpu_moe_layers)}});
  }
  return out;
}

// Of a group, when the other ranks have loaded theirs too.
std::unique_ptr<models::LanguageModel> load_own_part(const io::Checkpoint& checkpoint,
                                                     const TextModelOptions& options) {
  auto out = load_weights(checkpoint, options);
  if (!options.group) return out;
  if (out->pictures() != nullptr) {
    fail(Code::unsupported, "group",
         "a model that reads pictures is not implemented for several ranks");
  }
  options.group->wait_until_loaded();
  return out;
}

void tell_of_group(const TextGroup& group, ModelInfo& info) {
  info.ranks = group.leader().ranks();
  info.weight_bytes += group.others().weight_bytes;
}

}  // namespace

std::unique_ptr<models::LanguageModel> load_rank_model(const std::filesystem::path& path,
                                                       const TextModelOptions& options) {
  return load_weights(io::Checkpoint::open(path), options);
}

TextModel load_text_model(const std::filesystem::path& path, const TextModelOptions& options) {
  check(options.device != nullptr, "load_text_model", "no device is given");
  check(options.context >= 0, "context", options.context, " is negative");
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  TextModel out;
  out.device = options.device;
  std::string kind;
  out.tokenizer = load_tokenizer(checkpoint, &kind);
  const bool own_template = options.chat_template.empty();
  const std::optional<std::string> with_tools =
      own_template ? chat_template_source(checkpoint, kWithTools) : std::nullopt;
  std::optional<std::string> source =
      own_template ? chat_template_source(checkpoint, kDefault) : options.chat_template;
  if (!source) source = with_tools;
  out.chat_template =
      own_template ? make_chat_template(source) : std::make_unique<text::ChatTemplate>(*source);
  out.given_template = !own_template;
  out.format = text::detect_output_format(out.chat_template ? *source : "");
  out.tool_template = make_chat_template(with_tools);
  const text::OutputFormat of_calls =
      text::detect_output_format(out.tool_template ? *with_tools : "");
  if (of_calls.tools != text::ToolFormat::none) out.format.tools = of_calls.tools;
  if (out.format.tools == text::ToolFormat::none) out.format.tools = text::ToolFormat::generic;
  if (options.tools) out.format.tools = *options.tools;
  if (options.reasoning) out.format.reasoning = *options.reasoning;
  if (out.format.tools != text::ToolFormat::none) {
    out.tool_prompt_place =
        place_of_tools(out.tool_template ? out.tool_template.get() : out.chat_template.get());
  }
  out.group = options.group;
  out.model = load_own_part(checkpoint, options);
  check(out.tokenizer->vocab_size() <= out.model->config().vocab_size, "tokenizer", "its ",
        out.tokenizer->vocab_size(), " tokens are more than the model's ",
        out.model->config().vocab_size);
  out.end_tokens = end_tokens_of(checkpoint, *out.tokenizer, out.model->config().vocab_size);
  out.info = make_info(checkpoint, options, path, *out.model);
  out.info.tokenizer_kind = kind;
  if (out.group) tell_of_group(*out.group, out.info);
  if (options.sampling_defaults) out.info.sampling = sampling_defaults_of(checkpoint);
  tell_of_chats(source.value_or(""), out);
  out.info.bos_text = token_text(*out.tokenizer, out.tokenizer->bos());
  out.info.eos_text = token_text(*out.tokenizer, out.tokenizer->eos());
  if (const models::PictureEncoder* pictures = out.model->pictures()) {
    out.picture_token = find_picture_token(*out.tokenizer, out.info.vocab_size);
    out.info.picture_tokens = static_cast<int32_t>(pictures->tokens());
    out.pan_and_scan = read_pan_and_scan(checkpoint);
  } else {
    check(!options.pan_and_scan.value_or(false), "pan_and_scan",
          "this model reads text alone, no pictures");
  }
  out.pan_and_scan.on = options.pan_and_scan.value_or(out.pan_and_scan.on);
  return out;
}

std::string TextModel::render(const std::vector<ChatMessage>& sent,
                              const ChatOptions& options) const {
  check_nesting(sent);
  const std::vector<ChatMessage> messages =
      options.calls() && tool_prompt_place != ToolPromptPlace::chat_template
          ? with_tool_prompt(sent, options.tools, format.tools, tool_prompt_place)
          : sent;
  SpecialTexts special{.bos = token_text(*tokenizer, tokenizer->bos()),
                       .eos = token_text(*tokenizer, tokenizer->eos())};
  const text::ChatTemplate* own =
      options.calls() && tool_template ? tool_template.get() : chat_template.get();
  ChatOptions known = options;
  const bool is_go = own != nullptr && own->is_go();
  if (given_template && !is_go) known.template_variables = llama_variables(options);
  if (is_go && !adds_bos(*tokenizer)) special.bos.clear();
  if (own != nullptr && format.reasoning == text::ReasoningFormat::harmony) {
    known.template_variables = harmony_variables(known.template_variables);
  }
  if (own != nullptr) {
    std::string chat = render_chat(*own, special, messages, known);
    return is_go ? with_picture_marks(std::move(chat), count_pictures(messages), kPictureBegin)
                 : chat;
  }
  const text::ChatTemplate fallback(fallback_chat_template(info.architecture));
  return render_chat(fallback, special, messages, options);
}

std::string TextModel::prompt_of(const TextRequest& request) const {
  if (request.messages.empty()) return request.prompt;
  std::vector<ChatMessage> messages = mark_special_texts(request.messages, *tokenizer);
  if (count_pictures(messages) > 0 && chat_template && chat_template->is_go()) {
    for (ChatMessage& message : messages) mark_picture_tags(message);
  }
  ChatOptions chat = request.chat;
  chat.template_variables = with_suffix(chat.template_variables, [&](std::string_view suffix) {
    return mark_special_texts(suffix, *tokenizer);
  });
  return render(messages, chat);
}

TextModel::Encoded TextModel::encode(const TextRequest& request, std::string_view prompt,
                                     std::span<const PictureSquares> pictures) const {
  if (!request.prompt_ids.empty()) {
    const int64_t known = std::min<int64_t>(tokenizer->vocab_size(), info.vocab_size);
    for (const int32_t id : request.prompt_ids) {
      check(id >= 0 && id < known, "prompt", "token ", id, " is outside of the ", known,
            " known ones");
    }
    return {request.prompt_ids, {}};
  }
  const auto tokens_of = [&](std::string_view text) {
    return request.messages.empty() ? tokenizer->encode(text) : encode_marked(text, *tokenizer);
  };
  const int64_t wanted = count_pictures(request.messages);
  if (wanted == 0) return {tokens_of(prompt), {}};
  const int64_t places = count_marks(prompt);
  check(places == wanted, "messages", "the chat template and the texts have ", places,
        " places for ", wanted, " pictures");
  const std::string with_parts = mark_parts(prompt, pictures);
  prompt = with_parts;
  const auto soft = static_cast<size_t>(info.picture_tokens);
  Encoded out;
  std::string part;
  while (true) {
    const size_t at = prompt.find(kPictureBegin);
    part += prompt.substr(0, at);
    if (at != std::string_view::npos) part += cat(kPictureSpace, kPictureBegin);
    const std::vector<text::TokenId> tokens = tokens_of(part);
    out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
    if (at == std::string_view::npos) return out;
    out.pictures.push_back(std::ssize(out.tokens));
    out.tokens.insert(out.tokens.end(), soft, picture_token);
    part = cat(kPictureEnd, kPictureSpace);
    prompt.remove_prefix(at + kPictureBegin.size());
  }
}

}  // namespace rbee::engine

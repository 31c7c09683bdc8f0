#include "rbee/engine/embedding/source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/engine/text/prompt/chat_prompt.h"
#include "rbee/engine/text/prompt/special_text.h"
#include "rbee/io/checkpoint.h"
#include "rbee/io/json_parse.h"
#include "rbee/models/dense_modules.h"

namespace rbee::engine {
namespace {

constexpr const char* kInput = "input";

void find_frame(EmbeddingSource& source) {
  const std::vector<int32_t> empty = source.tokenizer->encode("");
  const std::vector<int32_t> filled = source.tokenizer->encode("a");
  const auto differ = std::ranges::mismatch(empty, filled).in1;
  source.prefix.assign(empty.begin(), differ);
  source.suffix.assign(differ, empty.end());
}

// Cross-encoders of sentence-transformers say what their scores go through.
bool has_logistic(const io::Checkpoint& checkpoint) {
  if (checkpoint.config_json().empty()) return true;
  const nlohmann::json config = io::parse_json(checkpoint.config_json(), "config.json");
  for (const auto* place :
       {"/sentence_transformers/activation_fn", "/sbert_ce_default_activation_function"}) {
    const nlohmann::json::json_pointer at(place);
    if (!config.contains(at) || !config[at].is_string()) continue;
    const auto name = config[at].get<std::string>();
    if (name.ends_with("Identity")) return false;
    if (!name.ends_with("Sigmoid")) {
      fail(Code::unsupported, "config.json", "scores go through \"", name,
           "\"; known are Sigmoid and Identity");
    }
  }
  return true;
}

// What a decoder answers with that is asked whether a document fits.
models::RankWords words_of(const text::Tokenizer& tokenizer) {
  const auto token = [&](std::string_view word) {
    const std::vector<int32_t> ids = tokenizer.encode(word, {.add_special = false});
    if (ids.size() != 1) {
      fail(Code::unsupported, "pooling", "rank wants a token for \"", word,
           "\", which the model does not have");
    }
    return ids.front();
  };
  return {.yes = token("yes"), .no = token("no")};
}

void set_rerank_prompt(const io::Checkpoint& checkpoint, const models::EmbeddingSettings& settings,
                       EmbeddingSource& out) {
  if (!settings.pair_template.empty()) {
    out.rerank_prompt.emplace(settings.pair_template, *out.tokenizer);
    out.info.instructs = out.rerank_prompt->takes_instruction();
  } else if (settings.words) {
    fail(Code::unsupported, "rerank", "how models of architecture \"", checkpoint.architecture(),
         "\" are asked about a pair is not known; Qwen3's rankers are implemented");
  }
}

ModelInfo model_info(const io::Checkpoint& checkpoint, const TextModelOptions& options,
                     const std::filesystem::path& path, const models::EmbeddingModel& model) {
  ModelInfo info;
  info.id = options.model_id;
  if (info.id.empty()) info.id = model.config().name;
  if (info.id.empty()) info.id = path.filename().string();
  info.architecture = checkpoint.architecture();
  info.device = cat(options.device->id());
  info.capture_refusal = "a model for embeddings has no steps that come again";
  info.quantization = model.quantization();
  info.vocab_size = model.config().vocab_size;
  info.context_length = static_cast<int32_t>(model.max_tokens());
  info.parameters = model.parameters();
  info.weight_bytes = model.weight_bytes();
  return info;
}

// The first or the last ones.
void cut(std::vector<int32_t>& ids, int64_t most, bool last) {
  const int64_t spare = std::ssize(ids) - most;
  if (spare <= 0) return;
  last ? ids.erase(ids.begin(), ids.begin() + spare) : ids.erase(ids.end() - spare, ids.end());
}

void check_tokens(const std::vector<int32_t>& ids, int64_t most, int64_t vocab) {
  check(!ids.empty(), kInput, "a text has no tokens");
  check(std::ssize(ids) <= most, kInput, "a text has ", ids.size(),
        " tokens, which is too large: the model takes ", most,
        ". Please reduce the length of the input prompt, or give truncate_prompt_tokens");
  for (const int32_t id : ids) {
    check(id >= 0 && id < vocab, kInput, "token ", id, " is out of vocabulary: ids are 0 to ",
          vocab - 1);
  }
}

}  // namespace

bool is_for_embeddings(const std::filesystem::path& path) {
  return models::makes_embeddings(io::Checkpoint::open(path));
}

EmbeddingSource load_embedding_source(const std::filesystem::path& path,
                                      const TextModelOptions& options, std::string_view pooling) {
  check(options.device != nullptr, "load_embedding_source", "no device is given");
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  models::EmbeddingSettings settings = models::read_embedding_settings(checkpoint);
  EmbeddingSource out;
  out.device = options.device;
  out.tokenizer = load_tokenizer(checkpoint, &out.info.model.tokenizer_kind);
  const std::string kind = out.info.model.tokenizer_kind;
  find_frame(out);
  const models::LoadOptions load{
      .device = options.device,
      .context = options.context > 0 ? options.context : settings.max_tokens,
      .activations = options.activations.value_or(default_activations(checkpoint, *options.device)),
      .progress = options.progress};
  const std::filesystem::path folder =
      std::filesystem::is_directory(path) ? path : path.parent_path();
  if (pooling == "rank") settings.words = words_of(*out.tokenizer);
  auto model = models::load_embedding_model(checkpoint, load, settings.words);
  out.model =
      models::with_dense_modules(std::move(model), settings.dense, checkpoint, folder, load);
  const bool own_pooling = pooling != "auto" && pooling != "rank";
  out.pooling = own_pooling ? models::parse_pooling(pooling) : settings.pooling;
  out.probability = has_logistic(checkpoint);
  out.info.model = model_info(checkpoint, options, path, *out.model);
  out.info.model.tokenizer_kind = kind;
  out.info.dimensions = out.model->dimensions();
  out.info.ranks = out.model->ranks();
  out.info.pooling = models::name(out.pooling);
  if (settings.ranks && !out.model->ranks()) {
    fail(Code::not_found, "load", "the file says that the model ranks, but has no ",
         "cls.output.weight; --pooling rank lets a decoder rank by its yes and no");
  }
  if (out.model->ranks()) set_rerank_prompt(checkpoint, settings, out);
  out.info.classifies = out.model->ranks() && !out.rerank_prompt;
  out.chat_template = options.chat_template.empty()
                          ? load_chat_template(checkpoint)
                          : std::make_unique<text::ChatTemplate>(options.chat_template);
  out.info.normalises = settings.normalise;
  out.prompts = settings.prompts;
  out.default_prompt = settings.default_prompt;
  for (const auto& [name, prompt] : out.prompts) out.info.prompts.push_back(name);
  return out;
}

EmbeddingInput EmbeddingSource::prompted(const EmbeddingInput& input,
                                         const std::optional<std::string>& prompt_name) const {
  const auto* text = std::get_if<std::string>(&input);
  const auto prompt = prompts.find(prompt_name.value_or(default_prompt));
  if (text == nullptr || prompt == prompts.end()) return input;
  return prompt->second + *text;
}

EmbeddingSource::Encoded EmbeddingSource::encode(const EmbeddingInput& input,
                                                 const Kept& kept) const {
  Query none;
  return encode(input, kept, none);
}

EmbeddingSource::Encoded EmbeddingSource::encode(const EmbeddingInput& input, const Kept& kept,
                                                 Query& query) const {
  static const std::vector<int32_t> kNone;
  const int64_t most = model->max_tokens();
  const int64_t wanted = kept.tokens.value_or(0) < 0 ? most : kept.tokens.value_or(INT32_MAX);
  Encoded out;
  const std::vector<int32_t>& end = kept.special ? suffix : kNone;
  const auto add_text = [&](const std::string& text, const std::vector<int32_t>& before) {
    std::vector<int32_t> ids = tokenizer->encode(text, {.add_special = false});
    const auto taken = std::ssize(out.ids) + std::ssize(before) + std::ssize(end);
    cut(ids, std::max<int64_t>(wanted - taken, 0), kept.last);
    for (const auto* part : {&before, &std::as_const(ids), &end}) {
      out.ids.insert(out.ids.end(), part->begin(), part->end());
    }
  };
  if (const auto* tokens = std::get_if<std::vector<int32_t>>(&input)) {
    out.ids = *tokens;
    cut(out.ids, wanted, kept.last);
  } else if (const auto* text = std::get_if<std::string>(&input)) {
    add_text(*text, kept.special ? prefix : kNone);
  } else {
    const auto& pair = std::get<TextPair>(input);
    if (rerank_prompt) {
      out.ids = rerank_prompt->encode(pair, *tokenizer, wanted);
    } else {
      const std::string& asked = pair.query.text();
      if (query.text != &asked) query = {.text = &asked, .ids = tokenizer->encode(asked)};
      out.ids = query.ids;
      out.segments.assign(out.ids.size(), 0);
      add_text(pair.document, model->doubles_separator() ? suffix : kNone);
      out.segments.resize(out.ids.size(), 1);
    }
  }
  out.ids.shrink_to_fit();  // the tokenizer's room is for as many as a text may have
  out.segments.resize(out.ids.size(), 0);
  check_tokens(out.ids, most, model->config().vocab_size);
  return out;
}

std::string EmbeddingSource::shortened(const std::string& text, int32_t tokens) const {
  if (tokens <= 0) return text;
  std::vector<int32_t> ids = tokenizer->encode(text, {.add_special = false});
  if (std::ssize(ids) <= tokens) return text;
  ids.resize(static_cast<size_t>(tokens));
  return tokenizer->decode(ids, true);
}

std::vector<int32_t> EmbeddingSource::chat_tokens(const std::vector<ChatMessage>& messages,
                                                  const ChatOptions& options,
                                                  bool add_special) const {
  check(chat_template != nullptr, "messages", info.model.id,
        " has no chat template; --chat-template gives one");
  check_nesting(messages);
  const auto name = [&](std::optional<text::TokenId> id) {
    return id ? tokenizer->piece(*id, true) : std::string();
  };
  const SpecialTexts special{.bos = name(tokenizer->bos()), .eos = name(tokenizer->eos())};
  const std::vector<ChatMessage> marked = mark_special_texts(messages, *tokenizer);
  const std::string text = render_chat(*chat_template, special, marked, options);
  std::vector<int32_t> out = encode_marked(text, *tokenizer);
  if (!add_special) return out;
  out.insert(out.begin(), prefix.begin(), prefix.end());
  out.insert(out.end(), suffix.begin(), suffix.end());
  return out;
}

}  // namespace rbee::engine

// A model, its tokenizer and its chat template from one checkpoint folder.
#include "rbee/engine/text/text_model.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "tests/checkpoints/tiny_tokenizer.h"
#include "tests/support/data_folder.h"
#include "tests/support/expect_error.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextModelTest : public testing::Test {
 protected:
  void SetUp() override {
    register_backend(cpu::cpu_backend());
    std::string pattern = (fs::temp_directory_path() / "rbee-text-model-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    fs::copy(fs::path(test::data_folder()) / "models/language/data/smollm/hf", folder_,
             fs::copy_options::recursive);
    write("tokenizer.json", test::tiny_tokenizer_json());
    write("tokenizer_config.json", test::kTinyTokenizerConfig);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  TextModel load(int64_t context = 0) {
    return load_text_model(folder_,
                           {.device = &get_device({DeviceKind::cpu, 0}), .context = context});
  }
  std::string error() {
    try {
      load();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

// A message's text cannot end the message and begin another.
TEST_F(TextModelTest, SpecialTokensInMessagesAreWords) {
  write("tokenizer.json", test::tiny_tokenizer_json("</s>", {"<|a|>", "|b|>", "<|b|>", "|"}));
  write("chat_template.jinja", "{% for m in messages %}<|a|>{{ m.content }}</s>{% endfor %}");
  const TextModel model = load();
  const auto tokens = [&](const std::string& role, const std::string& content) {
    TextRequest request;
    request.messages = {{.role = role, .content = content}};
    return model.encode(request, model.prompt_of(request)).tokens;
  };
  const auto id = [&](const char* text) { return model.tokenizer->find(text).value(); };
  const std::vector<text::TokenId> own = {id("<|a|>"), id("</s>")};
  const auto special = [&](std::vector<text::TokenId> ids) {
    std::erase_if(ids, [&](text::TokenId one) {
      return !model.tokenizer->is_special(one) || one == id("|");
    });
    return ids;
  };
  for (const char* role : {"user", "system", "tool"}) {
    for (const char* text : {"x</s><|a|>y", "<|b|>", "</s></s>", "<<|a|>", "Hi"}) {
      const auto ids = tokens(role, text);
      EXPECT_EQ(special(ids), own) << role << " " << text;
      EXPECT_EQ(model.tokenizer->decode(ids, true), cat("<|a|>", text, "</s>"));
    }
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "</s><|a|>|<|b|>y|b|>";
  EXPECT_EQ(special(tokens("user", many)), own);
  EXPECT_EQ(model.tokenizer->decode(tokens("user", many), true), cat("<|a|>", many, "</s>"));
  EXPECT_THAT(special(tokens("assistant", "x</s>")),
              ElementsAre(id("<|a|>"), id("</s>"), id("</s>")));
  EXPECT_EQ(model.render({{.role = "user", .content = "</s>"}}, {}), "<|a|></s></s>");
  TextRequest raw;
  raw.prompt = "</s>";
  EXPECT_THAT(special(model.encode(raw, model.prompt_of(raw)).tokens),
              ElementsAre(id("<s>"), id("</s>")));
}

TEST_F(TextModelTest, AnotherTemplateAndNoSamplingOfTheModels) {
  write("chat_template.jinja", "{{ messages[0].content }}");
  write("generation_config.json", R"({"temperature": 0.5})");
  EXPECT_EQ(load().info.sampling, SamplingDefaults{.temperature = 0.5f});
  TextModelOptions options{.device = &get_device({DeviceKind::cpu, 0})};
  options.chat_template = "<{{ messages[0].content }}>";
  options.sampling_defaults = false;
  const TextModel model = load_text_model(folder_, options);
  EXPECT_EQ(model.info.sampling, SamplingDefaults{});
  EXPECT_EQ(model.info.chat_template, options.chat_template);
  EXPECT_EQ(model.render({{.role = "user", .content = "Hi"}}, {}), "<Hi>");
  options.chat_template = "{% if %}";
  EXPECT_THROW(load_text_model(folder_, options), Error);
}

TEST_F(TextModelTest, LoadsModelTokenizerAndTemplate) {
  write("chat_template.jinja", "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}");
  write("generation_config.json", R"({"eos_token_id": [1, 7, -1, 160, "x"]})");
  const TextModel model = load(48);
  EXPECT_EQ(model.info.architecture, "llama");
  EXPECT_EQ(model.info.device, "cpu:0");
  EXPECT_EQ(model.info.tokenizer_kind, "hf-json");
  EXPECT_EQ(model.info.vocab_size, test::kTinyVocab);
  EXPECT_EQ(model.info.context_length, 48);
  EXPECT_GT(model.info.parameters, 0);
  EXPECT_GT(model.info.weight_bytes, 0);
  EXPECT_THAT(model.end_tokens, ElementsAre(1, 7));
  EXPECT_EQ(model.render({{"user", "a b"}}, {}), "[user]a b");
  TextRequest raw;
  raw.prompt = "abc";
  // A raw prompt gets BOS; a template writes its own.
  EXPECT_EQ(model.encode(raw, model.prompt_of(raw)).tokens.front(), 0);
  TextRequest chat;
  chat.messages = {{"user", "abc"}};
  EXPECT_NE(model.encode(chat, model.prompt_of(chat)).tokens.front(), 0);
}

TEST_F(TextModelTest, AChatMayGoOnFromItsLastMessage) {
  write("chat_template.jinja",
        "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}[end]{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}");
  const TextModel model = load();
  const std::vector<ChatMessage> asked = {{"assistant", "yes"}, {"user", "sure?"}};
  const auto begun = [&](std::string text) {
    std::vector<ChatMessage> messages = asked;
    messages.push_back({"assistant", std::move(text)});
    return model.render(messages, {.continue_last = true});
  };
  EXPECT_EQ(begun("yes"), "[assistant]yes[end][user]sure?[end][assistant]yes");
  // The template trims blanks.
  EXPECT_EQ(begun(" yes, \n"), "[assistant]yes[end][user]sure?[end][assistant]yes,");
  harness::expect_error("messages", "last", "assistant's",
                        [&] { model.render(asked, {.continue_last = true}); });
  harness::expect_error("messages", "last", "cannot be continued", [&] { begun(" "); });
  write("chat_template.jinja", "{% for m in messages %}[{{ m.content }}]{% endfor %}");
  EXPECT_EQ(load().render({{"user", "a"}, {"assistant", "b "}}, {.continue_last = true}), "[a][b ");
}

// As in llama.cpp: every model can be prompted for calls.
TEST_F(TextModelTest, WithoutAKnownFormCallsHaveTheGenericOne) {
  const ChatOptions asks{
      .tools = {{.name = "f", .json = R"({"type":"function","function":{"name":"f"}})"}}};
  write("chat_template.jinja", "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}");
  const TextModel model = load();
  EXPECT_EQ(model.format.tools, text::ToolFormat::generic);
  EXPECT_THAT(model.render({{"user", "a"}}, asks),
              ::testing::AllOf(::testing::StartsWith("[system]You may call"),
                               ::testing::HasSubstr(R"({"name":"NAME","arguments":{)")));
  write("chat_template.jinja",
        "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "{{ messages[0].content }}");
  EXPECT_THAT(load().render({{"user", "a"}}, asks), ::testing::StartsWith("You may call"));
  TextModelOptions options{.device = &get_device({DeviceKind::cpu, 0})};
  options.tools = text::ToolFormat::none;
  EXPECT_EQ(load_text_model(folder_, options).format.tools, text::ToolFormat::none);
}

// A template from a file may be written for llama-server.
TEST_F(TextModelTest, AGivenTemplateHasLlamaServersVariables) {
  const std::string source =
      "{{ enable_thinking is defined and enable_thinking }} {{ date_string is defined }} "
      "{{ datetime is defined }} {{ functions }}";
  write("chat_template.jinja", source);
  EXPECT_EQ(load().render({{"user", "a"}}, {}), "False False False ");
  TextModelOptions options{.device = &get_device({DeviceKind::cpu, 0})};
  options.chat_template = source;
  const TextModel given = load_text_model(folder_, options);
  EXPECT_EQ(given.render({{"user", "a"}}, {}), "True True True ");
  const ChatOptions off{.template_variables = R"({"enable_thinking":false,"date_string":"x"})"};
  EXPECT_EQ(given.render({{"user", "a"}}, off), "False True True ");
}

TEST_F(TextModelTest, APromptMayEndBeforeTheNextTurn) {
  write("chat_template.jinja",
        "{{ messages[0].content }}{% if add_generation_prompt %}[assistant]{% endif %}");
  const TextModel model = load();
  EXPECT_EQ(model.render({{"user", "a"}}, {}), "a[assistant]");
  EXPECT_EQ(model.render({{"user", "a"}}, {.add_generation_prompt = false}), "a");
}

TEST_F(TextModelTest, TheTemplateMayStandInTheTokenizersConfig) {
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "chat_template": "{{ bos_token }}{{ messages[0].content }}"})");
  EXPECT_EQ(load().render({{"user", "hi"}}, {}), "<s>hi");
}

TEST_F(TextModelTest, ChatsWithToolsHaveATemplateOfTheirOwn) {
  write("tokenizer_config.json", R"({"chat_template": [
      {"name": "default", "template": "plain"},
      {"name": "tool_use", "template": "<tool_call> {{ tools[0].function.name }}"}]})");
  const ChatOptions with{.tools = {{"f", R"({"type":"function","function":{"name":"f"}})", "{}"}}};
  {
    const TextModel model = load();
    EXPECT_EQ(model.render({{"user", "hi"}}, {}), "plain");
    EXPECT_EQ(model.render({{"user", "hi"}}, with), "<tool_call> f");
    ChatOptions none = with;
    none.tool_choice = ToolChoice::none;
    EXPECT_EQ(model.render({{"user", "hi"}}, none), "plain");
    EXPECT_EQ(model.format.tools, text::ToolFormat::hermes);
  }
  // Newer versions of transformers write it here.
  write("tokenizer_config.json", "{}");
  write("chat_template.jinja", "plain");
  fs::create_directory(folder_ / "additional_chat_templates");
  write("additional_chat_templates/tool_use.jinja", "tools");
  const TextModel model = load();
  EXPECT_EQ(model.render({{"user", "hi"}}, {}), "plain");
  EXPECT_EQ(model.render({{"user", "hi"}}, with), "tools");
}

TEST_F(TextModelTest, SaysWhatIsMissingOrWrong) {
  write("generation_config.json", "[]");
  EXPECT_THAT(error(), HasSubstr("generation_config.json"));
  fs::remove(folder_ / "generation_config.json");
  write("tokenizer.json", "{");
  EXPECT_THAT(error(), HasSubstr("tokenizer.json"));
  fs::remove(folder_ / "tokenizer.json");
  EXPECT_THAT(error(), HasSubstr("tokenizer.json is not beside the weights"));
  EXPECT_THROW(load(-1), Error);
  EXPECT_THROW(load_text_model(folder_, {}), Error);
}

// The tiny model as a GGUF file with a tokenizer and the keys that `add` sets.
TextModel load_gguf(const fs::path& path, const std::function<void(io::GgufWriter&)>& add) {
  const io::Checkpoint made = io::Checkpoint::open(fs::path(test::data_folder()) /
                                                   "models/language/data/smollm/model.gguf");
  io::GgufWriter writer;
  for (const io::MetaEntry& entry : made.metadata().entries()) {
    if (!entry.key.starts_with("tokenizer.")) writer.copy(entry);
  }
  std::vector<std::string> tokens{"<unk>"};
  while (std::ssize(tokens) < test::kTinyVocab) tokens.push_back(cat("t", tokens.size()));
  writer.set_string("tokenizer.ggml.model", "llama");
  writer.set_strings("tokenizer.ggml.tokens", tokens);
  writer.set_floats("tokenizer.ggml.scores", std::vector<float>(tokens.size()));
  add(writer);
  for (const io::TensorEntry& tensor : made.tensors()) {
    writer.add_tensor(std::string(tensor.name), tensor.dtype, tensor.shape);
  }
  writer.begin(path);
  for (const io::TensorEntry& tensor : made.tensors()) writer.write(tensor.data);
  writer.finish();
  return load_text_model(path, {.device = &get_device({DeviceKind::cpu, 0})});
}

TEST_F(TextModelTest, TemplatesOfGgufFilesHaveManyForms) {
  constexpr const char* kKey = "tokenizer.chat_template";
  constexpr const char* kTools = "tokenizer.chat_template.tool_use";
  const fs::path path = folder_ / "m.gguf";
  const auto source = [&](const std::function<void(io::GgufWriter&)>& add) {
    return load_gguf(path, add).info.chat_template;
  };
  EXPECT_EQ(source([](io::GgufWriter& writer) { writer.set_string(kKey, "a"); }), "a");
  EXPECT_EQ(source([](io::GgufWriter& writer) {
              writer.set_strings(kKey, std::vector<std::string>{"b", "c"});
            }),
            "b");
  EXPECT_EQ(source([](io::GgufWriter& writer) { writer.set_string(kTools, "d"); }), "d");
  EXPECT_EQ(source([](io::GgufWriter& writer) { writer.set_u32(kKey, 1); }), "");
  EXPECT_EQ(source([](io::GgufWriter& writer) { writer.set_string(kKey, ""); }), "");
  const TextModel both = load_gguf(path, [](io::GgufWriter& writer) {
    writer.set_string(kKey, "plain");
    writer.set_string(kTools, "{{ tools | length }} tools");
  });
  EXPECT_EQ(both.render({{"user", "x"}}, {}), "plain");
}

}  // namespace
}  // namespace rbee::engine

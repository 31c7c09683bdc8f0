// Bodies of POST requests. For any input, the parsers either throw InvalidBody, whose report is
// valid JSON, or return values that the engine accepts.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/engine/api/image.h"
#include "rbee/engine/api/text.h"
#include "server/apis/a1111/request.h"
#include "server/apis/anthropic/request.h"
#include "server/apis/embeddings/request.h"
#include "server/apis/open_defaults.h"
#include "server/apis/openai/image_request.h"
#include "server/apis/openai/request.h"
#include "server/apis/own/image_request.h"
#include "server/apis/own/request.h"
#include "server/apis/responses/request.h"
#include "server/llm/service.h"
#include "server/wire/generate_request.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"
#include "tests/fuzz/expect_reason.h"

namespace {

using namespace rbee;

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

// Reads the body; a refusal must have a valid report, or name an unsupported feature.
template <typename Parse>
void parse_or_report(Parse parse) {
  try {
    parse();
  } catch (const server::InvalidBody& error) {
    require(!error.errors().empty(), "a refusal without a reason");
    require(!server::invalid_body_json(error).empty(), "an empty report");
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;
    fuzz::expect_reason(error);
  }
}

void generate(std::string_view body) {
  const server::GenerateRequest request = server::parse_generate(body);
  engine::TextRequest checked;
  checked.prompt = request.prompt;
  for (const server::SentMessage& message : request.messages) {
    checked.messages.push_back({message.role, message.content});
  }
  checked.stop = request.stop;
  checked.max_tokens = request.max_tokens.value_or(1);
  checked.sampling = request.sampling;
  engine::validate(checked);  // throws if parser and engine disagree
}

// For accepted tools: if a call is required, one must be possible.
void require_tools(const server::ChatFields& chat) {
  require(chat.tool_choice != "required" || !chat.tools.empty(), "a call without tools");
  for (const server::SentTool& tool : chat.tools) require(!tool.json.empty(), "an empty tool");
}

// For an accepted chat: pictures lie within their messages, in order.
void require_chat(const server::GenerateRequest& request) {
  require_tools(request.chat);
  for (const server::SentMessage& message : request.messages) {
    size_t at = 0;
    for (const server::SentPicture& picture : message.pictures) {
      require(picture.at >= at && picture.at <= message.content.size(), "a picture's place");
      require(!picture.base64.empty() && !picture.field.empty(), "a picture without data");
      at = picture.at;
    }
    try {
      (void)server::to_engine(std::vector{message});
    } catch (const Error& error) {
      require(error.code() == Code::invalid_argument, "an error that is not the client's");
    }
  }
}

// Accepted bodies for embeddings and ranking must have something to evaluate.
void embeddings(std::string_view body) {
  parse_or_report([=] {
    const server::EmbeddingBody read = server::parse_embeddings(body);
    require(read.inputs.empty() != read.messages.empty(), "no input, or two");
  });
  parse_or_report([=] { require(!server::parse_rerank(body).documents.empty(), "no document"); });
  require(!server::parse_score(body).second.empty(), "no pair");
}

// What a body for pictures asks for, as the engine would get it.
void validate_image(const server::ImageBody& body) {
  engine::ImageRequest checked = body.settings;
  std::erase_if(checked.loras, [](const engine::LoraUse& lora) { return lora.path.empty(); });
  for (const server::SentControl& control : body.controls) {
    checked.controls.push_back(control.use);
    checked.controls.back().image = "x";
  }
  engine::validate(checked);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  parse_or_report([body] { generate(body); });
  parse_or_report([body] { server::parse_cancel(body); });
  parse_or_report([body] { require_chat(server::parse_openai_chat(body).generate); });
  parse_or_report([body] { require_chat(server::parse_response_request(body).generate); });
  parse_or_report([body] { require_chat(server::parse_anthropic(body)); });
  parse_or_report([body] { embeddings(body); });
  parse_or_report([body] { validate_image(server::parse_image_job(body).image); });
  parse_or_report([body] { validate_image(server::parse_openai_generation(body)); });
  parse_or_report([body] { server::parse_png_info(body); });
  for (const auto kind : {server::OpenAiEdit::edit, server::OpenAiEdit::variation}) {
    parse_or_report([=] { validate_image(server::parse_openai_edit(body, kind)); });
  }
  for (const bool img2img : {false, true}) {
    parse_or_report([=] { validate_image(server::parse_sdapi(body, img2img)); });
  }
  return 0;
}

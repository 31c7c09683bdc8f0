#include "server/contract/embedding_responses.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "server/contract/json_text.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

Json usage(int64_t tokens) {
  return {{"prompt_tokens", tokens}, {"total_tokens", tokens}};
}

// The shortest text that reads back as the same f32; JSON has no other numbers.
void append_number(std::string& out, float value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

std::string numbers_json(const std::vector<float>& values) {
  std::string out = "[";
  for (const float value : values) {
    if (out.size() > 1) out += ',';
    append_number(out, value);
  }
  return out + "]";
}

std::string number_json(float value) {
  std::string out;
  append_number(out, value);
  return out;
}

}  // namespace

std::string embeddings_json(const EmbeddingAnswer& answer) {
  std::string out = cat("{\"id\":", dump(answer.id), R"(,"object":"list","created":)",
                        answer.created, ",\"data\":[");
  const size_t count = answer.base64.empty() ? answer.vectors.size() : answer.base64.size();
  for (size_t i = 0; i < count; ++i) {
    out += cat(i == 0 ? "" : ",", R"({"object":"embedding","index":)", i, R"(,"embedding":)");
    out +=
        answer.base64.empty() ? numbers_json(answer.vectors[i]) : cat("\"", answer.base64[i], "\"");
    out += "}";
  }
  return out +
         cat("],\"model\":", dump(answer.model), ",\"usage\":", dump(usage(answer.tokens)), "}");
}

std::string llama_embeddings_json(const EmbeddingAnswer& answer) {
  std::string out = "[";
  for (size_t i = 0; i < answer.vectors.size(); ++i) {
    out += cat(i == 0 ? "" : ",", "{\"index\":", i, ",\"embedding\":[",
               numbers_json(answer.vectors[i]), "]}");
  }
  return out + "]";
}

std::string cohere_embeddings_json(const EmbeddingAnswer& answer,
                                   const std::vector<std::string>& texts) {
  std::string floats, base64;
  for (const auto& vector : answer.vectors) {
    floats += cat(floats.empty() ? "" : ",", numbers_json(vector));
  }
  for (const std::string& text : answer.base64) {
    base64 += cat(base64.empty() ? "" : ",", dump(text));
  }
  std::string kinds;
  if (!floats.empty()) kinds += cat("\"float\":[", floats, "]");
  if (!base64.empty()) kinds += cat(kinds.empty() ? "" : ",", "\"base64\":[", base64, "]");
  const nlohmann::ordered_json meta = {{"api_version", {{"version", "2"}}},
                                       {"billed_units", {{"input_tokens", answer.tokens}}},
                                       {"tokens", {{"input_tokens", answer.tokens}}}};
  return cat("{\"id\":", dump(answer.id), ",\"texts\":", dump(texts), ",\"embeddings\":{", kinds,
             R"(},"response_type":"embeddings_by_type","meta":)", dump(meta), "}");
}

std::string tei_rerank_json(const std::vector<RankedDocument>& documents) {
  std::string out = "[";
  for (const RankedDocument& document : documents) {
    out += cat(out.size() > 1 ? "," : "", "{\"index\":", document.index,
               ",\"score\":", number_json(document.score));
    if (document.text) out += cat(",\"text\":", dump(*document.text));
    out += "}";
  }
  return out + "]";
}

std::string rerank_json(std::string_view id, std::string_view model,
                        const std::vector<RankedDocument>& documents, int64_t tokens) {
  std::string out =
      cat("{\"id\":", dump(id), ",\"object\":\"list\",\"model\":", dump(model), ",\"results\":[");
  for (size_t i = 0; i < documents.size(); ++i) {
    const RankedDocument& document = documents[i];
    out += cat(i == 0 ? "" : ",", "{\"index\":", document.index,
               ",\"relevance_score\":", number_json(document.score));
    if (document.text) out += cat(",\"document\":", dump({{"text", *document.text}}));
    out += "}";
  }
  return out + cat("],\"usage\":", dump(usage(tokens)), "}");
}

std::string scores_json(std::string_view id, std::string_view model, int64_t created,
                        const std::vector<float>& scores, int64_t tokens) {
  std::string out = cat("{\"id\":", dump(id), ",\"object\":\"list\",\"created\":", created,
                        ",\"model\":", dump(model), ",\"data\":[");
  for (size_t i = 0; i < scores.size(); ++i) {
    out += cat(i == 0 ? "" : ",", "{\"index\":", i, R"(,"object":"score","score":)",
               number_json(scores[i]), "}");
  }
  return out + cat("],\"usage\":", dump(usage(tokens)), "}");
}

}  // namespace rbee::server

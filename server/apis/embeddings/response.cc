#include "server/apis/embeddings/response.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "server/wire/json_text.h"

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
    const bool plain = answer.object == "embedding";
    out += cat(i == 0 ? "" : ",", "{\"object\":\"", answer.object, "\",\"index\":", i, ",\"",
               plain ? answer.object : "data", "\":");
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

std::string tei_embeddings_json(const std::vector<std::vector<float>>& vectors) {
  std::string out = "[";
  for (const auto& vector : vectors) out += cat(out.size() > 1 ? "," : "", numbers_json(vector));
  return out + "]";
}

std::string cohere_embeddings_json(const EmbeddingAnswer& answer, const CohereEmbedBody& asked) {
  std::string kinds;
  const auto add = [&](std::string_view kind, const auto& entries, const auto& json) {
    std::string list;
    for (const auto& entry : entries) list += cat(list.empty() ? "" : ",", json(entry));
    kinds += cat(kinds.empty() ? "\"" : ",\"", kind, "\":[", list, "]");
  };
  if (asked.floats) add("float", answer.vectors, numbers_json);
  if (asked.base64)
    add("base64", answer.base64, [](const std::string& text) { return dump(text); });
  const auto shifted = [](int32_t by) {
    return [by](const auto& bytes) {
      Json out = Json::array();
      for (const auto byte : bytes) out.push_back(byte + by);
      return dump(out);
    };
  };
  if (asked.int8) add("int8", answer.bytes, shifted(0));
  if (asked.uint8) add("uint8", answer.bytes, shifted(128));
  if (asked.binary) add("binary", answer.bits, shifted(-128));
  if (asked.ubinary) add("ubinary", answer.bits, shifted(0));
  const Json meta = {{"api_version", {{"version", "2"}}},
                     {"billed_units", {{"input_tokens", answer.tokens}, {"image_tokens", 0}}},
                     {"tokens", {{"input_tokens", answer.tokens}}}};
  return cat("{\"id\":", dump(answer.id), ",\"texts\":", dump(asked.texts), ",\"embeddings\":{",
             kinds, R"(},"response_type":"embeddings_by_type","meta":)", dump(meta), "}");
}

std::string vector_places_json(const EmbeddingAnswer& answer, const VectorEncoding& encoding,
                               size_t bytes) {
  constexpr std::string_view kTypes[] = {"float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"};
  Json data = Json::array();
  for (size_t i = 0; i < answer.vectors.size(); ++i) {
    data.push_back({{"index", i},
                    {"embed_dtype", kTypes[static_cast<size_t>(encoding.type)]},
                    {"endianness", encoding.big_endian ? "big" : "little"},
                    {"start", i * bytes},
                    {"end", (i + 1) * bytes},
                    {"shape", Json::array({answer.vectors[i].size()})}});
  }
  return dump({{"id", answer.id},
               {"created", answer.created},
               {"model", answer.model},
               {"data", std::move(data)},
               {"usage", usage(answer.tokens)}});
}

std::string classes_json(const EmbeddingAnswer& answer) {
  std::string data;
  for (size_t i = 0; i < answer.vectors.size(); ++i) {
    data += cat(data.empty() ? "" : ",", "{\"index\":", i, R"(,"label":null,"probs":)",
                numbers_json(answer.vectors[i]), R"(,"num_classes":1})");
  }
  return cat("{\"id\":", dump(answer.id), R"(,"object":"list","created":)", answer.created,
             ",\"model\":", dump(answer.model), ",\"data\":[", data,
             "],\"usage\":", dump(usage(answer.tokens)), "}");
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

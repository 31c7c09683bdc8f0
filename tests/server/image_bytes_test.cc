// How much of the worker's memory the answer with a large picture needs.

#include <gtest/gtest.h>

#include <random>

#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "server/image/picture_json.h"
#include "tests/server/image_worker.h"
#include "tests/support/held_bytes.h"

namespace rbee::testing {
namespace {

using AnswerBytes = HeldBytes;

// Bytes of the picture's file.
constexpr size_t kBytes = size_t{12} << 20;

TEST(PictureJson, PutsEachPictureInItsPlace) {
  const std::string place = R"({"bytes":[],"subtype":null})";
  const nlohmann::ordered_json frame = {{"text", place},
                                        {"a", server::picture_here()},
                                        {"b", {server::picture_here()}},
                                        {"sent", nlohmann::ordered_json::parse(place)}};
  const server::PictureText pictures[] = {{"foo"}, {"fo", "data:,"}};
  const nlohmann::json made = nlohmann::json::parse(server::dump(frame, pictures));
  EXPECT_EQ(made.at("text"), place);
  EXPECT_EQ(made.at("a"), "Zm9v");
  EXPECT_EQ(made.at("b").at(0), "data:,Zm8=");
  EXPECT_EQ(made.at("sent"), nlohmann::json::parse(place));
}

std::string last_request(std::string_view path, std::string_view body) {
  return request(body.empty() ? "GET" : "POST", path, body, "Connection: close\r\n");
}

// Asks for the picture and reads its answer, keeping nothing of it.
void read_answer(const ImageWorker& worker, const std::string& text) {
  RawClient client(worker.port());
  client.send(text);
  ASSERT_EQ(client.read_head().status, 200);
  ASSERT_TRUE(client.wait_closed());
}

// The file once, and its base64 once for each place in the answer. Nothing is held after the
// answer, even if the client stays connected.
TEST_F(AnswerBytes, AreTheFileAndItsBase64) {
  ImageWorker worker({.file = std::string(kBytes, 'x')});
  const int64_t before = held();
  const auto bytes_of = [&](const std::string& path, std::string_view body) {
    const std::string text = last_request(path, body);
    const double bytes = bytes_per(kBytes, [&] { read_answer(worker, text); });
    EXPECT_TRUE(wait_released(before, kBytes / 4)) << path << body;
    return bytes;
  };
  const std::pair<const char*, const char*> asked[] = {
      {"/v1/images/generations", R"({"prompt":"x"})"},
      {"/v1/images/generations", R"({"prompt":"x","response_format":"url"})"},
      {"/v1/images/generations", R"({"prompt":"x","stream":true})"},
      {"/sdapi/v1/txt2img", R"({"prompt":"x"})"}};
  for (const auto& [path, body] : asked) {
    EXPECT_LT(bytes_of(path, body), 1 + 4.0 / 3 + 0.25) << path << body;
  }
  const std::string stream = worker.new_stream(R"({"operation":"image_generation","prompt":"x"})");
  EXPECT_LT(bytes_of(stream, {}), 1 + 8.0 / 3 + 0.25);
  RawClient stays(worker.port());
  stays.send(request("POST", "/v1/images/generations", R"({"prompt":"x"})"));
  ASSERT_EQ(stays.read_head().status, 200);
  for (int i = 0; i < 600 && held() > before + int64_t{kBytes} / 4; ++i) {
    EXPECT_FALSE(stays.wait_closed(std::chrono::milliseconds(100)));
  }
  EXPECT_LT(held(), before + int64_t{kBytes} / 4);
}

// Noise: a PNG file of it has about as many bytes as the pixels.
std::string noise(int32_t width, int32_t height) {
  std::minstd_rand random(7);
  io::Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  out.values.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  for (uint8_t& value : out.values) value = static_cast<uint8_t>(random() >> 8);
  return io::encode_base64(io::encode_png(out));
}

// Bytes a pixel of the larger picture: 16 of the 512 MiB that a request may take, where a picture
// has at most 2^25 pixels.
TEST_F(AnswerBytes, OfPicturesThatAreEnlarged) {
  constexpr int32_t kSide = 1024;
  const ImageWorker worker;
  const auto body = [](int32_t side, const char* upscaler, int scale) {
    const nlohmann::json out = {
        {"image", noise(side, side)}, {"upscaler_1", upscaler}, {"upscaling_resize", scale}};
    return out.dump();
  };
  for (const std::string& sent : {body(kSide, "None", 1), body(kSide / 2, "Lanczos", 2),
                                  body(kSide / 2, "Nearest", 2), body(kSide, "Lanczos", 1)}) {
    const std::string text = last_request("/sdapi/v1/extra-single-image", sent);
    const auto work = [&] { read_answer(worker, text); };
    EXPECT_LT(bytes_per(double{kSide} * kSide, work), 16) << sent.substr(sent.size() - 60);
  }
}

}  // namespace
}  // namespace rbee::testing

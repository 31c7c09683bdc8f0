// The CPU picture worker's own program over a tiny random model.

#include <gmock/gmock.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RealImageWorker : public ::testing::Test {
 protected:
  RealImageWorker() {
    std::filesystem::copy(test::image_data("tokenizer"), model_.path() / "tokenizer",
                          std::filesystem::copy_options::recursive);
  }

  std::vector<std::string> arguments() const {
    return {"--model-path", model_.path().string(), "--port", "0", "--threads", "1"};
  }

 private:
  test::ImageFolder model_{"sd1"};
};

// The pictures: base64 and seed of each.
json generate(uint16_t port, const json& body) {
  const RawResponse response = ask(port, request("POST", "/v1/images/generations", body.dump()));
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body).at("data");
}

TEST_F(RealImageWorker, DrawsTheSamePictureForTheSameSeed) {
  Process worker(SD_WORKER, arguments());
  const json body = {
      {"prompt", "a (tiny:1.2) dragon"}, {"size", "64x72"}, {"steps", 2}, {"seed", 3}, {"n", 2}};
  const json first = generate(worker.port(), body);
  const std::string png = io::decode_base64(first[0].at("b64_json").get<std::string>(), "b64_json");
  const io::Pixels pixels = io::decode_image(png, "answer");
  EXPECT_EQ(pixels.width, 64);
  EXPECT_EQ(pixels.height, 72);
  EXPECT_THAT(io::png_text(png, "parameters").value_or(""), HasSubstr("Seed: 3"));
  EXPECT_TRUE(generate(worker.port(), body) == first);
  json second = body;
  second["seed"] = 4;
  second["n"] = 1;
  EXPECT_TRUE(generate(worker.port(), second)[0] == first[1]);
}

TEST_F(RealImageWorker, AJobStreamsToItsEndAndGoesOnFromItsPicture) {
  Process worker(SD_WORKER, arguments());
  const json picture =
      generate(worker.port(), {{"prompt", "x"}, {"size", "64x64"}, {"steps", 1}, {"seed", 1}});
  const json body = {{"operation", "image_transform"},
                     {"prompt", "x"},
                     {"steps", 4},
                     {"strength", 0.5},
                     {"input_image", picture[0].at("b64_json")}};
  const RawResponse job = ask(worker.port(), request("POST", "/v1/jobs", body.dump()));
  ASSERT_EQ(job.status, 200) << job.body;
  const std::string path = json::parse(job.body).at("sse_url").get<std::string>();
  const std::string stream = ask(worker.port(), request("GET", path)).body;
  EXPECT_THAT(stream, HasSubstr("event: started\n"));
  EXPECT_THAT(stream, HasSubstr("\"step\":2,\"total\":2"));
  EXPECT_THAT(stream, HasSubstr("event: complete\n"));
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n")) << stream.substr(stream.size() - 40);
}

TEST_F(RealImageWorker, BadPicturesAndNamesAreErrorsAndNothingIsLost) {
  Process worker(SD_WORKER, arguments());
  const auto refused = [&](json body) {
    body["prompt"] = "x";
    const RawResponse response = ask(worker.port(), request("POST", "/v1/jobs", body.dump()));
    EXPECT_EQ(response.status, 400) << response.body;
    return response.body;
  };
  EXPECT_THAT(
      refused({{"operation", "image_transform"}, {"input_image", io::encode_base64("no picture")}}),
      HasSubstr("input_image:"));
  EXPECT_THAT(refused({{"operation", "image_generation"}, {"sampler", "magic"}}),
              HasSubstr("sampler"));
  EXPECT_THAT(refused({{"operation", "image_generation"}, {"schedule", "magic"}}),
              HasSubstr("schedule"));
  generate(worker.port(), {{"prompt", "x"}, {"size", "64x64"}, {"steps", 1}});
}

TEST_F(RealImageWorker, ASignalEndsARunningJobWithAnEvent) {
  Process worker(SD_WORKER, arguments());
  const json body = {{"operation", "image_generation"}, {"prompt", "x"}, {"steps", 150}};
  const RawResponse job = ask(worker.port(), request("POST", "/v1/jobs", body.dump()));
  RawClient client(worker.port());
  client.send(request("GET", json::parse(job.body).at("sse_url").get<std::string>()));
  client.read_until("event: progress");
  worker.signal(SIGTERM);
  EXPECT_THAT(client.read_until("[DONE]\n\n"), HasSubstr("\"code\":\"CANCELLED\""));
  EXPECT_EQ(worker.wait(), 0);
}

// --dtype changes the picture, compared with f32.
TEST_F(RealImageWorker, DrawsInInt8) {
  std::vector<std::string> flags = arguments();
  flags.insert(flags.end(), {"--dtype", "int8"});
  Process floats(SD_WORKER, arguments()), int8(SD_WORKER, flags);
  const json body = {{"prompt", "x"}, {"size", "64x64"}, {"steps", 2}, {"seed", 1}};
  const json picture = generate(int8.port(), body);
  EXPECT_TRUE(generate(int8.port(), body) == picture);
  EXPECT_FALSE(generate(floats.port(), body) == picture);
}

TEST(RealImageWorkerStart, RefusesOtherArithmetic) {
  Process worker(SD_WORKER, {"--model-path", "/nowhere", "--port", "0", "--dtype", "int4"});
  EXPECT_NE(worker.wait(), 0);
  EXPECT_THAT(worker.text(), AllOf(HasSubstr("--dtype"), HasSubstr("int8")));
}

TEST(RealImageWorkerStart, WithoutAModelItSaysWhatIsMissing) {
  Process worker(SD_WORKER, {"--model-path", "/nowhere", "--port", "0"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace rbee::testing

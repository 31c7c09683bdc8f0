// Many clients that send large pictures at once: what the server holds, and what others notice.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "tests/server/image_worker.h"
#include "tests/support/held_bytes.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kRoom = 8 * kMiB;  // of all bodies
constexpr int kCrowd = 24;

// Noise, of about 1 MiB in base64.
std::string picture() {
  constexpr int32_t kSide = 500;
  std::minstd_rand random(7);
  io::Pixels out{.width = kSide, .height = kSide, .channels = 3, .values = {}};
  out.values.resize(size_t{kSide} * kSide * 3);
  for (uint8_t& value : out.values) value = static_cast<uint8_t>(random() >> 8);
  return io::encode_base64(io::encode_png(out));
}

std::string body_for(const std::string& path) {
  const json image = picture();
  if (path == "/v1/jobs") {
    return json{{"operation", "image_transform"}, {"prompt", "x"}, {"input_image", image}}.dump();
  }
  if (path == "/v1/images/edits") {
    const std::string url = "data:image/png;base64," + image.get<std::string>();
    return json{{"prompt", "x"}, {"images", {{{"image_url", url}}}}}.dump();
  }
  if (path == "/sdapi/v1/img2img") return json{{"prompt", "x"}, {"init_images", {image}}}.dump();
  return json{{"image", image}, {"upscaler_1", "Lanczos"}, {"upscaling_resize", 1.5}}.dump();
}

// Waits for the server's word before it sends the body, so that no refusal is lost.
class Upload {
 public:
  Upload(const ImageWorker& worker, const std::string& address, const std::string& path,
         const std::string& body)
      : client_(worker.port(), 0, address.c_str()) {
    client_.send(cat("POST ", path,
                     " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     "Expect: 100-continue\r\nConnection: close\r\nContent-Length: ",
                     body.size(), "\r\n\r\n"));
    head_ = client_.read_head();
    if (taken()) client_.send(body);
  }
  bool taken() const { return head_.status == 100; }
  RawResponse answer() { return taken() ? client_.read_response() : head_; }

 private:
  RawClient client_;
  RawResponse head_;
};

class CrowdOfUploads : public HeldBytes {
 protected:
  static server::ServerOptions options() {
    return {.max_body_bytes = 2 * kMiB, .max_held_bytes = kRoom};
  }
  using Uploads = std::vector<std::unique_ptr<Upload>>;
  // of: their own addresses begin with it
  static Uploads crowd(const ImageWorker& worker, const std::string& path, bool strangers) {
    const std::string body = body_for(path);
    Uploads out;
    for (int i = 0; i < kCrowd; ++i) {
      const std::string address = cat("127.0.1.", strangers ? i + 1 : 1);
      out.push_back(std::make_unique<Upload>(worker, address, path, body));
    }
    return out;
  }
  static int64_t taken(const Uploads& uploads) {
    return std::ranges::count_if(uploads, [](const auto& each) { return each->taken(); });
  }
  static std::map<int, int> answers(Uploads& uploads) {
    std::map<int, int> out;
    for (const auto& each : uploads) ++out[each->answer().status];
    return out;
  }
  // Until the engine has as many requests.
  static void wait_queued(const ImageWorker& worker, int64_t count) {
    const auto queued = [&] {
      const engine::ImageStats stats = worker.engine.stats();
      return int64_t{stats.running} + stats.waiting;
    };
    while (queued() < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

// While nothing is drawn. One client's crowd leaves half the room to others.
TEST_F(CrowdOfUploads, HoldsNoMoreThanItsRoom) {
  for (const char* path : {"/v1/jobs", "/v1/images/edits", "/sdapi/v1/img2img"}) {
    for (const bool strangers : {false, true}) {
      ImageWorker worker({.hold = true}, {}, options());
      const int64_t before = held();
      Uploads uploads = crowd(worker, path, strangers);
      const int64_t many = taken(uploads);
      EXPECT_GE(many, 3) << path;
      EXPECT_LE(many, strangers ? 7 : 4) << path;
      wait_queued(worker, many);
      EXPECT_TRUE(wait_released(before, kRoom)) << path << held() - before;
      EXPECT_EQ(worker.get("/health").status, 200) << path;
      if (!strangers) {
        uploads.push_back(
            std::make_unique<Upload>(worker, "127.0.0.1", "/v1/jobs", body_for("/v1/jobs")));
        EXPECT_TRUE(uploads.back()->taken()) << path;
      }
      worker.engine.release();
      EXPECT_EQ(worker.post("/sdapi/v1/txt2img", R"({"prompt":"x"})").status, 200) << path;
      const int all = static_cast<int>(uploads.size()), good = static_cast<int>(taken(uploads));
      EXPECT_EQ(answers(uploads), (std::map<int, int>{{200, good}, {429, all - good}})) << path;
      uploads.clear();
      EXPECT_TRUE(wait_released(before, kMiB)) << path << held() - before;
    }
  }
}

// Bodies that do not say their length take room as they come.
TEST_F(CrowdOfUploads, InChunksGetsNoMore) {
  ImageWorker worker({.hold = true}, {}, options());
  const Uploads uploads = crowd(worker, "/sdapi/v1/img2img", true);
  const auto send = [&](size_t bytes) {
    RawClient client(worker.port());
    client.send(
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = cat("1000\r\n", std::string(0x1000, ' '), "\r\n");
    for (size_t sent = 0; sent < bytes && client.send(chunk); sent += 0x1000) {
    }
    client.send("0\r\n\r\n");
    return client.read_response();
  };
  EXPECT_EQ(send(size_t{60} << 10).status, 400);  // small; blanks are no JSON
  const RawResponse refused = send(kMiB);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  worker.engine.release();
}

// Eight wait and two are enlarged. Meanwhile others are drawn for.
TEST_F(CrowdOfUploads, IsEnlargedFewAtATime) {
  const char* path = "/sdapi/v1/extra-single-image";
  ImageWorker worker({}, {}, options());
  const int64_t before = held();
  const double most = bytes_per(1, [&] {
    Uploads uploads = crowd(worker, path, true);
    EXPECT_EQ(worker.get("/health").status, 200);
    EXPECT_EQ(worker.post("/sdapi/v1/txt2img", R"({"prompt":"x"})").status, 200);
    std::map<int, int> found = answers(uploads);
    EXPECT_GE(found[200], 1);
    EXPECT_EQ(found[200] + found[429], kCrowd);
  });
  // The bodies, and their text once more as values; two being enlarged, of 16 bytes for each of
  // 750 x 750 pixels.
  EXPECT_LT(most, 2 * double{kRoom} + 2 * 16 * 750 * 750 + kMiB);
  EXPECT_TRUE(wait_released(before, kMiB)) << held() - before;
}

}  // namespace
}  // namespace rbee::testing

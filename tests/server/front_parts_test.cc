// The front's decisions: which worker gets a request, how long to pause, how to join metrics.

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <nlohmann/json.hpp>

#include "rbee/core/cancel.h"
#include "rbee/core/cat.h"
#include "rbee/core/system/process.h"
#include "server/front/config.h"
#include "server/front/event.h"
#include "server/front/finder.h"
#include "server/front/keep_alive.h"
#include "server/front/metrics.h"
#include "server/front/openapi.h"
#include "server/front/paths.h"
#include "server/front/room.h"
#include "server/front/routing.h"

namespace rbee::testing {
namespace {

using server::FrontConfig;
using server::ModelKind;
using server::Request;
using std::chrono::milliseconds;

Request asked(const char* path, std::string body = {}, const char* type = "application/json") {
  Request request;
  request.method = "POST";
  request.path = path;
  request.headers = {{"content-type", type}};
  request.body = std::move(body);
  return request;
}

TEST(Routing, PathsTellTheKind) {
  const auto kind = [](const char* path) { return server::wanted_by(asked(path))->kind; };
  EXPECT_EQ(kind("/v1/chat/completions"), ModelKind::chat);
  EXPECT_EQ(kind("/v1/messages/count_tokens"), ModelKind::chat);
  EXPECT_EQ(kind("/sdapi/v1/txt2img"), ModelKind::image);
  EXPECT_EQ(kind("/v1/images/edits"), ModelKind::image);
  EXPECT_EQ(kind("/v1/embeddings"), ModelKind::embedding);
  EXPECT_EQ(kind("/embeddings"), ModelKind::embedding);
  for (const char* path :
       {"/embedding", "/v2/embed", "/reranking", "/pooling", "/classify", "/embed"}) {
    EXPECT_EQ(kind(path), ModelKind::embedding) << path;
  }
  for (const char* path : {"/responses", "/v2/chat", "/generate", "/generate_stream"}) {
    EXPECT_EQ(kind(path), ModelKind::chat) << path;
  }
  EXPECT_EQ(kind("/v2/rerank"), ModelKind::embedding);
  EXPECT_EQ(kind("/v1/reranking"), ModelKind::embedding);
  EXPECT_EQ(kind("/chat/completions"), ModelKind::chat);
  EXPECT_EQ(kind("/v1/inference"), std::nullopt);
  for (const char* path : {"/info", "/v1/shutdown", "/v2/other", "/v1/jobsX", "*"}) {
    EXPECT_FALSE(server::wanted_by(asked(path))) << path;
  }
}

TEST(Routing, BodiesTellTheModel) {
  const auto model = [](const Request& request) { return server::wanted_by(request)->model; };
  EXPECT_EQ(model(asked("/v1/completions", R"({"model":"m","prompt":"x"})")), "m");
  EXPECT_EQ(model(asked("/v1/completions", R"({"model":7})")), "");
  EXPECT_EQ(model(asked("/v1/completions", "not json")), "");
  EXPECT_EQ(
      model(asked("/sdapi/v1/txt2img", R"({"override_settings":{"sd_model_checkpoint":"sd"}})")),
      "sd");
  const char* const inner =
      R"({"prompt":[{"model":"x"},"y"],"options":{"model":"z"},"n":[1,true]})";
  EXPECT_EQ(model(asked("/v1/completions", inner)), "");
  EXPECT_EQ(model(asked("/v1/completions", R"({"model":"m","messages":[{"a":{}}]} x)")), "");
  EXPECT_EQ(model(asked("/v1/completions", R"({"x":{"y":["z"]},"model":"m"})")), "m");
  EXPECT_EQ(model(asked("/v1/completions", R"(["model","m"])")), "");
  const std::string form =
      "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsd\r\n--b--\r\n";
  EXPECT_EQ(model(asked("/v1/images/edits", form, "multipart/form-data; boundary=b")), "sd");
  EXPECT_EQ(model(asked("/v1/images/edits", "broken", "multipart/form-data; boundary=b")), "");
}

// A body may have 64 MiB, and all streams wait while the front reads one.
TEST(Routing, BodiesAreNotKeptToBeRead) {
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const Request deep = asked("/v1/completions", R"({"model":"m","a":)" + std::string(4 << 20, '['));
  const auto before = peak();
  EXPECT_EQ(server::wanted_by(deep)->model, "");
  EXPECT_LT(peak() - before, 32 * 1024) << "KiB";
}

// A model on demand is not loaded for these: its worker would refuse them.
TEST(Routing, WhatNoWorkerTakes) {
  const auto invalid = [](const char* path, const std::string& body) {
    return server::wanted_by(asked(path, body))->invalid;
  };
  for (const char* body : {"x", R"({"model":"m",)", R"({"temperature":1e999})", "[1"}) {
    EXPECT_EQ(invalid("/v1/chat/completions", body), "body") << body;
    EXPECT_EQ(invalid("/api/generate", body), "body") << body;
  }
  EXPECT_EQ(invalid("/v1/chat/completions", "{}"), "");  // of the first model
  for (const char* body : {"{}", R"({"keep_alive":0})", R"({"model":5})", R"({"model":""})"}) {
    EXPECT_EQ(invalid("/api/generate", body), "model") << body;
    EXPECT_EQ(invalid("/api/show", body), "model") << body;
  }
  EXPECT_EQ(invalid("/api/generate", R"({"model":"m"})"), "");
  EXPECT_EQ(invalid("/api/show", R"({"name":"m"})"), "");
}

TEST(Routing, PagesAreOfTheModelThatTheirAddressNames) {
  Request page = asked("/");
  page.method = "GET";
  EXPECT_EQ(server::wanted_by(page)->model, "");
  page.query = "x=1&model=sd%2Fone";
  EXPECT_EQ(server::wanted_by(page)->model, "sd/one");
  page.query = "model";
  EXPECT_EQ(server::wanted_by(page)->model, "");
}

TEST(Routing, Jobs) {
  const auto made = server::wanted_by(asked("/v1/jobs", R"({"operation":"image_generation"})"));
  EXPECT_EQ(made->operation, server::Operation::create_job);
  EXPECT_EQ(made->kind, ModelKind::image);
  EXPECT_EQ(server::wanted_by(asked("/v1/jobs/j-1/stream"))->job, "j-1");
  EXPECT_EQ(server::wanted_by(asked("/v1/inference/j-2"))->job, "j-2");
  EXPECT_EQ(server::wanted_by(asked("/v1/cancel", R"({"job_id":"j-3"})"))->job, "j-3");
}

// What a page of another site may not send to the front, without keys.
TEST(Routing, RoutesTellWhetherTheyChangeAnything) {
  EXPECT_TRUE(server::worker_changes("POST", "/v1/chat/completions"));
  EXPECT_TRUE(server::worker_changes("DELETE", "/v1/jobs/j-1"));
  EXPECT_TRUE(server::worker_changes("POST", "/no/such/path"));
  EXPECT_FALSE(server::worker_changes("GET", "/props"));
  // It takes the job's events from whoever waits for them.
  EXPECT_TRUE(server::worker_changes("GET", "/v1/jobs/j-1/stream"));
  EXPECT_FALSE(server::worker_changes("HEAD", "/v1/jobs/j-1/stream"));
}

TEST(Events, TellWhetherTheAnswerHasBegun) {
  using server::EventKind;
  const auto kind_of_event = [](std::string_view event) {
    return server::kind_of_event(event, server::StreamForm::events);
  };
  EXPECT_EQ(kind_of_event(": keep-alive\n\n"), EventKind::comment);
  for (const char* payload :
       {R"({"type":"started","job_id":"job-1"})", R"({"type":"message_start","message":{}})",
        R"({"type":"ping"})", R"({"type":"response.created","response":{"error":null}})",
        R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})",
        R"({"choices":[{"index":0,"delta":{"role":"assistant"}}]})"}) {
    EXPECT_EQ(kind_of_event(cat("event: e\ndata: ", payload, "\n\n")), EventKind::opening)
        << payload;
  }
  for (const char* payload :
       {R"({"error":{"message":"m","type":"server_error","code":"STOPPING"}})",
        R"({"error":{"code":"WORKER_UNHEALTHY","message":"m"}})",
        R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})",
        R"({"type":"response.failed","response":{"error":{"code":"STOPPING"}}})"}) {
    EXPECT_EQ(kind_of_event(cat("data: ", payload, "\n\n")), EventKind::unserved) << payload;
  }
  for (const char* payload :
       {"[DONE]", "7", R"({"choices":[{"delta":{"content":"Hi"}}]})", R"({"choices":[]})",
        R"({"choices":[{"delta":{"role":"assistant","content":"Hi"}}]})",
        R"({"choices":[{"delta":{"role":"assistant","tool_calls":[]}}]})", R"({"token":"a"})",
        R"({"error":{"code":"INFERENCE_FAILED","message":"m"}})"}) {
    EXPECT_EQ(kind_of_event(cat("data: ", payload, "\n\n")), EventKind::substance) << payload;
  }
}

TEST(Events, OfLinesTellWhetherTheAnswerHasBegun) {
  using server::EventKind;
  const auto kind = [](std::string_view line) {
    return server::kind_of_event(line, server::StreamForm::lines);
  };
  EXPECT_EQ(kind("{\"response\":\"a\",\"done\":false}\n"), EventKind::substance);
  EXPECT_EQ(kind("{\"error\":\"the device is lost\",\"status\":503}\n"), EventKind::unserved);
  EXPECT_EQ(kind("{\"error\":\"the model gave no number\",\"status\":500}\n"),
            EventKind::substance);
}

TEST(Events, TheLastOneOfABrokenStreamHasItsForm) {
  server::Request request;
  request.errors = server::ErrorForm::ollama;
  EXPECT_EQ(server::error_event(request, {}, server::StreamForm::lines, {"WORKER_LOST", "lost"}),
            "{\"error\":\"lost\"}\n");
}

// The longest time: the pause before the first of three probes, and all three.
TEST(Health, AWorkerThatHangsIsFoundWithinFifteenSeconds) {
  const server::FrontConfig config;
  EXPECT_LT(3 * (config.health_interval + config.health_timeout), std::chrono::seconds(15));
}

TEST(BackOff, DoublesUpToTheMost) {
  FrontConfig config;
  config.back_off = milliseconds(100);
  config.max_back_off = milliseconds(1000);
  EXPECT_EQ(back_off_of(config, 0), milliseconds(100));
  EXPECT_EQ(back_off_of(config, 3), milliseconds(800));
  EXPECT_EQ(back_off_of(config, 4), milliseconds(1000));
  EXPECT_EQ(back_off_of(config, 1000), milliseconds(1000));
}

TEST(KeepAlive, IsReadAsOllamaReadsIt) {
  using server::kForEver;
  using server::parse_keep_alive;
  const auto read = [](std::string_view text) { return parse_keep_alive(text); };
  EXPECT_EQ(read("5m"), milliseconds(300'000));
  EXPECT_EQ(read("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(read("1.5s"), milliseconds(1500));
  EXPECT_EQ(read("300ms"), milliseconds(300));
  EXPECT_EQ(read("0"), milliseconds(0));
  EXPECT_EQ(read("20"), milliseconds(20'000));
  EXPECT_EQ(read("-0s"), milliseconds(0));
  EXPECT_EQ(read("-1"), kForEver);
  EXPECT_EQ(read("-1m"), kForEver);
  EXPECT_EQ(read("1e99"), std::nullopt);
  EXPECT_EQ(read("9999999999h"), kForEver);
  for (const char* text : {"", "-", "m", "5", "5x", "5m5", "1..2s", " 5m", "five"}) {
    EXPECT_EQ(read(text).has_value(), std::string_view(text) == "5") << text;
  }
  // Only 0 unloads at once; Go counts nanoseconds.
  for (const char* text : {"1ns", "10us", "10\u00b5s", "10\u03bcs", "+.001ms", "0.4ms", "1e-6"}) {
    EXPECT_EQ(read(text),
              std::string_view(text) == "1e-6" ? std::nullopt : std::optional(milliseconds(1)))
        << text;
  }
  EXPECT_EQ(read("1500\u00b5s"), milliseconds(2));
  EXPECT_EQ(read("1h2m3.5s4ms"), milliseconds(3'723'504));
  EXPECT_EQ(read("0.1ns"), milliseconds(0));
  EXPECT_EQ(read("-0.1ns"), milliseconds(0));
  EXPECT_EQ(read("-10us"), kForEver);
  EXPECT_EQ(read("-1h30m"), kForEver);
  for (const char* text : {"10\u00b5", "\u00b5s", "1 s", ".s", "1s-1s", "1M", "--1s", "1d"}) {
    EXPECT_EQ(read(text), std::nullopt) << text;
  }
  EXPECT_EQ(server::keep_alive_of(1e-5), milliseconds(1));
  EXPECT_EQ(server::keep_alive_of(-1), kForEver);
  EXPECT_EQ(server::keep_alive_of(2.5), milliseconds(2500));
}

TEST(KeepAlive, IsReadFromOllamasRoutesAlone) {
  const auto wanted = [](const char* path, const char* value) {
    return server::wanted_by(
               asked(path, cat(R"({"options":{"keep_alive":7},"keep_alive":)", value, "}")))
        ->keep_alive;
  };
  EXPECT_EQ(wanted("/api/chat", "\"10m\""), milliseconds(600'000));
  EXPECT_EQ(wanted("/api/generate", "0"), milliseconds(0));
  EXPECT_EQ(wanted("/api/embed", "-1"), server::kForEver);
  EXPECT_EQ(wanted("/api/chat", "\"soon\""), std::nullopt);
  EXPECT_EQ(wanted("/v1/chat/completions", "0"), std::nullopt);
}

// The other route's field says nothing.
TEST(KeepAlive, UnloadsWithoutATextOfItsOwnRoute) {
  const auto unloads = [](const char* path, const char* field) {
    const std::string body = cat(R"({"model":"m","keep_alive":0)", field, "}");
    return server::wanted_by(asked(path, body))->only_unloads;
  };
  const char* const prompt = R"(,"prompt":"Hi")";
  const char* const messages = R"(,"messages":[{"role":"user","content":"Hi"}])";
  EXPECT_TRUE(unloads("/api/chat", prompt));
  EXPECT_TRUE(unloads("/api/generate", messages));
  EXPECT_TRUE(unloads("/api/chat", R"(,"messages":[])"));
  EXPECT_TRUE(unloads("/api/generate", R"(,"prompt":"")"));
  EXPECT_FALSE(unloads("/api/generate", prompt));
  EXPECT_FALSE(unloads("/api/chat", messages));
  EXPECT_FALSE(unloads("/api/embed", ""));
}

// Members by number, of 10 bytes each unless they say more.
server::Resident idle(size_t member, int used) {
  return {.member = member,
          .need = 10,
          .taken = 10,
          .on_demand = true,
          .may_leave = true,
          .used = std::chrono::steady_clock::time_point(std::chrono::seconds(used))};
}

TEST(Room, WhatIsFreeIsMeasuredAndTheRestOfANeedIsKept) {
  server::Resident one = idle(0, 1);
  const auto fits = [&](int64_t need, int64_t free, int64_t most = 0) {
    return server::plan_room({.need = need, .free = free, .most = most, .residents = {&one, 1}})
        .fits;
  };
  EXPECT_TRUE(fits(5, 5));
  EXPECT_FALSE(fits(6, 5));
  one.taken = 3;  // it loads, or its files are mapped
  EXPECT_FALSE(fits(5, 11));
  EXPECT_TRUE(fits(5, 12));
  EXPECT_TRUE(fits(5, 100, 15));
  EXPECT_FALSE(fits(6, 100, 15));
}

TEST(Room, TheLeastRecentlyUsedLeaveIdleOnesFirst) {
  std::vector<server::Resident> all{idle(0, 3), idle(1, 1), idle(2, 2), idle(3, 0)};
  all[3].busy = true;
  const auto leave = [&](int64_t need) {
    return server::plan_room({.need = need, .free = 5, .residents = all}).leave;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(leave(15), ElementsAre(1));
  EXPECT_THAT(leave(16), ElementsAre(1, 2));
  EXPECT_THAT(leave(45), ElementsAre(1, 2, 0, 3));
  all[1].going = true;
  EXPECT_THAT(leave(15), ElementsAre());
  EXPECT_THAT(leave(16), ElementsAre(2));
  EXPECT_THAT(leave(45), ElementsAre(2, 0, 3));
  all[2].may_leave = false;  // its own requests came first
  EXPECT_THAT(leave(16), ElementsAre(0));
}

TEST(Room, NoneLeavesInVain) {
  std::vector<server::Resident> all{idle(0, 1), idle(1, 2), idle(2, 3)};
  all[1].may_leave = false;  // its own requests came first
  const auto leave = [&](int64_t need) {
    const server::RoomPlan plan = server::plan_room({.need = need, .free = 5, .residents = all});
    EXPECT_GE(plan.most, need);
    return plan.leave;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(leave(25), ElementsAre(0, 2));
  EXPECT_THAT(leave(26), ElementsAre());
  // Where a large one has to leave, small ones may stay.
  all[1] = idle(1, 2);
  all[1].need = all[1].taken = 100;
  EXPECT_THAT(leave(105), ElementsAre(1));
  EXPECT_THAT(leave(106), ElementsAre(0, 1));
}

TEST(Room, AModelLargerThanAllMemoryIsRefused) {
  std::vector<server::Resident> all{idle(0, 1), idle(1, 2)};
  all[1].on_demand = all[1].may_leave = false;
  const server::RoomPlan plan = server::plan_room({.need = 16, .free = 5, .residents = all});
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.most, 15);
  EXPECT_TRUE(plan.leave.empty());
  EXPECT_EQ(server::plan_room({.need = 99, .free = 100, .most = 50, .residents = all}).most, 40);
}

TEST(Paths, AreCutToTheirLastName) {
  using server::without_folders;
  EXPECT_EQ(without_folders("open: /home/me/a.gguf: no such file"), "open: a.gguf: no such file");
  EXPECT_EQ(without_folders("/a/b"), "b");
  EXPECT_EQ(without_folders("the cache '/home/me/hub/', and (/x/y)"), "the cache 'hub/', and (y)");
  EXPECT_EQ(without_folders("hf:org/repo:Q4 of 3/4, a/b"), "hf:org/repo:Q4 of 3/4, a/b");
  EXPECT_EQ(without_folders("see http://h/p or / alone"), "see http://h/p or / alone");
  EXPECT_EQ(without_folders("copy /a/b to /c/d"), "copy b to d");
  EXPECT_EQ(without_folders("/a/b of hf:org/repo, at https://h/p"),
            "b of hf:org/repo, at https://h/p");
}

TEST(Paths, WithBlanksAndQuotesAreCutWhole) {
  using server::without_folders;
  EXPECT_EQ(without_folders("open: /home/my user/the models/a b.gguf: no such file"),
            "open: a b.gguf: no such file");
  EXPECT_EQ(without_folders("'/home/me and you/a.gguf' is not there"), "'a.gguf' is not there");
  EXPECT_EQ(without_folders("open '/home/o'brien/x y/a.gguf', (/srv/it's/b)"),
            "open 'a.gguf', (b)");
  EXPECT_EQ(without_folders("open \"/srv/a's/b c\": bad"), "open \"b c\": bad");
  EXPECT_EQ(without_folders("at /home/m\u00e9/my models/a"), "at a");
  EXPECT_EQ(without_folders("error:/home/me/a [/x/y] <file:///home/me/b>"), "error:a [y] <file:b>");
}

TEST(Paths, OfOtherSystemsAreCut) {
  using server::without_folders;
  EXPECT_EQ(without_folders("open //host/share/my dir/a: no"), "open a: no");
  EXPECT_EQ(without_folders(R"(open \\host\share\my dir\a: no)"), "open a: no");
  EXPECT_EQ(without_folders(R"(open C:\Users\my name\a.gguf: no)"), "open a.gguf: no");
  EXPECT_EQ(without_folders(R"(no \d in "\n")"), R"(no \d in "\n")");
}

// A client whose names are slow to find leaves threads to others.
TEST(Names, AClientDoesNotTakeAllThreads) {
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  server::Finder finder(
      io,
      [open](const std::string& name) -> std::optional<server::ServedModel> {
        if (name.starts_with("slow")) open.wait();
        return server::ServedModel{.name = name};
      },
      nullptr);
  std::vector<std::string> found;
  const auto note = [&](const server::FoundModel& one) { found.push_back(one.model->name); };
  int taken = 0;
  for (int i = 0; i < 40; ++i) taken += finder.ask(cat("slow", i), "one", note) ? 1 : 0;
  EXPECT_LT(taken, 40);
  EXPECT_GE(taken, 8);
  EXPECT_TRUE(finder.ask("quick", "two", note));
  const auto wait_for = [&](size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (found.size() < count && std::chrono::steady_clock::now() < end) {
      io.run_for(milliseconds(10));
    }
  };
  wait_for(1);
  EXPECT_THAT(found, ::testing::ElementsAre("quick"));
  gate.set_value();
  wait_for(static_cast<size_t>(taken) + 1);
  EXPECT_EQ(found.size(), static_cast<size_t>(taken) + 1);
}

// A look-up ends with the last client that waits for it.
TEST(Names, WhoLeavesTakesNoShare) {
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  std::atomic<int> running = 0, ended = 0;
  server::Finder finder(
      io,
      [&](const std::string& name) -> std::optional<server::ServedModel> {
        ++running;
        while (name.starts_with("slow") && !is_cancelled()) std::this_thread::yield();
        ++ended;
        return server::ServedModel{.name = name};
      },
      nullptr);
  std::vector<std::string> found;
  const auto note = [&](const server::FoundModel& one) { found.push_back(one.model->name); };
  const auto wait_for = [&](const std::function<bool()>& is_so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_so() && std::chrono::steady_clock::now() < end) io.run_for(milliseconds(10));
    return is_so();
  };
  std::vector<uint64_t> waiters;
  for (int i = 0; i < 16; ++i) {
    waiters.push_back(finder.ask(cat("slow", i), "one", note).value());
  }
  EXPECT_FALSE(finder.ask("quick", "one", note));
  const uint64_t other = finder.ask("slow0", "two", note).value();  // shares its look-up
  ASSERT_TRUE(wait_for([&] { return running == 2; }));
  while (!waiters.empty()) {  // those in the queue first
    finder.leave(waiters.back());
    waiters.pop_back();
  }
  ASSERT_TRUE(wait_for([&] { return ended == 1; }));  // of the two that ran, for "two" goes on
  EXPECT_EQ(running, 2);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(finder.ask(cat("quick", i), "one", note)) << i;
  EXPECT_TRUE(wait_for([&] { return found.size() == 16; }));
  EXPECT_EQ(std::ranges::count(found, "slow0"), 0);
  finder.leave(other);
  EXPECT_TRUE(wait_for([&] { return ended == 18; }));
  // A new one does not get the answer of a look-up that was told to end.
  EXPECT_TRUE(finder.ask("quick", "two", note));
  EXPECT_TRUE(wait_for([&] { return found.size() == 17; }));
}

TEST(Room, MemoryOfAProcessCountsWhatItWrote) {
  const int64_t before = process_memory(getpid());
  EXPECT_GT(before, 0);
  std::vector<char> written(size_t{64} << 20, 'x');
  EXPECT_GE(process_memory(getpid()), before + (int64_t{60} << 20));
  EXPECT_EQ(written.back(), 'x');
  EXPECT_EQ(process_memory(-1), 0);
}

TEST(Metrics, FamiliesStandTogetherWithTheirWorkers) {
  const std::string one = "# HELP a What.\n# TYPE a counter\na 1\n# TYPE b gauge\nb{x=\"y\"} 2\n";
  const std::string two = "# TYPE b gauge\nb{} 3\n# HELP a What.\n# TYPE a counter\na 4\n";
  EXPECT_EQ(server::merge_metrics({{"w0", one}, {"w1", two}}),
            "# HELP a What.\n# TYPE a counter\na{worker=\"w0\"} 1\na{worker=\"w1\"} 4\n"
            "# TYPE b gauge\nb{worker=\"w0\",x=\"y\"} 2\nb{worker=\"w1\"} 3\n");
}

constexpr const char* kChatDocument = R"({"openapi":"3.1.0","paths":{
  "/v1/shutdown":{"post":{"operationId":"stop","responses":{}}},
  "/v1/models":{"get":{"operationId":"models","responses":{"200":{"description":"the worker's"}}}},
  "/v1/chat/completions":{"post":{"operationId":"complete",
    "requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Ask"}}}},
    "responses":{"200":{"description":"ok","headers":{"id":{"$ref":"#/components/headers/Id"}}},
                 "404":{"$ref":"#/components/responses/Error"}}}},
  "/v1/jobs":{"post":{"operationId":"job",
    "requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Ask"}}}},
    "responses":{"200":{"description":"ok"}}}}},
  "components":{"responses":{"Error":{"description":"e","content":{
      "application/json":{"schema":{"type":"string"}},"text/plain":{"schema":{}}}}},
    "headers":{"Id":{"required":true,"schema":{"type":"string"}}},
    "schemas":{"Ask":{"type":"object","properties":{"a":{"$ref":"#/components/schemas/A"}}},
               "A":{"type":"integer"}}}})";
constexpr const char* kImageDocument = R"({"openapi":"3.1.0","paths":{
  "/v1/images/generations":{"post":{"operationId":"draw","responses":{"200":{"description":"ok"}}}},
  "/v1/jobs":{"post":{"operationId":"job",
    "requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Ask"}}}},
    "responses":{"200":{"description":"ok"},"413":{"description":"large"}}}},
  "/v1/jobs/{job_id}":{"get":{"operationId":"read","responses":{"200":{"description":"ok"}}}}},
  "components":{"schemas":{"Ask":{"type":"string"}}}})";

TEST(FrontOpenApi, HoldsWhatIsRouted) {
  using nlohmann::json;
  const json both = json::parse(server::front_openapi(
      {{ModelKind::chat, kChatDocument}, {ModelKind::image, kImageDocument}}, "1.2"));
  EXPECT_EQ(both.at("info").at("version"), "1.2");
  std::vector<std::string> paths;
  for (const auto& [path, methods] : both.at("paths").items()) paths.push_back(path);
  EXPECT_THAT(paths, ::testing::UnorderedElementsAre(
                         "/openapi.json", "/health", "/health/live", "/health/ready", "/workers",
                         "/kv-events", "/v1/health", "/ready", "/v1/ready", "/version", "/models",
                         "/models/{id}", "/v1/models", "/v1/models/{id}", "/metrics", "/api/pull",
                         "/api/delete", "/api/create", "/api/copy", "/api/blobs/{digest}",
                         "/v1/chat/completions", "/v1/images/generations", "/v1/jobs",
                         "/v1/jobs/{job_id}"));
  // The front's own description, whatever a worker says of this path.
  EXPECT_EQ(both.at("paths").at("/v1/models").at("get").at("operationId"), "front.models");
  // Two kinds each have another schema Ask.
  EXPECT_EQ(both.at("components").at("schemas"), json::parse(R"({
      "chat.Ask":{"type":"object","properties":{"a":{"$ref":"#/components/schemas/chat.A"}}},
      "chat.A":{"type":"integer"},"image.Ask":{"type":"string"}})"));
  const json& complete = both.at("paths").at("/v1/chat/completions").at("post");
  EXPECT_EQ(complete.at("responses").at("200").at("headers").at("id").at("$ref"),
            "#/components/headers/chat.Id");
  EXPECT_TRUE(both.at("components").at("headers").contains("chat.Id"));
  // The front's own refusals have the headers too.
  EXPECT_EQ(complete.at("responses").at("502").at("headers").at("id").at("$ref"),
            "#/components/headers/chat.Id");
  const json job = both.at("paths").at("/v1/jobs").at("post");
  EXPECT_EQ(job.at("operationId"), "chat.job");
  EXPECT_EQ(job.at("requestBody").at("content").at("application/json").at("schema"),
            json::parse(
                R"({"anyOf":[{"$ref":"#/components/schemas/chat.Ask"},
                   {"$ref":"#/components/schemas/image.Ask"}]})"));
  EXPECT_EQ(job.at("responses").at("413").at("description"), "large");
  for (const char* status : {"404", "429", "502", "503"}) {
    EXPECT_EQ(job.at("responses").at(status).at("$ref"), "#/components/responses/Error");
  }
  // The worker's answer with this status, or the front's.
  const json missing =
      both.at("paths").at("/v1/chat/completions").at("post").at("responses").at("404");
  EXPECT_EQ(missing.at("content").at("application/json").at("schema").at("anyOf").at(0),
            json({{"type", "string"}}));
  EXPECT_TRUE(missing.at("content").contains("text/plain"));
}

TEST(FrontOpenApi, WithoutWorkersHasItsOwnPaths) {
  using nlohmann::json;
  for (const char* text : {"", "[]", "{}", "not JSON", R"({"paths":[]})"}) {
    const json alone = json::parse(server::front_openapi({{ModelKind::chat, text}}, "1"));
    EXPECT_EQ(alone.at("paths").size(), 20u) << text;
    EXPECT_TRUE(alone.at("components").at("schemas").empty());
  }
}

}  // namespace
}  // namespace rbee::testing

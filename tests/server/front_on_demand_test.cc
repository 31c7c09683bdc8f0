// Models of `rbee serve` that are loaded at their first request and unloaded when they are idle.

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kPatience{60};

json on_demand(const std::string& name, const std::string& script, json keep_alive = "5m") {
  json out = fake(name, script);
  out["keep_alive"] = std::move(keep_alive);
  out["memory_bytes"] = 600;
  return out;
}

const json kRoomForOne = {{"max_memory_bytes", 1000}, {"health_interval_ms", 20}};

json worker_of(Front& front, size_t index) {
  return json::parse(front.get("/workers").body).at("models").at(index).at("workers").at(0);
}

json wait_for_state(Front& front, size_t index, const std::string& state) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    json worker = worker_of(front, index);
    if (worker.at("state") == state) return worker;
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error(worker.dump());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string said(const RawResponse& response) {
  const json body = json::parse(response.body);
  if (response.status != 200) return response.body;
  return body.at("choices").at(0).at("message").at("content");
}

std::vector<std::string> names_in(const RawResponse& list) {
  std::vector<std::string> out;
  const json body = json::parse(list.body);
  for (const json& model : body.at("models")) out.push_back(model.at("name"));
  return out;
}

TEST(OnDemand, AModelIsLoadedAtItsFirstRequest) {
  Front front(json::array({on_demand("a", "echo"), on_demand("b", "echo")}));
  EXPECT_EQ(front.get("/health/ready").status, 200);
  EXPECT_EQ(worker_of(front, 0).at("state"), "unloaded");
  EXPECT_FALSE(worker_of(front, 0).contains("pid"));
  EXPECT_EQ(json::parse(front.get("/v1/models").body).at("data").size(), 2);
  const json tag = json::parse(front.get("/api/tags").body).at("models").at(1);
  EXPECT_EQ(tag.at("name"), "b");
  EXPECT_EQ(tag.at("capabilities"), json::array({"completion"}));
  EXPECT_EQ(tag.at("digest").get<std::string>().size(), 64);
  EXPECT_THAT(names_in(front.get("/api/ps")), ::testing::IsEmpty());

  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("b", "parrot"))), "parrot");
  EXPECT_EQ(worker_of(front, 0).at("state"), "unloaded");
  EXPECT_EQ(worker_of(front, 1).at("state"), "ready");
  EXPECT_THAT(names_in(front.get("/api/tags")), ::testing::ElementsAre("a", "b"));
  const json loaded = json::parse(front.get("/api/ps").body).at("models");
  ASSERT_EQ(loaded.size(), 1);
  EXPECT_EQ(loaded[0].at("name"), "b");
  EXPECT_THAT(loaded[0].at("expires_at").get<std::string>(), Not(HasSubstr("9999")));
}

// Anybody may ask for "/", also a client of Ollama that looks whether its server is there.
TEST(OnDemand, APageLoadsNothing) {
  json pictures = on_demand("b", "echo");
  pictures["kind"] = "image";
  Front front(json::array({on_demand("a", "echo"), pictures}), json::object(), {},
              {"LLORCH_API_TOKEN=secret"});
  const std::string browser = "Accept: text/html\r\n";
  const RawResponse page = ask(front.port(), request("GET", "/?model=a", {}, browser));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("script-src 'self'"));
  const size_t at = page.body.find("/page/");
  ASSERT_NE(at, std::string::npos);
  const std::string file = page.body.substr(at, page.body.find('"', at) - at);
  EXPECT_EQ(ask(front.port(), request("GET", file)).status, 200) << file;
  EXPECT_NE(ask(front.port(), request("GET", "/?model=b", {}, browser)).body, page.body);
  EXPECT_EQ(json::parse(ask(front.port(), request("GET", "/")).body).at("name"), "rbee serve");
  RawClient head(front.port());
  head.send(request("HEAD", "/"));
  EXPECT_EQ(head.read_response(false).status, 200);
  const std::string key = "Authorization: Bearer secret\r\n";
  const json all = json::parse(ask(front.port(), request("GET", "/workers", {}, key)).body);
  for (const json& model : all.at("models")) {
    EXPECT_EQ(model.at("workers").at(0).at("state"), "unloaded");
  }
}

// Those of vectors have none. A chat model's goes first.
TEST(OnDemand, ABrowserGetsThePageOfTheFirstModelThatHasOne) {
  json vectors = on_demand("v", "echo"), pictures = on_demand("sd/One", "echo");
  vectors["kind"] = "embedding";
  pictures["kind"] = "image";
  json chats = on_demand("a", "echo");
  chats["flags"] = {"--lora", "crow=/nowhere"};
  const auto open = [](Front& front, const std::string& path) {
    return ask(front.port(), request("GET", path, {}, "Accept: text/html\r\n"));
  };
  Front all(json::array({vectors, pictures, chats}));
  const std::string of_chats = open(all, "/?model=a").body;
  const std::string of_pictures = open(all, "/?model=sd%2FOne").body;
  EXPECT_NE(of_chats, of_pictures);
  for (const char* path : {"/", "/?model=v", "/?model=nobody", "/?model=crow"}) {
    const RawResponse page = open(all, path);
    EXPECT_EQ(page.status, 200) << path;
    EXPECT_EQ(page.body, of_chats) << path;
  }
  const std::pair<const char*, const char*> other[] = {{"/?model=A:latest", "/?model=a"},
                                                       {"/?model=Crow%3Alatest", "/?model=crow"},
                                                       {"/?model=SD/one", "/?model=sd%2FOne"}};
  for (const auto& [path, own] : other) {
    const RawResponse moved = open(all, path);
    EXPECT_EQ(moved.status, 302) << path;
    EXPECT_EQ(moved.headers.at("location"), own);
  }
  EXPECT_EQ(open(all, "/").headers.count("location"), 0U);
  Front drawing(json::array({vectors, pictures}));
  EXPECT_EQ(open(drawing, "/").body, of_pictures);
  Front embedding(json::array({vectors}));
  EXPECT_EQ(json::parse(open(embedding, "/").body).at("name"), "rbee serve");
  // Models that are loaded from the start, while they start.
  vectors.erase("keep_alive");
  chats.erase("keep_alive");
  Front fixed(json::array({vectors, chats}));
  EXPECT_EQ(open(fixed, "/").body, of_chats);
  EXPECT_EQ(open(fixed, "/?model=A:latest").headers.at("location"), "/?model=a");
}

// An <img> of any page in the browser sends GET, without asking.
TEST(OnDemand, PagesOfOtherSitesLoadNothing) {
  Front front(json::array({on_demand("a", "echo")}), json::object(),
              {"--cors-origin", "https://friend.example"});
  const std::string path = "/lora-adapters";
  const auto status = [&](const std::string& headers) {
    return ask(front.port(), request("GET", path, {}, headers)).status;
  };
  EXPECT_EQ(status("Sec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(status("Origin: https://other.example\r\n"), 403);
  EXPECT_EQ(worker_of(front, 0).at("state"), "unloaded");
  EXPECT_EQ(status("Origin: https://friend.example\r\n"), 200);
  EXPECT_EQ(worker_of(front, 0).at("state"), "ready");
}

TEST(OnDemand, AnIdleModelIsUnloadedAfterItsTime) {
  Front front(json::array({on_demand("a", "echo", 0)}));
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("a", "one"))), "one");
  wait_for_state(front, 0, "unloaded");
  EXPECT_THAT(names_in(front.get("/api/tags")), ::testing::ElementsAre("a"));
  EXPECT_THAT(names_in(front.get("/api/ps")), ::testing::IsEmpty());
  EXPECT_EQ(json::parse(front.get("/v1/models").body).at("data")[0].at("max_model_len"), 2048);
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("a", "two"))), "two");
}

TEST(OnDemand, ARequestOfOllamaSaysHowLongItsModelStays) {
  Front front(json::array({on_demand("a", "echo", 0)}));
  json stays = chat("a", "one"), leaves = chat("a", "two");
  stays["keep_alive"] = "-1m";
  leaves["keep_alive"] = 0;
  EXPECT_EQ(front.post("/api/chat", stays).status, 200);
  EXPECT_EQ(front.post("/v1/chat/completions", leaves).status, 200);  // no field of OpenAI's
  const json loaded = json::parse(front.get("/api/ps").body).at("models");
  ASSERT_EQ(loaded.size(), 1);
  EXPECT_THAT(loaded[0].at("expires_at").get<std::string>(), HasSubstr("9999"));
  EXPECT_EQ(front.post("/api/chat", leaves).status, 200);
  wait_for_state(front, 0, "unloaded");
}

json keep(const std::string& model, const json& keep_alive) {
  return {{"model", model}, {"stream", false}, {"keep_alive", keep_alive}};
}

TEST(OnDemand, OllamasUnloadLoadsNothing) {
  Front front(json::array({on_demand("a", "echo"), on_demand("b", "echo")}));
  const auto reason = [](const RawResponse& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    const json body = json::parse(answer.body);
    EXPECT_EQ(body.at("done"), true);
    return body.at("done_reason").get<std::string>();
  };
  EXPECT_EQ(reason(front.post("/api/generate", keep("a", 0))), "unload");
  const RawResponse chat_form = front.post("/api/chat", keep("a:latest", "0s"));
  EXPECT_EQ(reason(chat_form), "unload");
  EXPECT_EQ(json::parse(chat_form.body).at("model"), "a:latest");
  EXPECT_EQ(json::parse(chat_form.body).at("message").at("content"), "");
  EXPECT_EQ(worker_of(front, 0).at("state"), "unloaded");
  EXPECT_EQ(front.post("/api/generate", keep("none", 0)).status, 404);

  EXPECT_EQ(reason(front.post("/api/generate", keep("a", 60))), "load");
  json empty = keep("b", "5m");
  empty["messages"] = json::array();
  EXPECT_EQ(reason(front.post("/api/chat", empty)), "load");
  EXPECT_EQ(worker_of(front, 0).at("state"), "ready");
  EXPECT_EQ(reason(front.post("/api/generate", keep("a", 0))), "unload");
  wait_for_state(front, 0, "unloaded");
  EXPECT_EQ(worker_of(front, 1).at("state"), "ready");
  // Its time is over with its process.
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("a", "Hi"))), "Hi");
  const json loaded = json::parse(front.get("/workers").body).at("models").at(0);
  EXPECT_EQ(loaded.at("workers").at(0).at("state"), "ready");
  json text = keep("a", 0);
  text["prompt"] = "Hi";
  EXPECT_EQ(reason(front.post("/api/generate", text)), "stop");
}

TEST(OnDemand, AKeepAliveThatIsNoDurationIsRefused) {
  Front front(json::array({on_demand("a", "echo", 0)}));
  for (const json& wrong : {json(true), json::array({1}), json::object(), json("soon")}) {
    const RawResponse answer = front.post("/api/generate", keep("a", wrong));
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_THAT(json::parse(answer.body).at("error"), HasSubstr("keep_alive")) << wrong;
  }
  EXPECT_EQ(worker_of(front, 0).at("state"), "unloaded");
  EXPECT_EQ(front.post("/api/generate", keep("a", nullptr)).status, 200);
  // That of a refused body does not count.
  json refused = chat("a", "Hi");
  refused["keep_alive"] = -1;
  refused["messages"] = 7;
  EXPECT_EQ(front.post("/api/chat", refused).status, 400);
  wait_for_state(front, 0, "unloaded");
}

// Only a loaded model keeps responses and draws.
TEST(OnDemand, WhatIsRefusedLoadsNothing) {
  json pictures = on_demand("p", "echo"), vectors = on_demand("v", "echo");
  pictures["kind"] = "image";
  vectors["kind"] = "embedding";
  Front front(json::array({on_demand("a", "echo"), pictures, vectors}));
  struct Case {
    const char* path;
    const char* model;
  };
  for (const Case& one :
       {Case{"/v1/embeddings", "a"}, Case{"/rerank", "a"}, Case{"/v1/images/generations", "a"},
        Case{"/v1/chat/completions", "p"}, Case{"/v1/chat/completions", "v"},
        Case{"/api/chat", "v"}, Case{"/api/embed", "a"}, Case{"/api/embed", "p"}}) {
    const RawResponse answer = front.post(one.path, {{"model", one.model}});
    EXPECT_EQ(answer.status, 400) << one.path << one.model;
    EXPECT_THAT(answer.body, HasSubstr(one.model)) << one.path;
  }
  const RawResponse job = front.post("/v1/jobs", {{"operation", "fly"}, {"prompt", "Hi"}});
  EXPECT_EQ(job.status, 400);
  EXPECT_THAT(job.body, HasSubstr("operation"));
  EXPECT_EQ(front.post("/v1/jobs", {{"operation", "infer"}, {"model", "p"}}).status, 400);
  EXPECT_EQ(front.get("/v1/responses/resp_1").status, 404);
  const RawResponse next =
      front.post("/v1/responses", {{"input", "Hi"}, {"previous_response_id", "resp_1"}});
  EXPECT_EQ(next.status, 400);
  EXPECT_EQ(json::parse(next.body).at("error").at("code"), "previous_response_not_found");
  const RawResponse progress = front.get("/sdapi/v1/progress");
  EXPECT_EQ(progress.status, 200);
  EXPECT_EQ(json::parse(progress.body).at("state").at("job_count"), 0);
  EXPECT_EQ(front.get("/sdapi/v1/cmd-flags").status, 200);
  for (const char* path : {"/sdapi/v1/interrupt", "/sdapi/v1/unload-checkpoint"}) {
    EXPECT_EQ(front.post(path, json::object()).body, "{}") << path;
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(worker_of(front, i).at("state"), "unloaded") << i;
}

TEST(OnDemand, AWorkerThatLoadsShowsHowFarItIs) {
  const Folder folder;
  const std::string fetched = folder.pipe("fetched"), loaded = folder.pipe("loaded");
  Front front(json::array({on_demand("a", cat("fetch:", fetched, ",", loaded))}), kRoomForOne);
  RawClient client(front.port());
  client.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  const auto progress = [&](const std::string& phase) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      const json worker = worker_of(front, 0);
      const json found = worker.value("progress", json::object());
      if (found.value("phase", "") == phase) return found;
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error(worker.dump());
    }
  };
  const json first = progress("fetching");
  EXPECT_EQ(first.at("done"), 30);
  EXPECT_EQ(first.at("total"), 100);
  EXPECT_EQ(first.at("seconds_left"), 7.0);
  EXPECT_EQ(worker_of(front, 0).at("state"), "starting");
  std::ofstream(fetched) << "open";
  EXPECT_EQ(progress("loading").at("done"), 50);
  std::ofstream(loaded) << "open";
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_FALSE(worker_of(front, 0).contains("progress"));
}

TEST(OnDemand, ALoadThatFailsIsAnErrorThatSaysWhy) {
  Front front(json::array({on_demand("a", "missing"), on_demand("b", "echo")}));
  for (int i = 0; i < 2; ++i) {
    const RawResponse answer = front.post("/v1/chat/completions", chat("a", "Hi"));
    EXPECT_EQ(answer.status, 503);
    const json error = json::parse(answer.body).at("error");
    EXPECT_EQ(error.at("code"), "MODEL_UNAVAILABLE");
    EXPECT_THAT(error.at("message"), HasSubstr("The model 'a' cannot be loaded"));
    EXPECT_THAT(error.at("message"), HasSubstr("no such file"));
  }
  EXPECT_EQ(worker_of(front, 0).at("state"), "unloaded");
  EXPECT_THAT(json::parse(front.post("/api/chat", chat("a", "Hi")).body).at("error"),
              HasSubstr("no such file"));
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("b", "Hi"))), "Hi");
}

// The reason is the line before a worker's hint, and shows no folders of this machine.
TEST(OnDemand, TheReasonOfAFailedLoadIsForClients) {
  json flags = on_demand("a", "echo"), path = on_demand("b", "/nowhere/secret/b.gguf");
  flags["flags"] = {"--threads", "many"};
  path["program"] = LLM_WORKER;
  Front front(json::array({flags, path}));
  const RawResponse wrong_flag = front.post("/v1/chat/completions", chat("a", "Hi"));
  EXPECT_EQ(wrong_flag.status, 503);
  EXPECT_THAT(wrong_flag.body, HasSubstr("--threads"));
  const RawResponse no_file = front.post("/v1/chat/completions", chat("b", "Hi"));
  EXPECT_EQ(no_file.status, 503);
  EXPECT_THAT(no_file.body, HasSubstr("b.gguf"));
  EXPECT_THAT(no_file.body, Not(HasSubstr("secret")));
  front.process().read_until("/nowhere/secret/b.gguf");
}

TEST(OnDemand, AWorkerThatIsKilledWhileItLoadsFailsAllItsRequests) {
  const Folder folder;
  Front front(json::array({on_demand("a", cat("gate:", folder.pipe("gate")))}));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<RawClient>(front.port()));
    clients.back()->send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  }
  while (front.metric("rbee_front_requests_waiting") < 4) {
  }
  kill(wait_for_state(front, 0, "starting").at("pid"), SIGKILL);
  for (const auto& client : clients) {
    const RawResponse answer = client->read_response();
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("exit status 137"));
  }
}

TEST(OnDemand, AModelThatIsTooLargeIsRefusedWithBothNumbers) {
  json large = on_demand("large", "echo");
  large["memory_bytes"] = int64_t{1'000'000'001};
  Front front(json::array({large, on_demand("a", "echo")}),
              {{"max_memory_bytes", int64_t{1'000'000'000}}});
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("a", "Hi"))), "Hi");
  const RawResponse answer = front.post("/v1/chat/completions", chat("large", "Hi"));
  EXPECT_EQ(answer.status, 503);
  const json error = json::parse(answer.body).at("error");
  EXPECT_EQ(error.at("code"), "MODEL_TOO_LARGE");
  EXPECT_EQ(error.at("message"),
            "The model 'large' needs 1001 MB of memory, and 1000 MB are available");
  EXPECT_EQ(worker_of(front, 1).at("state"), "ready");
}

// Each of many clients asks both models in turn; there is memory for one.
TEST(OnDemand, ModelsThatDoNotFitTogetherTakeTurns) {
  json config = kRoomForOne;
  config["wait_seconds"] = 600;
  Front front(json::array({on_demand("a", "echo"), on_demand("b", "echo")}), config);
  front.port();
  std::atomic<bool> over = false;
  std::atomic<int> most = 0;
  std::thread watcher([&] {
    while (!over) {
      int processes = 0;
      const json all = json::parse(front.get("/workers").body);
      for (const json& model : all.at("models")) {
        processes += model.at("workers").at(0).contains("pid") ? 1 : 0;
      }
      if (processes > most) most = processes;
    }
  });
  std::vector<std::thread> clients;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      for (int turn = 0; turn < 4; ++turn) {
        const std::string text = cat("text ", i, " ", turn);
        const RawResponse answer =
            ask(front.port(), request("POST", "/v1/chat/completions",
                                      chat((i + turn) % 2 == 0 ? "a" : "b", text).dump()));
        EXPECT_EQ(said(answer), text);
        ++answered;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  over = true;
  watcher.join();
  EXPECT_EQ(answered, 32);
  EXPECT_EQ(most, 1);
}

TEST(OnDemand, TheLeastRecentlyUsedIdleModelLeaves) {
  Front front(json::array({on_demand("a", "echo"), on_demand("b", "echo"), on_demand("c", "echo")}),
              {{"max_memory_bytes", 1300}});
  for (const char* name : {"a", "b", "a", "c"}) {
    EXPECT_EQ(said(front.post("/v1/chat/completions", chat(name, "Hi"))), "Hi");
  }
  EXPECT_EQ(worker_of(front, 0).at("state"), "ready");
  EXPECT_EQ(worker_of(front, 1).at("state"), "unloaded");
  EXPECT_EQ(worker_of(front, 2).at("state"), "ready");
}

TEST(OnDemand, ABusyModelIsWaitedFor) {
  Front front(json::array({on_demand("a", "hold"), on_demand("b", "echo")}), kRoomForOne);
  RawClient busy(front.port());
  busy.send(request("POST", "/v1/infer", R"({"model":"a","prompt":"Hi","stream":true})"));
  busy.read_until("world");
  RawClient next(front.port());
  next.send(request("POST", "/v1/chat/completions", chat("b", "parrot").dump()));
  while (front.metric("rbee_front_requests_waiting") < 1) {
  }
  // It came later, so it waits too: else b would never get its turn.
  RawClient later(front.port());
  later.send(request("POST", "/v1/infer", R"({"model":"a","prompt":"Hi","stream":true})"));
  while (front.metric("rbee_front_requests_waiting") < 2) {
  }
  EXPECT_EQ(worker_of(front, 0).at("running"), 1);
  EXPECT_EQ(worker_of(front, 1).at("state"), "unloaded");
  busy.close();
  EXPECT_EQ(said(next.read_response()), "parrot");
  EXPECT_THAT(later.read_until("world"), HasSubstr("Hello"));
}

TEST(OnDemand, ARequestForALoadedModelDoesNotWaitForAnotherThatLoads) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({on_demand("a", "echo"), on_demand("b", "gate:" + gate)}));
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("a", "one"))), "one");
  RawClient waits(front.port());
  waits.send(request("POST", "/v1/infer", R"({"model":"b","prompt":"Hi"})"));
  wait_for_state(front, 1, "starting");
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("a", "two"))), "two");
  EXPECT_EQ(worker_of(front, 1).at("state"), "starting");
  std::ofstream(gate) << "open";
  EXPECT_EQ(waits.read_response().status, 200);
}

TEST(OnDemand, ALoadWhoseClientsLeaveGoesOnAndMayGiveWay) {
  const Folder folder;
  const std::string gate = folder.pipe("gate");
  Front front(json::array({on_demand("a", "gate:" + gate), on_demand("b", "echo")}), kRoomForOne);
  const auto leave_while_it_loads = [&] {
    RawClient client(front.port());
    client.send(request("POST", "/v1/infer", R"({"model":"a","prompt":"Hi"})"));
    wait_for_state(front, 0, "starting");
  };
  leave_while_it_loads();
  std::ofstream(gate) << "open";
  wait_for_state(front, 0, "ready");
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("b", "Hi"))), "Hi");
  leave_while_it_loads();
  EXPECT_EQ(said(front.post("/v1/chat/completions", chat("b", "Hi"))), "Hi");
  EXPECT_EQ(worker_of(front, 0).at("state"), "unloaded");
}

TEST(OnDemand, ASignalEndsAFrontWhoseModelLoads) {
  Front front(json::array({on_demand("a", "slow")}));
  RawClient client(front.port());
  client.send(request("POST", "/v1/chat/completions", chat("a", "Hi").dump()));
  wait_for_state(front, 0, "starting");
  const auto begin = std::chrono::steady_clock::now();
  front.process().signal(SIGTERM);
  const RawResponse answer = client.read_response();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("STOPPING"));
  EXPECT_EQ(front.process().wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kStopLimit + std::chrono::seconds(2));
}

// A fixed model has its workers from the start, and never leaves for another.
TEST(OnDemand, AFixedModelStays) {
  json fixed = fake("a", "echo");
  fixed["memory_bytes"] = 600;
  Front front(json::array({fixed, on_demand("b", "echo")}), kRoomForOne);
  front.wait_ready();
  const RawResponse answer = front.post("/v1/chat/completions", chat("b", "Hi"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("MODEL_TOO_LARGE"));
  EXPECT_EQ(worker_of(front, 0).at("state"), "ready");
}

}  // namespace
}  // namespace rbee::testing

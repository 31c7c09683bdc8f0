// The command lines of a model's workers: their devices, and where they publish KV events.

#include "server/front/worker_command.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using server::ServedModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The only model of a file with it, with these fields besides.
ServedModel model_of(const json& more) {
  json model = {{"name", "m"}, {"model", "/m"}, {"program", "worker"}};
  model.update(more);
  return server::parse_front_config(json{{"models", {model}}}.dump(), "s.json").models.front();
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// What comes behind the model's name.
std::vector<std::string> words_of(const ServedModel& model, int index) {
  const std::vector<std::string> all = server::worker_command(model, index);
  EXPECT_THAT(std::vector(all.begin(), all.begin() + 5),
              ElementsAre("worker", "--model", "/m", "--model-ref", "m"));
  return {all.begin() + 5, all.end()};
}

TEST(WorkerCommand, ReplicasTakeTheirDevices) {
  const ServedModel one = model_of({{"device", "cuda"}, {"devices", {3, 1}}, {"replicas", 3}});
  EXPECT_THAT(words_of(one, 0), ElementsAre("--cuda-device", "3"));
  EXPECT_THAT(words_of(one, 2), ElementsAre("--cuda-device", "3"));
  const ServedModel several = model_of({{"device", "rocm"},
                                        {"devices", {{0, 1}, {3, 2}}},
                                        {"replicas", 2},
                                        {"flags", {"--context", "512"}}});
  EXPECT_THAT(words_of(several, 0), ElementsAre("--device", "rocm:0,rocm:1",
                                                "--tensor-parallel-size", "2", "--context", "512"));
  EXPECT_THAT(words_of(several, 1), ElementsAre("--device", "rocm:3,rocm:2",
                                                "--tensor-parallel-size", "2", "--context", "512"));
  const ServedModel metal = model_of({{"device", "metal"}, {"devices", {0}}});
  EXPECT_EQ(metal.device, "metal");
  EXPECT_THAT(words_of(metal, 0), ElementsAre("--cuda-device", "0"));
  const ServedModel mixed = model_of({{"device", "cuda"}, {"devices", {{0}, 1, {2, 3, 4}}}});
  EXPECT_THAT(words_of(mixed, 0), ElementsAre("--cuda-device", "0"));
  EXPECT_THAT(words_of(mixed, 1), ElementsAre("--cuda-device", "1"));
  EXPECT_THAT(words_of(mixed, 2),
              ElementsAre("--device", "cuda:2,cuda:3,cuda:4", "--tensor-parallel-size", "3"));
}

TEST(WorkerCommand, DevicesThatAreNoneAreNamed) {
  const auto refused = [](json more) {
    if (!more.contains("device")) more["device"] = "cuda";
    return error_of([&] { model_of(more); });
  };
  const json nothing = json::array();
  EXPECT_THAT(refused({{"devices", {0, nothing}}}),
              HasSubstr("s.json: models[0].devices[] must be a number, or an array of 1 to 64"));
  EXPECT_THAT(refused({{"devices", {{0, 1024}}}}),
              HasSubstr("models[0].devices[] must be an integer from 0 to 1023"));
  EXPECT_THAT(refused({{"devices", {{0, {1}}}}}), HasSubstr("must be an integer from 0 to 1023"));
  EXPECT_THAT(refused({{"devices", {{1, 1}}}}),
              HasSubstr("models[0].devices[] must not have a device twice"));
  EXPECT_THAT(refused({{"devices", {{0, 1}}}, {"kind", "image"}}), HasSubstr("kind is not chat"));
  EXPECT_THAT(refused({{"devices", {{0, 1}}}, {"device", "cpu"}}), HasSubstr("device is cpu"));
  EXPECT_THAT(refused({{"devices", {{0, 1}}}, {"flags", {"-tp", "2"}}}),
              HasSubstr("models[0].flags must not have -tp, which devices decides"));
  EXPECT_THAT(refused({{"devices", {{0, 1}}}, {"flags", {"--device=cuda:3"}}}),
              HasSubstr("models[0].flags must not have --device"));
  // All names of one flag of the worker.
  for (const std::string flag : {"--cuda-device", "--rocm-device", "--metal-device"}) {
    EXPECT_THAT(refused({{"devices", {{0, 1}}}, {"flags", {flag, "1"}}}),
                HasSubstr("models[0].flags must not have " + flag + ", which devices decides"));
  }
}

constexpr const char* kEvents = R"({"enable_kv_cache_events":true,"endpoint":"tcp://*:7000",)"
                                R"("replay_endpoint":"ipc:///run/replay","topic":"kv@m"})";

TEST(WorkerCommand, ReplicasPublishAtEndpointsOfTheirOwn) {
  for (const bool one_word : {false, true}) {
    const std::string flag = "--kv-events-config";
    const json flags = one_word ? json{"--context", "64", flag + "=" + kEvents}
                                : json{"--context", "64", flag, kEvents};
    const ServedModel model = model_of({{"flags", flags}, {"replicas", 3}});
    EXPECT_EQ(words_of(model, 0).back(), flags.back().get<std::string>());
    std::string word = words_of(model, 2).back();
    if (one_word) word.erase(0, flag.size() + 1);
    EXPECT_EQ(json::parse(word), (json{{"enable_kv_cache_events", true},
                                       {"endpoint", "tcp://*:7002"},
                                       {"replay_endpoint", "ipc:///run/replay_dp2"},
                                       {"topic", "kv@m"}}));
    const auto publisher = server::kv_publisher(model, 1);
    ASSERT_TRUE(publisher);
    EXPECT_EQ(publisher->endpoint, "tcp://*:7001");
    EXPECT_EQ(publisher->replay_endpoint, "ipc:///run/replay_dp1");
    EXPECT_EQ(publisher->topic, "kv@m");
  }
  const auto endpoint_of = [](const char* config, int index) {
    const auto publisher =
        server::kv_publisher(model_of({{"flags", {"--kv-events-config", config}}}), index);
    return publisher ? publisher->endpoint : "none";
  };
  EXPECT_EQ(endpoint_of(R"({"enable_kv_cache_events":true})", 1), "tcp://*:5558");
  EXPECT_EQ(endpoint_of(R"({"enable_kv_cache_events":true,"endpoint":"tcp://[::]:80"})", 4),
            "tcp://[::]:84");
  // Many may connect to one.
  EXPECT_EQ(endpoint_of(R"({"enable_kv_cache_events":true,"endpoint":"tcp://router:80"})", 4),
            "tcp://router:80");
  EXPECT_EQ(endpoint_of(R"({"enable_kv_cache_events":true,"publisher":"null"})", 1), "none");
  EXPECT_EQ(endpoint_of(R"({"endpoint":"tcp://*:80"})", 1), "none");
  EXPECT_EQ(endpoint_of("no JSON", 1), "none");
  EXPECT_EQ(words_of(model_of({{"flags", {"--kv-events-config", "no JSON"}}}), 1).back(),
            "no JSON");
}

TEST(WorkerCommand, EndpointsThatMeetAreNamed) {
  const auto check = [](const char* config, int replicas) {
    const ServedModel model =
        model_of({{"flags", {"--kv-events-config", config}}, {"replicas", replicas}});
    return error_of([&] { server::check_kv_publishers({model}); });
  };
  const char* const near = R"({"enable_kv_cache_events":true,"replay_endpoint":"tcp://*:5559"})";
  EXPECT_EQ(check(near, 2), "nothing was thrown");
  EXPECT_THAT(check(near, 3), HasSubstr("m-0 and m-2 would both bind tcp://*:5559"));
  EXPECT_THAT(check(R"({"enable_kv_cache_events":true,"endpoint":"tcp://*:65535"})", 2),
              HasSubstr("the endpoint tcp://*:65535 of replica 1 has a port above 65535"));
}

TEST(WorkerCommand, TheFrontTellsWhereItsWorkersPublish) {
  json publishing = fake("m", "any", 2);
  publishing["flags"] = {"--kv-events-config", kEvents};
  Front front(json::array({fake("quiet", "any"), publishing}));
  const json all = json::parse(front.get("/kv-events").body).at("publishers");
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].at("model"), "m");
  EXPECT_EQ(all[0].at("worker"), "m-0");
  EXPECT_EQ(all[0].at("endpoint"), "tcp://*:7000");
  EXPECT_EQ(all[1].at("worker"), "m-1");
  EXPECT_EQ(all[1].at("endpoint"), "tcp://*:7001");
  EXPECT_EQ(all[1].at("replay_endpoint"), "ipc:///run/replay_dp1");
  EXPECT_EQ(all[1].at("topic"), "kv@m");
  EXPECT_TRUE(all[1].at("state").is_string());

  publishing["replicas"] = 1;
  json twice = publishing;
  twice["name"] = "other";
  Front refused(json::array({publishing, twice}));
  EXPECT_EQ(refused.process().wait(), 1);
  EXPECT_THAT(refused.process().text(), HasSubstr("m-0 and other-0 would both bind tcp://*:7000"));
}

}  // namespace
}  // namespace rbee::testing

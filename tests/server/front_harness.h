#pragma once
// `rbee serve` as a child process, with workers whose engines follow scripts.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "rbee/core/cat.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {

// A folder for a test's pipes and files; the destructor removes it.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbee-front-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string pipe(const char* name) const {
    const std::string path = (path_ / name).string();
    if (mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("no fifo");
    return path;
  }
  std::string file(const char* name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

inline nlohmann::json fake(const std::string& name, const std::string& script, int replicas = 1) {
  return {{"name", name}, {"program", FAKE_WORKER}, {"model", script}, {"replicas", replicas}};
}

class Front {
 public:
  explicit Front(const nlohmann::json& models, nlohmann::json config = nlohmann::json::object(),
                 const std::vector<std::string>& flags = {},
                 std::vector<std::string> environment = {}) {
    config["models"] = models;
    if (!config.contains("back_off_ms")) config["back_off_ms"] = 10;
    std::vector<std::string> arguments{"serve", "--port", "0", "--config",
                                       folder_.file("serve.json", config.dump())};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    process_ = std::make_unique<Process>(RBEE, arguments, std::move(environment));
  }

  Process& process() { return *process_; }
  uint16_t port() { return process_->port(); }
  RawResponse get(std::string_view path, std::string_view headers = {}) {
    return ask(port(), request("GET", path, {}, headers));
  }
  RawResponse post(std::string_view path, const nlohmann::json& body) {
    return ask(port(), request("POST", path, body.dump()));
  }
  // Waits until every model has a worker.
  void wait_ready() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (get("/health/ready").status != 200) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error(process_->text());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  // Waits until model `index` has `count` ready workers; returns its entries of GET /workers.
  nlohmann::json workers(size_t index, size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      nlohmann::json all =
          nlohmann::json::parse(get("/workers").body).at("models").at(index).at("workers");
      size_t ready = 0;
      for (const nlohmann::json& worker : all) ready += worker.at("state") == "ready" ? 1 : 0;
      if (ready >= count) return all;
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error(all.dump());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  double metric(const std::string& name) {
    const std::string all = "\n" + get("/metrics").body;
    const size_t at = all.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(all.substr(at + name.size() + 2));
  }

 private:
  Folder folder_;
  std::unique_ptr<Process> process_;
};

inline nlohmann::json chat(const std::string& model, const std::string& text, bool stream = false) {
  return {
      {"model", model}, {"stream", stream}, {"messages", {{{"role", "user"}, {"content", text}}}}};
}

}  // namespace rbee::testing

// A rank of leader_test.cc: a process that does what its argument says.

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "rbee/core/error.h"
#include "rbee/group/member.h"

namespace {

using namespace rbee;
using namespace rbee::group;

RankPlace own_place() {
  return find_place({}, [](std::string_view name) -> std::optional<std::string> {
    const char* const value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

[[noreturn]] void lost(const std::string&) {
  _exit(3);
}

constexpr int kNoNamespaces = 77;

// Those of one rank, "WHAT@RANK".
bool does(const std::string& all, const char* what, int rank) {
  return all == cat(what, "@", rank);
}

// One that meets its leader: BEHAVIOUR RANK RANKS PORT SECRET.
GroupMemberOptions met(std::span<char*> arguments) {
  GroupMemberOptions out{.place = {.rank = std::stoi(arguments[2]),
                                   .ranks = std::stoi(arguments[3]),
                                   .port = std::stoi(arguments[4]),
                                   .launcher = Launcher::torchrun},
                         .on_lost = lost};
  out.met = meet_leader({.port = out.place.port, .secret = arguments[5]}, {});
  return out;
}

int run(const std::string& behaviour, std::span<char*> arguments) {
  const bool meets = arguments.size() > 2;
  GroupMemberOptions joining =
      meets ? met(arguments) : GroupMemberOptions{.place = own_place(), .on_lost = lost};
  const RankPlace place = joining.place;
  const int rank = place.rank;
  if (does(behaviour, "exit", rank)) return 7;
  if (does(behaviour, "stop", rank)) raise(SIGSTOP);
  const bool elsewhere = does(behaviour, "elsewhere", rank);
  if (elsewhere && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kNoNamespaces;
  GroupMember member(std::move(joining));
  const std::string path = member.model();
  Identity identity{.build = "b", .model = path, .flags = "f", .device = "cpu"};
  if (does(behaviour, "build", rank)) identity.build = "other";
  if (does(behaviour, "flags", rank)) identity.flags = "g";
  if (does(behaviour, "protocol", rank)) identity.protocol = 99;
  if (does(behaviour, "fail", rank)) {
    member.failed(Code::not_found, "no such file");
    return 1;
  }
  if (does(behaviour, "kill", rank)) raise(SIGKILL);
  member.join(identity);
  if (elsewhere && member.shares()) return 9;
  if (does(behaviour, "fail-load", rank)) {
    member.failed(Code::out_of_memory, "too large");
    return 1;
  }
  if (does(behaviour, "stop-load", rank)) raise(SIGSTOP);
  member.loaded({.weight_bytes = 100 * rank, .cache_token_bytes = rank});
  FILE* const log = std::fopen(cat(path, ".", rank).c_str(), "w");
  while (const auto command = member.command()) {
    const std::string text(reinterpret_cast<const char*>(command->data()), command->size());
    if (text == "die" && does(behaviour, "die", rank)) raise(SIGKILL);
    if (text == "stop" && does(behaviour, "stop-step", rank)) raise(SIGSTOP);
    if (text == "throw" && does(behaviour, "throw", rank)) {
      member.failed(Code::internal, "it broke");
      return 1;
    }
    if (text.size() < 100) std::fprintf(log, "%s\n", text.c_str());
    if (text.size() >= 100) std::fprintf(log, "%zu\n", text.size());
  }
  std::fprintf(log, "end\n");
  std::fclose(log);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", std::span(argv, static_cast<size_t>(argc)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}

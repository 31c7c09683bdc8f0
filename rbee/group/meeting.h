#pragma once
// Where ranks that were started apart from the leader meet it: the leader listens on the address by
// which it is reached, each rank connects to it and keeps the connection.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "rbee/group/rank_link.h"

namespace rbee::group {

struct GroupTimes {
  std::chrono::milliseconds beat{500};        // between two signs of life
  std::chrono::milliseconds silence{4'000};   // without one, or stopped: the other side is lost
  std::chrono::milliseconds start{600'000};   // until a rank says what it is
  std::chrono::milliseconds command{30'000};  // until a rank has done a command
};

struct MeetingPlace {
  std::string address = "127.0.0.1";  // the leader's, or its name
  int port = 0;
  std::string secret = {};  // that all ranks know
  bool insecure = false;    // none is needed off loopback
};

// What the leader tells and wants.
struct MeetingTerms {
  int ranks = 2;
  std::string model;  // path that the ranks load
  GroupTimes times = {};
  // Throws if the rank is not what it should be, which ends the group.
  std::function<void(const LinkHello& hello)> check_hello;
};

struct RankThatCame {
  RankLink link;
  LinkHello hello;
};

// Waits for ranks 1 to ranks - 1, in whatever order they come, and names those that are missing
// every 10 s in the log. Who sends garbage or nothing, does not know the secret, or says that it is
// a rank that is there already is sent away, and the others go on. Throws io if the address cannot
// be listened on; invalid_argument for an address off loopback without a secret, and for a name
// that stands for loopback here, which other machines cannot reach; device if a rank does not come
// in time or ends; and what check_hello throws.
std::vector<RankThatCame> meet_ranks(const MeetingPlace& place, const MeetingTerms& terms);

// A rank's side: tries until the leader is there. Throws device if it is not in time, and
// invalid_argument if one does not know the other's secret, and as meet_ranks() where none is
// given.
RankLink meet_leader(const MeetingPlace& place, const GroupTimes& times);

}  // namespace rbee::group

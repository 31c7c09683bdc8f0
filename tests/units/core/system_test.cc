#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "rbee/core/system/process.h"
#include "rbee/core/system/shared_memory.h"
#include "rbee/core/system/sockets.h"

namespace rbee {
namespace {

constexpr int kPatience = 60'000;  // ms

// A child that waits for a signal.
pid_t sleeping_child() {
  const pid_t id = fork();
  if (id != 0) return id;
  while (true) pause();
}

bool readable(int descriptor, int patience) {
  pollfd wanted{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, patience) == 1;
}

TEST(System, AWatchedProcessTellsItsEndAndIsKilled) {
  const pid_t id = sleeping_child();
  WatchedProcess process(id);
  ASSERT_FALSE(process.none());
  EXPECT_FALSE(readable(process.descriptor(), 0));
  process.kill();
  EXPECT_TRUE(readable(process.descriptor(), kPatience));
  int status = 0;
  ASSERT_EQ(waitpid(id, &status, 0), id);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  process.kill();  // of a process that is gone: nothing

  WatchedProcess moved = std::move(process);
  EXPECT_TRUE(process.none());  // NOLINT(bugprone-use-after-move)
  const int descriptor = moved.release();
  EXPECT_TRUE(moved.none());
  EXPECT_EQ(close(descriptor), 0);
}

TEST(System, AProcessIsStoppedEndedOrNotThere) {
  const pid_t id = sleeping_child();
  EXPECT_EQ(process_state(id), ProcessState::runs);
  EXPECT_GT(process_memory(getpid()), 0);
  ASSERT_EQ(kill(id, SIGSTOP), 0);
  ASSERT_EQ(waitpid(id, nullptr, WUNTRACED), id);
  EXPECT_EQ(process_state(id), ProcessState::stopped);
  const WatchedProcess process(id);
  process.kill();
  ASSERT_TRUE(readable(process.descriptor(), kPatience));
  EXPECT_EQ(process_state(id), ProcessState::ended);
  ASSERT_EQ(waitpid(id, nullptr, 0), id);
  EXPECT_EQ(process_state(id), ProcessState::none);
}

// This process, a parent that ends, and its child, which holds the pipe open as long as it lives.
TEST(System, AChildEndsWithItsParent) {
  std::array<int, 2> ends{};
  ASSERT_TRUE(open_pipe(ends));
  EXPECT_TRUE((fcntl(ends[0], F_GETFD) & FD_CLOEXEC) != 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t own = getpid();
    if (fork() == 0) {
      end_with_parent(own);
      const char ready = 'r';
      if (write(ends[1], &ready, 1) == 1) pause();
      _exit(0);
    }
    pause();
  }
  close(ends[1]);
  char got = 0;
  ASSERT_EQ(read(ends[0], &got, 1), 1);
  ASSERT_EQ(kill(parent, SIGKILL), 0);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  ASSERT_TRUE(readable(ends[0], kPatience));
  EXPECT_EQ(read(ends[0], &got, 1), 0);
  close(ends[0]);
}

TEST(System, FactsOfThisProcess) {
  const ProcessFacts facts = process_facts();
  EXPECT_GE(facts.cpu_seconds.value(), 0);
  EXPECT_LE(facts.start_time.value(), static_cast<double>(time(nullptr)) + 1);
  EXPECT_GT(facts.virtual_bytes.value(), facts.resident_bytes.value());
  const int opened = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(process_facts().open_files.value(), facts.open_files.value() + 1);
  close(opened);
  EXPECT_NE(process_arguments().front().find("core_test"), std::string::npos);
  EXPECT_EQ(access(program_path().c_str(), X_OK), 0);
}

TEST(System, SocketsTellTheirPeerAndSendNoSignal) {
  std::array<int, 2> ends{};
  ASSERT_TRUE(open_socket_pair(SOCK_STREAM, ends));
  EXPECT_TRUE((fcntl(ends[0], F_GETFD) & FD_CLOEXEC) != 0);
  const std::optional<SocketPeer> peer = socket_peer(ends[0]);
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->process, getpid());
  EXPECT_EQ(peer->user, geteuid());
  close(ends[1]);
  EXPECT_EQ(send(ends[0], "x", 1, kNoSignal), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[0]);
  const int waiting = open_socket(AF_INET, SOCK_STREAM, 0, SocketWaits::no);
  EXPECT_TRUE((fcntl(waiting, F_GETFL) & O_NONBLOCK) != 0);
  close(waiting);
  EXPECT_EQ(this_machine(), this_machine());
}

TEST(System, WordsOfSharedMemoryWakeAnotherProcess) {
  const int descriptor = new_shared_memory();
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(ftruncate(descriptor, sizeof(uint32_t)), 0);
  void* const at =
      mmap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ASSERT_NE(at, MAP_FAILED);
  auto& word = *new (at) std::atomic<uint32_t>(0);
  const pid_t id = fork();
  if (id == 0) {
    while (word == 0) sleep_on(word, 0, std::chrono::seconds(60));
    _exit(word == 7 ? 0 : 1);
  }
  word = 7;
  wake_all(word);
  int status = 0;
  ASSERT_EQ(waitpid(id, &status, 0), id);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  munmap(at, sizeof(uint32_t));
  close(descriptor);
}

}  // namespace
}  // namespace rbee

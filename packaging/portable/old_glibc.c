// What libstdc++ and libraries of Debian 12 call, and glibc 2.28 lacks.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

// glibc 2.32: libstdc++ may count references without atomics. 0 is always true enough.
char __libc_single_threaded = 0;

// glibc 2.36.
uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) abort();
  return value;
}

typedef int ClockWait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
typedef int ClockLock(pthread_mutex_t*, clockid_t, const struct timespec*);

// The same moment, on the clock that the functions without a clock of their own take.
static struct timespec on_wall_clock(clockid_t clock, const struct timespec* until) {
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) {
    wall.tv_nsec += 1000000000;
    --wall.tv_sec;
  } else if (wall.tv_nsec >= 1000000000) {
    wall.tv_nsec -= 1000000000;
    ++wall.tv_sec;
  }
  return wall;
}

static ClockWait* system_wait;
static ClockLock* system_lock;
static void* find(const char* name) {
  void* const own = dlvsym(RTLD_DEFAULT, name, "GLIBC_2.30");
  return own != NULL ? own : dlvsym(RTLD_DEFAULT, name, "GLIBC_2.34");  // moved it into libc.so
}
static void find_system(void) {
  system_wait = (ClockWait*)find("pthread_cond_clockwait");
  system_lock = (ClockLock*)find("pthread_mutex_clocklock");
}
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Both glibc 2.30. On an older one a wait ends too early or too late if somebody sets the wall
// clock; callers look at their own clock when it ends.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  pthread_once(&once, find_system);
  if (system_wait != NULL) return system_wait(condition, mutex, clock, until);
  const struct timespec wall = on_wall_clock(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  pthread_once(&once, find_system);
  if (system_lock != NULL) return system_lock(mutex, clock, until);
  const struct timespec wall = on_wall_clock(clock, until);
  return pthread_mutex_timedlock(mutex, &wall);
}

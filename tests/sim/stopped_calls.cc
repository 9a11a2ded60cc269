// Calls to what is not simulated. A simulated thread that makes one ends the program.
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/native.h"
#include "sim/scheduler.h"

using tacit::sim::Scheduler;

#define TACIT_STOPPED(type, name, parameters, arguments, ...)                 \
  type name parameters __VA_ARGS__ {                                          \
    if (Scheduler::current() == nullptr) return TACIT_NATIVE(name) arguments; \
    fprintf(stderr, "a simulated thread calls %s\n", #name);                  \
    abort();                                                                  \
  }

extern "C" {

TACIT_STOPPED(pid_t, fork, (), (), noexcept)
TACIT_STOPPED(int, clone, (int (*a)(void*), void* b, int c, void* d, ...), (a, b, c, d), noexcept)
TACIT_STOPPED(int, posix_spawnp,
              (pid_t * a, const char* b, const posix_spawn_file_actions_t* c,
               const posix_spawnattr_t* d, char* const* e, char* const* f),
              (a, b, c, d, e, f))
TACIT_STOPPED(pid_t, waitpid, (pid_t a, int* b, int c), (a, b, c))
TACIT_STOPPED(int, kill, (pid_t a, int b), (a, b), noexcept)
TACIT_STOPPED(int, pipe, (int a[2]), (a), noexcept)
TACIT_STOPPED(int, poll, (pollfd * a, nfds_t b, int c), (a, b, c))
TACIT_STOPPED(int, select, (int a, fd_set* b, fd_set* c, fd_set* d, timeval* e), (a, b, c, d, e))
TACIT_STOPPED(int, socket, (int a, int b, int c), (a, b, c), noexcept)
TACIT_STOPPED(int, getaddrinfo, (const char* a, const char* b, const addrinfo* c, addrinfo** d),
              (a, b, c, d))
TACIT_STOPPED(int, getnameinfo,
              (const sockaddr* a, socklen_t b, char* c, socklen_t d, char* e, socklen_t f, int g),
              (a, b, c, d, e, f, g))
TACIT_STOPPED(hostent*, gethostbyname, (const char* a), (a))

}  // extern "C"

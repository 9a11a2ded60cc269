// Calls to what is not simulated. A simulated thread that makes one ends the program.
#include <dirent.h>
#include <glob.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
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
TACIT_STOPPED(int, epoll_create, (int a), (a), noexcept)
TACIT_STOPPED(int, epoll_create1, (int a), (a), noexcept)
TACIT_STOPPED(int, eventfd, (unsigned a, int b), (a, b), noexcept)
TACIT_STOPPED(int, timerfd_create, (clockid_t a, int b), (a, b), noexcept)
TACIT_STOPPED(unsigned, if_nametoindex, (const char* a), (a), noexcept)
TACIT_STOPPED(int, pause, (), ())
TACIT_STOPPED(int, socket, (int a, int b, int c), (a, b, c), noexcept)
TACIT_STOPPED(int, getaddrinfo, (const char* a, const char* b, const addrinfo* c, addrinfo** d),
              (a, b, c, d))
TACIT_STOPPED(int, getnameinfo,
              (const sockaddr* a, socklen_t b, char* c, socklen_t d, char* e, socklen_t f, int g),
              (a, b, c, d, e, f, g))
TACIT_STOPPED(hostent*, gethostbyname, (const char* a), (a))

TACIT_STOPPED(int, chdir, (const char* a), (a), noexcept)
TACIT_STOPPED(int, chmod, (const char* a, mode_t b), (a, b), noexcept)
TACIT_STOPPED(int, fchmodat, (int a, const char* b, mode_t c, int d), (a, b, c, d), noexcept)
TACIT_STOPPED(int, futimesat, (int a, const char* b, const timeval c[2]), (a, b, c), noexcept)
TACIT_STOPPED(ssize_t, getxattr, (const char* a, const char* b, void* c, size_t d), (a, b, c, d),
              noexcept)
TACIT_STOPPED(int, lchmod, (const char* a, mode_t b), (a, b), noexcept)
TACIT_STOPPED(int, lchown, (const char* a, uid_t b, gid_t c), (a, b, c), noexcept)
TACIT_STOPPED(ssize_t, lgetxattr, (const char* a, const char* b, void* c, size_t d), (a, b, c, d),
              noexcept)
TACIT_STOPPED(ssize_t, listxattr, (const char* a, char* b, size_t c), (a, b, c), noexcept)
TACIT_STOPPED(ssize_t, llistxattr, (const char* a, char* b, size_t c), (a, b, c), noexcept)
TACIT_STOPPED(int, lsetxattr, (const char* a, const char* b, const void* c, size_t d, int e),
              (a, b, c, d, e), noexcept)
TACIT_STOPPED(int, lutimes, (const char* a, const timeval b[2]), (a, b), noexcept)
TACIT_STOPPED(char*, mkdtemp, (char* a), (a), noexcept)
TACIT_STOPPED(int, mkfifo, (const char* a, mode_t b), (a, b), noexcept)
TACIT_STOPPED(int, mknod, (const char* a, mode_t b, dev_t c), (a, b, c), noexcept)
TACIT_STOPPED(int, mkstemp, (char* a), (a))
TACIT_STOPPED(int, removexattr, (const char* a, const char* b), (a, b), noexcept)
TACIT_STOPPED(int, glob, (const char* a, int b, int (*c)(const char*, int), glob_t* d),
              (a, b, c, d), noexcept)
TACIT_STOPPED(void, rewinddir, (DIR * a), (a), noexcept)
TACIT_STOPPED(void, seekdir, (DIR * a, long b), (a, b), noexcept)
TACIT_STOPPED(int, setxattr, (const char* a, const char* b, const void* c, size_t d, int e),
              (a, b, c, d, e), noexcept)
TACIT_STOPPED(long, telldir, (DIR * a), (a), noexcept)
TACIT_STOPPED(int, truncate, (const char* a, off_t b), (a, b), noexcept)
TACIT_STOPPED(int, utimensat, (int a, const char* b, const timespec c[2], int d), (a, b, c, d),
              noexcept)

void pthread_exit(void* result) {
  if (Scheduler::current() == nullptr) TACIT_NATIVE(pthread_exit)(result);
  fprintf(stderr, "a simulated thread calls pthread_exit\n");
  abort();
}

}  // extern "C"

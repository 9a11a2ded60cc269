#pragma once

#include <pthread.h>

#include <cstddef>
#include <thread>
#include <utility>

namespace tacit {

// NamedThread for a name that is not a literal: it must live as long as the thread.
template <typename Body>
std::thread ThreadOfName(const char* name, Body body) {
  return std::thread([name, body = std::move(body)]() mutable {
    pthread_setname_np(pthread_self(), name);
    body();
  });
}

// Returns a thread that runs `body` and bears a name of at most 15 letters, which `top -H` and
// /proc show beside the processor time that the thread has used.
template <size_t kLetters, typename Body>
std::thread NamedThread(const char (&name)[kLetters], Body body) {
  static_assert(kLetters <= 16, "Linux keeps 15 letters of a thread's name");
  return ThreadOfName(name, std::move(body));
}

}  // namespace tacit

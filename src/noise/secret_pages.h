#pragma once

#include <openssl/crypto.h>
#include <sys/mman.h>

#include <memory>
#include <type_traits>

#include "base/check.h"

namespace tacit::noise {

template <class T>
struct SecretPagesDeleter {
  void operator()(T* secret) const {
    OPENSSL_cleanse(secret, sizeof(T));
    munmap(secret, sizeof(T));
  }
};

// A T on pages of its own: all zero at first, locked as far as the limit allows, kept out of core
// dumps, zeroed by the kernel in a forked child, wiped when released.
template <class T>
using SecretPages = std::unique_ptr<T, SecretPagesDeleter<T>>;

// `wiped_on_fork` tells whether the kernel can zero them in a child.
template <class T>
SecretPages<T> MakeSecretPages(bool* wiped_on_fork = nullptr) {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4096);
  void* pages =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TACIT_CHECK(pages != MAP_FAILED, "out of memory");
  // Best effort: an unprivileged process may lock only so much.
  (void)mlock(pages, sizeof(T));
  (void)madvise(pages, sizeof(T), MADV_DONTDUMP);
  const bool wiped = madvise(pages, sizeof(T), MADV_WIPEONFORK) == 0;
  if (wiped_on_fork != nullptr) *wiped_on_fork = wiped;
  return SecretPages<T>(static_cast<T*>(pages));
}

}  // namespace tacit::noise

#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace tacit::noise {

// Takes pages of their own: all zero at first, locked as far as the limit allows, kept out of core
// dumps, zeroed by the kernel in a forked child. `wiped_on_fork` reports whether the kernel can
// zero them.
void* TakeSecretPages(size_t bytes, bool* wiped_on_fork);
// Wipes the pages and gives them back.
void ReleaseSecretPages(void* pages, size_t bytes);

template <class T>
struct SecretPagesDeleter {
  void operator()(T* secret) const { ReleaseSecretPages(secret, sizeof(T)); }
};

// A T on such pages.
template <class T>
using SecretPages = std::unique_ptr<T, SecretPagesDeleter<T>>;

template <class T>
SecretPages<T> MakeSecretPages(bool* wiped_on_fork) {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4096);
  return SecretPages<T>(static_cast<T*>(TakeSecretPages(sizeof(T), wiped_on_fork)));
}

}  // namespace tacit::noise

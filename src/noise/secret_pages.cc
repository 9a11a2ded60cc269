#include "noise/secret_pages.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

#include "base/check.h"

namespace tacit::noise {

void* TakeSecretPages(size_t bytes, bool* wiped_on_fork) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TACIT_CHECK(pages != MAP_FAILED, "out of memory");
  // Best effort: an unprivileged process may lock only a limited amount.
  (void)mlock(pages, bytes);
  (void)madvise(pages, bytes, MADV_DONTDUMP);
  *wiped_on_fork = madvise(pages, bytes, MADV_WIPEONFORK) == 0;
  return pages;
}

void ReleaseSecretPages(void* pages, size_t bytes) {
  OPENSSL_cleanse(pages, bytes);
  munmap(pages, bytes);
}

}  // namespace tacit::noise

#include "noise/keystream.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace tacit::noise {
namespace {

constexpr uint64_t kAlive = 0x7461636974206b65;

void FillFromSystem(std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    TACIT_CHECK(got > 0, "the system gives no entropy");
    out = out.subspan(static_cast<size_t>(got));
  }
}

}  // namespace

// Whole pages of their own. All zero in a forked child.
struct Keystream::Secret {
  uint64_t alive;
  Key key;
  CounterBlock counter;
  alignas(64) std::array<uint8_t, kChunkBytes> chunk;
};

void Keystream::SecretDeleter::operator()(Secret* secret) const {
  OPENSSL_cleanse(secret, sizeof(Secret));
  munmap(secret, sizeof(Secret));
}

void Keystream::CipherDeleter::operator()(void* context) const {
  EVP_CIPHER_CTX_free(static_cast<EVP_CIPHER_CTX*>(context));
}

Keystream::Keystream() : Keystream(Key{}, CounterBlock{}) { Rekey(); }

Keystream::Keystream(const Key& key, const CounterBlock& counter) : cipher_(EVP_CIPHER_CTX_new()) {
  TACIT_CHECK(cipher_ != nullptr, "out of memory");
  void* pages =
      mmap(nullptr, sizeof(Secret), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TACIT_CHECK(pages != MAP_FAILED, "out of memory");
  secret_.reset(static_cast<Secret*>(pages));
  // Best effort: an unprivileged process may lock only so much.
  (void)mlock(pages, sizeof(Secret));
  (void)madvise(pages, sizeof(Secret), MADV_DONTDUMP);
  if (madvise(pages, sizeof(Secret), MADV_WIPEONFORK) != 0) owner_pid_ = getpid();
  secret_->key = key;
  secret_->counter = counter;
  SetKey();
}

Keystream::~Keystream() = default;

void Keystream::SetKey() {
  auto* context = static_cast<EVP_CIPHER_CTX*>(cipher_.get());
  TACIT_CHECK(EVP_EncryptInit_ex(context, EVP_aes_256_ctr(), nullptr, secret_->key.data(),
                                 secret_->counter.data()) == 1);
  OPENSSL_cleanse(secret_->key.data(), secret_->key.size());
  OPENSSL_cleanse(secret_->chunk.data(), secret_->chunk.size());
  secret_->alive = kAlive;
  used_ = kChunkBytes;
}

void Keystream::Rekey() {
  FillFromSystem(secret_->key);
  secret_->counter.fill(0);  // a new key may start at any block
  SetKey();
  if (owner_pid_ != 0) owner_pid_ = getpid();
}

bool Keystream::InForkedChild() const {
  return secret_->alive != kAlive || (owner_pid_ != 0 && owner_pid_ != getpid());
}

void Keystream::Refill() {
  auto& chunk = secret_->chunk;
  chunk.fill(0);
  int length = 0;
  TACIT_CHECK(EVP_EncryptUpdate(static_cast<EVP_CIPHER_CTX*>(cipher_.get()), chunk.data(), &length,
                                chunk.data(), kChunkBytes) == 1 &&
              length == static_cast<int>(kChunkBytes));
  used_ = 0;
}

std::span<const uint32_t> Keystream::Take(size_t words_max) {
  TACIT_CHECK(words_max >= 2);
  // Before anything of the chunk is given out: a child must not repeat its parent's leftovers.
  if (InForkedChild()) [[unlikely]]
    Rekey();
  if (used_ == kChunkBytes) Refill();
  const size_t words = std::min(words_max & ~size_t{1}, (kChunkBytes - used_) / sizeof(uint32_t));
  const auto* begin = reinterpret_cast<const uint32_t*>(secret_->chunk.data() + used_);
  used_ += words * sizeof(uint32_t);
  return {begin, words};
}

uint64_t Keystream::Next64() {
  uint64_t bits;
  std::memcpy(&bits, Take(2).data(), sizeof(bits));
  return bits;
}

}  // namespace tacit::noise

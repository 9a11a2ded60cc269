#include "noise/keystream.h"

#include <openssl/crypto.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

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

Keystream::Keystream() : Keystream(Key{}, CounterBlock{}) { Rekey(); }

Keystream::Keystream(const Key& key, const CounterBlock& counter, std::unique_ptr<AesCtr> cipher)
    : cipher_(std::move(cipher)) {
  bool wiped_on_fork = false;
  secret_ = MakeSecretPages<Secret>(&wiped_on_fork);
  if (!wiped_on_fork) owner_pid_ = getpid();
  secret_->key = key;
  secret_->counter = counter;
  SetKey();
}

Keystream::~Keystream() = default;

void Keystream::SetKey() {
  cipher_->Start(secret_->key, secret_->counter);
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
  cipher_->Fill(secret_->chunk);
  used_ = 0;
}

std::span<const uint32_t> Keystream::Take(size_t words_max, size_t granule) {
  const size_t bytes = granule * sizeof(uint32_t);
  TACIT_CHECK(granule > 0 && granule % 2 == 0 && bytes <= kChunkBytes && words_max >= granule);
  // Checks before it gives out any of the chunk: a child must not repeat its parent's leftovers.
  if (InForkedChild()) [[unlikely]]
    Rekey();
  if (kChunkBytes - used_ < bytes) Refill();
  const size_t words = std::min(words_max / granule, (kChunkBytes - used_) / bytes) * granule;
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

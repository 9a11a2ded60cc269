// Takes the place of OpenSSL's RAND_bytes, so that two worlds get the same lineages, keys and
// salts. The thread that opens stores calls it alone.
#include <openssl/rand.h>

#include <random>

#include "tape/public_ways.h"

namespace tacit::tape {
namespace {

std::mt19937_64& Chance() {
  static std::mt19937_64 chance;
  return chance;
}

}  // namespace

void StartChance(uint64_t seed) { Chance().seed(seed); }

}  // namespace tacit::tape

int RAND_bytes(unsigned char* bytes, int size) {  // NOLINT: OpenSSL's name
  for (int i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(tacit::tape::Chance()());
  return 1;
}

// A process that applies versions to a replica's store (replica_script.h), and dies where
// TACIT_TEST_CRASH_AT says.
//   store_replica_child PATH VERSIONS [AHEAD]
#include <cstdio>
#include <cstdlib>

#include "replica_script.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const uint64_t ahead = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  const auto done = tacit::store::ApplyTo(argv[1], std::strtoull(argv[2], nullptr, 10), ahead);
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
}

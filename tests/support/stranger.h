#pragma once

#include <unistd.h>

#include "base/check.h"

namespace tacit::test {

// Makes this process, all threads of it, a user who may not touch what the test has made, while the
// object lives. Of a test that is run by root; of others it changes nothing.
class Stranger {
 public:
  Stranger() {
    if (geteuid() == 0) TACIT_CHECK(seteuid(65534) == 0);
  }
  ~Stranger() {
    if (getuid() == 0) TACIT_CHECK(seteuid(0) == 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
};

}  // namespace tacit::test

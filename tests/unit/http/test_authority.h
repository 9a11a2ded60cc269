#pragma once

#include <cstdint>
#include <string>

#include "support/temp_dir.h"

struct evp_pkey_st;
struct x509_st;

namespace tacit::http {

// An authority that signs certificates for tests, with keys on the curve P-256.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  struct Wanted {
    std::string name = "server";
    // Seconds from now; 127.0.0.1 and localhost are in every certificate.
    int64_t from_s = -60, until_s = 86'400 * 365;
  };
  // Writes NAME.pem and NAME.key, mode 0600, into a folder.
  void Sign(const test::TempDir& dir, const Wanted& wanted) const;
  // Writes the authority's own certificate.
  void Write(const std::string& path) const;

 private:
  evp_pkey_st* key_;
  x509_st* certificate_;
};

}  // namespace tacit::http

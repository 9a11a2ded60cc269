#pragma once

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <string>

#include "support/process.h"

namespace tacit::test {

// Makes a key of Ed25519: NAME.key, closed to others, and NAME.pub.
inline void WriteLedgerKey(const TempDir& dir, const std::string& name) {
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  for (const bool open : {false, true}) {
    BIO* const bio = BIO_new(BIO_s_mem());
    ASSERT_EQ(open ? PEM_write_bio_PUBKEY(bio, key)
                   : PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr),
              1);
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio, &text);
    const std::string path = dir / (name + (open ? ".pub" : ".key"));
    WriteFile(path, {text, static_cast<size_t>(size)});
    ASSERT_EQ(::chmod(path.c_str(), open ? 0644 : 0600), 0);
    BIO_free(bio);
  }
  EVP_PKEY_free(key);
}

}  // namespace tacit::test

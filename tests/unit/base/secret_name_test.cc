#include "base/secret_name.h"

#include <gtest/gtest.h>

namespace tacit {
namespace {

TEST(SecretName, LibrdkafkasSecretsAre) {
  for (const char* name :
       {"sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem",
        "ssl.certificate.pem", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions", "sasl.jaas.config", "SSL.KEY.PASSWORD"})
    EXPECT_TRUE(IsSecretName(name)) << name;
}

TEST(SecretName, WhatAnOperatorHasToSeeIsNot) {
  for (const char* name :
       {"bootstrap.servers", "sasl.username", "sasl.mechanism", "ssl.ca.location",
        "ssl.key.location", "group.id", "client.id", "sasl.oauthbearer.method", ""})
    EXPECT_FALSE(IsSecretName(name)) << name;
}

}  // namespace
}  // namespace tacit

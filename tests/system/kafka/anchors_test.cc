// Anchors in a topic of a real broker: programs that sign at once add one whole anchor each, or
// none.
#include <gmock/gmock.h>
#include <openssl/pem.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cli/ledger/anchor_topic.h"
#include "system/kafka/broker.h"

namespace tacit::cli {
namespace {

privacy::AnchorSigner MakeSigner() {
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  BIO* const bio = BIO_new(BIO_s_mem());
  EXPECT_EQ(PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  auto signer = privacy::AnchorSigner::FromPem({text, static_cast<size_t>(size)});
  EXPECT_TRUE(signer);
  BIO_free(bio);
  EVP_PKEY_free(key);
  return *signer;
}

TEST(AnchorsBrokerTest, SignersAtOnceLeaveAWholeChain) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  const AnchorTopic topic{.properties = {{{"bootstrap.servers", test::SharedBroker().bootstrap()}}},
                          .topic = test::FreshName("anchors"),
                          .timeout = std::chrono::seconds(60)};
  test::SharedBroker().CreateTopic(topic.topic, 1);
  EXPECT_EQ(ReadAnchorTopic(topic)->size(), 0u);
  const privacy::AnchorSigner signer = MakeSigner();
  constexpr uint64_t kSigners = 3, kWanted = 6;
  std::atomic<uint64_t> added = 0, refused = 0;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kSigners; ++i)
    threads.emplace_back([&, i] {
      while (added < kWanted && refused < 300) {
        privacy::Anchor anchor;
        anchor.commit = i;
        const auto done =
            AppendAnchorToTopic(topic, anchor, signer, [](const auto&) { return Status(); });
        ++(done ? added : refused);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const auto anchors = ReadAnchorTopic(topic);
  ASSERT_TRUE(anchors) << anchors.error().message;
  EXPECT_EQ(anchors->size(), added);
  EXPECT_GT(refused, 0u);  // they did meet
  const privacy::AnchorKeyId id = signer.id();
  EXPECT_TRUE(privacy::CheckSignatures(*anchors, {&id, 1}));
  // The markers of transactions have offsets, too.
  EXPECT_NE(anchors->back().place, "offset " + std::to_string(anchors->size() - 1));
}

TEST(AnchorsBrokerTest, ATopicOfSeveralPartitionsOrNoneIsRefused) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  AnchorTopic topic{.properties = {{{"bootstrap.servers", test::SharedBroker().bootstrap()}}},
                    .topic = test::FreshName("anchors")};
  const auto add = [&] {
    return AppendAnchorToTopic(topic, {}, MakeSigner(), [](const auto&) { return Status(); });
  };
  EXPECT_EQ(add().error().code, ErrorCode::kNotFound);
  test::SharedBroker().CreateTopic(topic.topic, 2);
  EXPECT_EQ(add().error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace tacit::cli

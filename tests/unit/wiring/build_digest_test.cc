#include "wiring/build_digest.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace tacit::wiring {
namespace {

constexpr char kConfig[] = R"(
source:
  kind: kafka
  topic: clicks
  format: json
  json: {label: /clicked, user: /who}
schema:
  features:
    - {name: ad, kind: categorical, buckets: 100}
    - {name: place, kind: categorical, buckets: 30}
    - {name: price, kind: dense}
learners:
  - id: a
    model: {kind: linear}
    mechanism: {kind: sums}
    participation: {mode: once, batch: 5000}
    privacy: {unit: event, epsilon: 2, delta: 1.0e-6}
store: {path: store}
kafka: {bootstrap.servers: "b:9092", group.id: g}
)";

class BuildDigest : public ::testing::Test {
 protected:
  Result<Digest> Of(const std::vector<std::string>& overrides) const {
    TACIT_ASSIGN(config::Config config, config::Parse(kConfig, "c.yaml", overrides));
    TACIT_ASSIGN(const Assembly assembly, Assemble(std::move(config)));
    std::optional<train::OptOut> opt_out;
    if (!assembly.config.source.opt_out.empty()) {
      TACIT_ASSIGN(opt_out, train::OptOut::Read(assembly.config.source.opt_out, {}));
    }
    return BuildOf({.assembly = assembly,
                    .key = key_,
                    .sources = sources_,
                    .opt_out = opt_out ? &*opt_out : nullptr});
  }
  Digest Must(const std::vector<std::string>& overrides) const {
    const auto digest = Of(overrides);
    EXPECT_TRUE(digest) << digest.error().message;
    return digest ? *digest : Digest{};
  }
  std::string Write(const std::string& text) const {
    const std::string path = dir_ / "out";
    std::ofstream(path) << text;
    return "source.opt_out=" + path;
  }

  const test::TempDir dir_;
  workers::SharedKey key_{1};
  std::string sources_ = "s1";
};

TEST_F(BuildDigest, EachPartOfWhatIsSummedChangesIt) {
  const Digest plain = Must({});
  EXPECT_EQ(plain, Must({}));
  for (const char* change :
       {"source.json.label=/bought", "source.max_record_bytes=1000", "source.missing=reject",
        "schema.features.0.buckets=101", "schema.features.0.name=add",
        "schema.features.2.transform=identity", "learners.0.id=b", "learners.0.privacy.epsilon=3",
        "learners.0.privacy.delta=1e-7", "learners.0.model.crosses=[ad*place]",
        "learners.0.participation.batch=70000", "learners.0.mechanism.whole_columns=50",
        "learners.0.mechanism.deviations=7"})
    EXPECT_NE(plain, Must({change})) << change;
}

// A reader of the topics who guesses the whole configuration cannot test the guess without the key.
TEST_F(BuildDigest, KeyAndSourcesCount) {
  const Digest plain = Must({});
  key_[31] ^= 1;
  EXPECT_NE(plain, Must({}));
  key_[31] ^= 1;
  sources_ = "s2";
  EXPECT_NE(plain, Must({}));
  sources_ = "s1";
  EXPECT_EQ(plain, Must({}));
}

TEST_F(BuildDigest, PathsAddressesAndThreadsDoNot) {
  const Digest plain = Must({});
  for (const char* change :
       {"store.path=elsewhere", "serve.listen=127.0.0.1:7", "training.workers=7",
        "source.decode_threads=3", "source.topic=others", "source.tick_ms=5000",
        "source.round_ms=300", "source.schema_wait_ms=100", "kafka.bootstrap.servers=c:9092",
        "kafka.group.id=h", "memory.total_bytes=3GiB", "log.level=debug", "feed.topic=model",
        "dead_letters.path=letters"})
    EXPECT_EQ(plain, Must({change})) << change;
}

// Another address of a registry is the same to sums. No registry is not: schemas that are not
// listed would be dead letters there.
TEST_F(BuildDigest, ARegistryCountsAndItsAddressDoesNot) {
  const auto of = [&](const std::string& url) {
    return Must({"source.framing=confluent", "source.registry.schemas.7=accept",
                 "source.registry.url=" + url});
  };
  EXPECT_EQ(of("http://a:8081"), of("https://b:8082"));
  EXPECT_NE(of("http://a:8081"), of(""));
}

TEST_F(BuildDigest, TheBytesOfFilesCountAndTheirPlacesDoNot) {
  const Digest none = Must({});
  const Digest one = Must({Write("u1\n")});
  EXPECT_NE(one, none);
  const Digest two = Must({Write("u1\nu2\n")});
  EXPECT_NE(two, one);
  const std::string other = dir_ / "moved";
  std::ofstream(other) << "u1\n";
  EXPECT_EQ(one, Must({"source.opt_out=" + other}));
}

}  // namespace
}  // namespace tacit::wiring

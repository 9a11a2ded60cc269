// Heads of a ledger that are written down elsewhere: what was rolled back, copied, changed or
// signed by somebody else is named. The oracle of a signature is another library's: the vectors of
// RFC 8032 and keys in PEM made here.
#include "privacy/anchor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/text.h"

namespace tacit::privacy {
namespace {

using testing::HasSubstr;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

// The private and the public key of a seed, in PEM.
std::pair<std::string, std::string> KeysOf(std::string_view seed_hex) {
  std::array<uint8_t, 32> seed{};
  EXPECT_TRUE(FromHex(seed_hex, seed));
  EVP_PKEY* key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size());
  BIO *secret = BIO_new(BIO_s_mem()), *open = BIO_new(BIO_s_mem());
  EXPECT_EQ(PEM_write_bio_PrivateKey(secret, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
  EXPECT_EQ(PEM_write_bio_PUBKEY(open, key), 1);
  EVP_PKEY_free(key);
  return {TextOf(secret), TextOf(open)};
}

// RFC 8032, 7.1, tests 1 and 2.
constexpr const char* kSeed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
constexpr const char* kPublic = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
constexpr const char* kOtherSeed =
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";

AnchorSigner SignerOf(const char* seed) {
  return AnchorSigner::FromPem(KeysOf(seed).first).value();
}
AnchorKeyId KeyOf(const char* seed) { return ReadAnchorKey(KeysOf(seed).second).value(); }

class AnchorTest : public testing::Test {
 protected:
  AnchorTest() {
    for (const char* learner : {"a", "b"})
      EXPECT_TRUE(ledger_.Declare({.learner = learner, .epsilon = 8, .delta = 1e-6}));
    terms_.Add({.first = CommitSeq(1), .id = {1}});
  }

  // One commit with one step; another noise begins another entry.
  void Step(Ledger* ledger, const std::string& learner, double noise) {
    CommitCharge step{.learner = learner,
                      .charge = {.mechanism = MechanismKind::kDpSgd,
                                 .noise_multiplier = noise,
                                 .sigma_gradient = noise,
                                 .clip_gradient = 1},
                      .steps = 1,
                      .topic = "log",
                      .ranges = {{0, commit_, commit_ + 1}}};
    ++commit_;
    ledger->Append(CommitSeq(commit_), static_cast<int64_t>(commit_), {&step, 1}, Digest{}, "test");
  }
  void Step(const std::string& learner, double noise) { Step(&ledger_, learner, noise); }

  AnchoredLedger View(const Ledger& ledger) const {
    return {
        .entries = ledger.entries(), .lineage = "aa", .last = CommitSeq(commit_), .terms = &terms_};
  }

  // Adds the ledger's head as it is now.
  void Write(const AnchorSigner* signer = nullptr) {
    Anchor anchor = AnchorOf(View(ledger_), terms_.At(CommitSeq(commit_)));
    anchor.number = lines_.size();
    anchor.time_ms = 1'795'000'000'000;
    if (!lines_.empty()) anchor.previous = Sha256().Update(lines_.back()).Finish();
    if (signer != nullptr) signer->Sign(&anchor);
    lines_.push_back(anchor.Line());
  }
  Result<std::vector<Anchor>> Decoded() const {
    const std::vector<std::string_view> views(lines_.begin(), lines_.end());
    return DecodeAnchors(views);
  }
  Status Held(const Ledger& ledger) const { return CheckAnchors(Decoded().value(), View(ledger)); }

  Ledger ledger_;
  Terms terms_;
  uint64_t commit_ = 0;
  std::vector<std::string> lines_;
};

TEST_F(AnchorTest, EachHeadOfItsOwnLedgerIsHeld) {
  Write();  // nothing is charged yet
  for (int i = 0; i < 30; ++i) {
    Step(i % 3 == 0 ? "a" : "b", i % 7 == 0 ? 2 : 3);
    Write();
    ASSERT_TRUE(Held(ledger_)) << i;
  }
  EXPECT_TRUE(Held(ledger_)) << Held(ledger_).error().message;
  // A daemon's ledger, read from afar, has neither terms nor commits.
  const AnchoredLedger bare{.entries = ledger_.entries()};
  EXPECT_TRUE(CheckAnchors(Decoded().value(), bare));
}

TEST_F(AnchorTest, AnOlderLedgerIsNamed) {
  Step("a", 2);
  const Ledger older = ledger_;
  Step("a", 2);
  Write();
  const Status held = Held(older);
  ASSERT_FALSE(held);
  EXPECT_THAT(held.error().message, HasSubstr("was rolled back, or is an older copy: it ends with "
                                              "commit 1, and anchor 0"));
  // So it is where only commits that charge nothing are missing.
  const Anchor later = Anchor::Decode(lines_[0]).value();
  AnchoredLedger view = View(ledger_);
  view.last = CommitSeq(1);
  EXPECT_FALSE(CheckAnchors({&later, 1}, view));
}

// The same steps at the same commits, but one had another noise.
TEST_F(AnchorTest, AnotherLedgerOfTheSameLengthIsNamed) {
  Ledger other = ledger_;
  for (const double noise : {2.0, 3.0}) {
    Step("a", noise);
    --commit_;
    Step(&other, "a", noise == 3.0 ? 4.0 : noise);
  }
  Write();
  ASSERT_TRUE(Held(ledger_));
  const Status held = Held(other);
  ASSERT_FALSE(held);
  EXPECT_THAT(held.error().message, HasSubstr("is not the one that was anchored"));
  // It shows after the run has ended, too.
  Step(&other, "a", 5);
  EXPECT_FALSE(Held(other));
}

// A head is gone where its run went on, but not how many entries there were.
TEST_F(AnchorTest, AnotherLedgerIsNamedByHowManyEntriesItHad) {
  Ledger other = ledger_;
  for (int i = 0; i < 3; ++i) {
    Step("a", 2);
    --commit_;
    Step(&other, "a", i == 0 ? 2 : 3);
  }
  Write();
  Step("a", 2);
  --commit_;
  Step(&other, "a", 3);
  EXPECT_TRUE(Held(ledger_));
  const Status held = Held(other);
  ASSERT_FALSE(held);
  EXPECT_THAT(held.error().message, HasSubstr("as entry 1; this ledger had 2 entries at commit 3"));
}

// A copy that went on with the same steps: heads within a run are gone, terms are not.
TEST_F(AnchorTest, ACopyThatWentOnIsToldByItsTerm) {
  for (int i = 0; i < 3; ++i) Step("a", 2);
  Write();
  for (int i = 0; i < 3; ++i) Step("a", 2);
  EXPECT_TRUE(Held(ledger_));
  terms_ = {};
  terms_.Add({.first = CommitSeq(1), .id = {1}});
  terms_.Add({.first = CommitSeq(3), .id = {2}, .head_before = Digest{7}});
  const Status held = Held(ledger_);
  ASSERT_FALSE(held);
  EXPECT_THAT(held.error().message, HasSubstr("one of the two is a copy that went on by itself"));
}

TEST_F(AnchorTest, AnotherStoreIsNamedAndARestoredOneIsNot) {
  Step("a", 2);
  Write();
  AnchoredLedger view = View(ledger_);
  view.lineage = "bb";
  const Status held = CheckAnchors(Decoded().value(), view);
  ASSERT_FALSE(held);
  EXPECT_THAT(held.error().message, HasSubstr("of lineage aa; this one is of lineage bb"));
  const Ancestor before{.lineage = "aa", .through = CommitSeq(1), .head = ledger_.head()};
  view.ancestors = {&before, 1};
  EXPECT_TRUE(CheckAnchors(Decoded().value(), view));
}

TEST_F(AnchorTest, EveryFlippedBitOfAFileIsSeen) {
  const AnchorSigner signer = SignerOf(kSeed);
  const AnchorKeyId key = KeyOf(kSeed);
  for (int i = 0; i < 3; ++i) {
    Step("a", 2 + i);
    Write(&signer);
  }
  ASSERT_TRUE(CheckSignatures(Decoded().value(), {&key, 1}));
  for (std::string& line : lines_) {
    const std::string whole = line;
    for (size_t at = 0; at < whole.size(); ++at)
      for (const int bit : {0, 3, 5}) {
        line[at] = static_cast<char>(whole[at] ^ (1 << bit));
        const auto read = Decoded();
        EXPECT_FALSE(read && CheckSignatures(*read, {&key, 1})) << line;
      }
    line = whole;
  }
  // Without signatures the last line's own figures are held against the ledger alone, the others'
  // by the links as well.
  lines_[0][lines_[0].find("\"commit\":1") + 9] = '2';
  EXPECT_THAT(Decoded().error().message, HasSubstr("line 2 does not follow the line before it"));
}

TEST_F(AnchorTest, MissingLinesAreSeen) {
  for (int i = 0; i < 4; ++i) {
    Step("a", 2);
    Write();
  }
  const std::vector<std::string> whole = lines_;
  lines_.erase(lines_.begin() + 1);
  EXPECT_THAT(Decoded().error().message, HasSubstr("line 2 has anchor 2, where anchor 1 is due"));
  lines_ = {whole.begin() + 1, whole.end()};
  EXPECT_FALSE(Decoded());
  lines_ = whole;
  lines_.back().resize(lines_.back().size() - 1);
  EXPECT_THAT(Decoded().error().message, HasSubstr("line 4 is no anchor"));
  lines_ = whole;
  std::swap(lines_[1], lines_[2]);
  EXPECT_FALSE(Decoded());
}

TEST_F(AnchorTest, SignaturesAreOfTheirKey) {
  EXPECT_EQ(NameOf(KeyOf(kSeed)), std::string("ed25519:") + kPublic);
  EXPECT_EQ(NameOf(SignerOf(kSeed).id()), std::string("ed25519:") + kPublic);
  const AnchorSigner signer = SignerOf(kSeed);
  const std::vector<AnchorKeyId> key = {KeyOf(kSeed)}, other = {KeyOf(kOtherSeed)};
  Step("a", 2);
  Write(&signer);
  EXPECT_TRUE(CheckSignatures(Decoded().value(), key));
  EXPECT_THAT(CheckSignatures(Decoded().value(), other).error().message,
              HasSubstr("is signed with another key, ed25519:d75a98"));
  // A forger without the key takes a signature from elsewhere, or signs with another and names
  // ours.
  Anchor forged = Decoded().value()[0];
  forged.commit = 9;
  EXPECT_THAT(CheckSignatures({&forged, 1}, key).error().message,
              HasSubstr("has a signature that is not its key's"));
  forged = Decoded().value()[0];
  SignerOf(kOtherSeed).Sign(&forged);
  forged.key = key[0];
  EXPECT_FALSE(CheckSignatures({&forged, 1}, key));
  forged.key.reset();
  EXPECT_THAT(CheckSignatures({&forged, 1}, key).error().message, HasSubstr("is not signed"));
}

// Verified by OpenSSL itself, from the bytes that the grammar names.
TEST_F(AnchorTest, ASignatureIsOfTheBytesThatTheGrammarNames) {
  const AnchorSigner signer = SignerOf(kSeed);
  Step("a", 2);
  Write(&signer);
  const std::string& line = lines_[0];
  const size_t end = line.find(",\"signature\":\"");
  ASSERT_NE(end, line.npos);
  const std::string bytes = "tacit.ledger.anchor.v1\n" + line.substr(0, end);
  std::array<uint8_t, 64> signature{};
  ASSERT_TRUE(FromHex(std::string_view(line).substr(end + 14, 128), signature));
  const std::string pem = KeysOf(kSeed).second;
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  EVP_PKEY* key = PEM_read_bio_PUBKEY(bio, nullptr, nullptr, nullptr);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ASSERT_EQ(EVP_DigestVerifyInit(context, nullptr, nullptr, nullptr, key), 1);
  EXPECT_EQ(EVP_DigestVerify(context, signature.data(), signature.size(),
                             reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
            1);
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  BIO_free(bio);
}

TEST(AnchorKeyTest, OtherKeysAreRefused) {
  EXPECT_FALSE(AnchorSigner::FromPem("no key"));
  EXPECT_FALSE(ReadAnchorKey(""));
  EXPECT_FALSE(ReadAnchorKey(KeysOf(kSeed).first)) << "a private key is no public one";
  EVP_PKEY* other = EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519");
  BIO* bio = BIO_new(BIO_s_mem());
  ASSERT_EQ(PEM_write_bio_PrivateKey(bio, other, nullptr, nullptr, 0, nullptr, nullptr), 1);
  EVP_PKEY_free(other);
  EXPECT_THAT(AnchorSigner::FromPem(TextOf(bio)).error().message, HasSubstr("no key of Ed25519"));
}

}  // namespace
}  // namespace tacit::privacy

// The file of callers, tokens and their digests, the pace of a caller.
#include "http/callers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>
#include <regex>
#include <set>

#include "base/text.h"
#include "http/token.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace tacit::http {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr CallerRates kNoBounds = {0, 0, 0};

std::string LineOf(std::string_view role, std::string_view name, std::string_view token,
                   std::string_view user = "") {
  return CallerLine(role, name, DigestOfToken(token), user) + "\n";
}

// RFC 6750, 2.1 as a regular expression: "Bearer" 1*SP b64token, the scheme in any case (RFC 7235).
std::string OracleToken(const std::string& field) {
  static const std::regex form("[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)");
  std::smatch match;
  return std::regex_match(field, match, form) ? match[1].str() : "";
}

TEST(BearerTest, TheFieldIsReadAsTheStandardHasIt) {
  EXPECT_EQ(BearerToken("Bearer abc"), "abc");
  EXPECT_EQ(BearerToken("bEARER   a-._~+/9=="), "a-._~+/9==");
  for (const char* bad :
       {"", "Bearer", "Bearer ", "Bearer a b", "Bearer =a", "Bearer a=b", "Basic abc",
        "Bearer\tabc", " Bearer abc", "Bearer abc ", "Bearerabc", "Bearer a,b", "Bearer ="})
    EXPECT_EQ(BearerToken(bad), "") << bad;
}

// Texts are put together from pieces, so that many are nearly right.
size_t Disagreements(const std::function<std::string_view(std::string_view)>& read) {
  std::mt19937_64 random(20261126);
  const std::vector<std::string> pieces = {"Bearer", "bearer", "BEARER", " ",    "  ", "\t",
                                           "a",      "Zz09",   "-._~+/", "=",    "==", "\"",
                                           ",",      "é",      "\0",     "Basic"};
  size_t differ = 0, tokens = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string field = random() % 2 == 0 ? "Bearer " : "";
    for (size_t left = random() % 5; left > 0; --left) field += pieces[random() % pieces.size()];
    const std::string wanted = OracleToken(field);
    tokens += wanted.empty() ? 0 : 1;
    differ += read(field) == wanted ? 0 : 1;
  }
  EXPECT_GT(tokens, 10'000u);
  return differ;
}

TEST(BearerTest, FuzzedFieldsAgreeWithTheOracle) {
  EXPECT_EQ(Disagreements(BearerToken), 0u);
  // A reader that takes anything behind the scheme is found out.
  EXPECT_GT(Disagreements([](std::string_view field) {
              return field.starts_with("Bearer ") ? field.substr(7) : std::string_view();
            }),
            0u);
}

TEST(TokenTest, ANewOneIsLongRandomAndKnownByItsPrefix) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(NewToken());
  EXPECT_EQ(tokens.size(), 1000u);
  for (const std::string& token : tokens) {
    EXPECT_TRUE(std::regex_match(token, std::regex("tacit_[A-Za-z0-9_-]{43}"))) << token;
    EXPECT_EQ(BearerToken("Bearer " + token), token);
  }
}

// FIPS 180-4's example, so that `printf abc | sha256sum` may stand in for our own command.
TEST(TokenTest, TheDigestIsSha256) {
  EXPECT_EQ(ToHex(DigestOfToken("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(CallerTableTest, LinesAreRead) {
  const auto table = CallerTable::Parse("# who may ask\n\n" + LineOf("query", "web", "t1") +
                                            "  \t\n" + LineOf("user", "anna", "t2", "an na%") +
                                            LineOf("operator", "night", "t3"),
                                        "f", kNoBounds);
  ASSERT_TRUE(table.has_value()) << table.error().message;
  EXPECT_EQ(table->size(), 3u);
  const Caller* const anna = table->Find(DigestOfToken("t2"));
  ASSERT_NE(anna, nullptr);
  EXPECT_EQ(anna->role, CallerRole::kUser);
  EXPECT_EQ(anna->name, "anna");
  EXPECT_EQ(anna->user, "an na%");
  EXPECT_EQ(table->Find(DigestOfToken("t1"))->role, CallerRole::kQuery);
  EXPECT_EQ(table->Find(DigestOfToken("t3"))->role, CallerRole::kOperator);
  EXPECT_EQ(table->Find(DigestOfToken("t4")), nullptr);
}

TEST(CallerTableTest, ABadLineIsNamedAndNotRepeated) {
  const std::string token = "tacit_planted_secret", hex(64, 'a');
  for (const auto& [line, why] : std::vector<std::pair<std::string, std::string>>{
           {"query web", "a line is ROLE NAME"},
           {"reader web sha256:" + hex, "query, user or operator"},
           {"query we!b sha256:" + hex, "a name has at most"},
           {"query web " + token, "the token's digest"},
           {"query web sha256:" + token, "the token's digest"},
           {"query web sha256:" + hex + "a", "the token's digest"},
           {"user anna sha256:" + hex, "needs user=ID"},
           {"query web sha256:" + hex + " user=a", "for the role user alone"},
           {"user anna sha256:" + hex + " user=", "has no id"},
           {"user anna sha256:" + hex + " user=%x", "two hexadecimal digits"},
           {"user anna sha256:" + hex + " a", "a line is ROLE NAME"},
           {"query again sha256:" + ToHex(DigestOfToken("t1")), "an earlier line"}}) {
    const auto table =
        CallerTable::Parse(LineOf("query", "web", "t1") + line + "\n", "f", kNoBounds);
    ASSERT_FALSE(table.has_value()) << line;
    EXPECT_THAT(table.error().message, HasSubstr("f:2: ")) << line;
    EXPECT_THAT(table.error().message, HasSubstr(why)) << line;
    EXPECT_THAT(table.error().message, Not(HasSubstr("planted"))) << line;
  }
}

TEST(CallerTableTest, LinesOfAnyBytesAreReadOrRefused) {
  std::mt19937_64 random(7);
  const std::vector<std::string> pieces = {
      "query", "user",  "operator", " ",       "\t",
      "\n",    "\r\n",  "name",     "sha256:", ToHex(DigestOfToken("x")),
      "user=", "%41",   "%",        "#",       std::string(1, '\0'),
      "\xff",  "user=a"};
  size_t read = 0, refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (size_t left = random() % 12; left > 0; --left) text += pieces[random() % pieces.size()];
    CallerTable::Parse(text, "f", kNoBounds) ? ++read : ++refused;
  }
  EXPECT_GT(read, 100u);
  EXPECT_GT(refused, 100u);
}

// Every digest is compared, wherever the one that is wanted stands, and whether it is there.
TEST(CallerTableTest, ASearchLooksAtAll) {
  std::vector<Digest> digests;
  for (int i = 0; i < 100; ++i) digests.push_back(DigestOfToken(std::to_string(i)));
  size_t looks = 0;
  const auto counted = [&](const Digest& a, const Digest& b) {
    ++looks;
    return SameDigest(a, b);
  };
  for (const size_t at : {0u, 50u, 99u, 100u}) {
    looks = 0;
    EXPECT_EQ(PlaceOf(digests, DigestOfToken(std::to_string(at)), counted), at);
    EXPECT_EQ(looks, 100u);
  }
  // A search that ends where it finds is told from it by the same count.
  looks = 0;
  (void)std::ranges::find_if(digests, [&](const Digest& d) { return counted(d, digests[50]); });
  EXPECT_EQ(looks, 51u);
}

class CallersTest : public testing::Test {
 protected:
  void Write(const std::string& text, mode_t mode = 0600) {
    test::WriteFile(path_, text);
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  std::string WhyRefused() {
    const auto callers = Callers::Open(path_, kNoBounds);
    return callers ? "" : callers.error().message;
  }

  test::TempDir dir_;
  const std::string path_ = dir_ / "callers";
};

TEST_F(CallersTest, AFileThatOthersMayReadOrChangeIsRefused) {
  EXPECT_THAT(WhyRefused(), HasSubstr("serve.callers: " + path_ + ": No such file"));
  for (const mode_t mode : {0600, 0400, 0640, 0440}) {
    Write(LineOf("query", "web", "t1"), mode);
    EXPECT_EQ(WhyRefused(), "") << mode;
  }
  for (const mode_t mode : {0644, 0660, 0604, 0602, 0601}) {
    Write(LineOf("query", "web", "t1"), mode);
    EXPECT_THAT(WhyRefused(), HasSubstr(fmt::format("has mode {:04o}", mode)));
  }
  Write("query web\n");
  EXPECT_THAT(WhyRefused(), HasSubstr("serve.callers: " + path_ + ":1: "));
  ASSERT_EQ(::mkdir((path_ + "-folder").c_str(), 0700), 0);
  EXPECT_FALSE(Callers::Open(path_ + "-folder", kNoBounds).has_value());
}

TEST_F(CallersTest, AChangeIsSeenAndABadOneChangesNothing) {
  Write(LineOf("query", "web", "t1"));
  const auto opened = Callers::Open(path_, kNoBounds);
  ASSERT_TRUE(opened.has_value());
  Callers& callers = **opened;
  KnownCaller known;
  ASSERT_NE(known.Find(callers, "t1"), nullptr);
  EXPECT_EQ(known.Find(callers, "t1")->name, "web");
  EXPECT_EQ(known.Find(callers, "t2"), nullptr);
  const auto unchanged = callers.ReloadIfChanged();
  ASSERT_TRUE(unchanged.has_value());
  EXPECT_FALSE(*unchanged);

  Write(LineOf("query", "web", "t1") + "nonsense\n");
  EXPECT_FALSE(callers.ReloadIfChanged().has_value());
  EXPECT_NE(known.Find(callers, "t1"), nullptr);
  EXPECT_EQ(callers.ReloadIfChanged().value_or(true), false) << "it complains once";
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_FALSE(callers.ReloadIfChanged().has_value());
  EXPECT_NE(known.Find(callers, "t1"), nullptr);

  Write(LineOf("operator", "night", "t2"));
  EXPECT_EQ(callers.ReloadIfChanged().value_or(false), true);
  EXPECT_EQ(known.Find(callers, "t1"), nullptr) << "a token that was taken away";
  ASSERT_NE(known.Find(callers, "t2"), nullptr);
  EXPECT_EQ(known.Find(callers, "t2")->role, CallerRole::kOperator);
}

// A caller must not be able to spend a pace anew by having the file read again.
TEST_F(CallersTest, APaceOutlivesAReload) {
  Write(LineOf("query", "web", "t1"));
  const auto callers = Callers::Open(path_, {1, 0, 0});
  ASSERT_TRUE(callers.has_value());
  KnownCaller known;
  EXPECT_EQ(known.Find(**callers, "t1")->pace->Take(0), 0);
  EXPECT_GT(known.Find(**callers, "t1")->pace->Take(0), 0);
  ASSERT_TRUE((*callers)->Reload().has_value());
  EXPECT_GT(known.Find(**callers, "t1")->pace->Take(0), 0);
}

// Other rates bound callers at once, without the file; a caller whose rate stays has spent what it
// has.
TEST_F(CallersTest, RatesChangeWhileRequestsGoOn) {
  Write(LineOf("query", "web", "t1") + LineOf("operator", "night", "t2"));
  const auto callers = Callers::Open(path_, {1, 0, 1});
  ASSERT_TRUE(callers.has_value());
  KnownCaller known;
  const auto waits = [&](const char* token) {
    return known.Find(**callers, token)->pace->Take(0) > 0;
  };
  EXPECT_FALSE(waits("t1"));
  EXPECT_TRUE(waits("t1"));
  EXPECT_FALSE(waits("t2"));
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  (*callers)->SetRates({3, 0, 1});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(waits("t1"));
  EXPECT_TRUE(waits("t1"));
  EXPECT_TRUE(waits("t2"));
  Write(LineOf("query", "web", "t1"));
  ASSERT_TRUE((*callers)->Reload().has_value());
  EXPECT_TRUE(waits("t1")) << "the file is read with the new rates";
}

// A bucket of `rate` requests that fills up with time, in exact fractions: a request costs a second
// of nanoseconds, and a nanosecond gives `rate` of them.
class Bucket {
 public:
  explicit Bucket(uint32_t rate) : rate_(rate), full_(int64_t{rate} * kCost), held_(full_) {}
  bool Take(int64_t now_ns) {
    held_ = std::min(full_, held_ + (now_ns - last_ns_) * rate_);
    last_ns_ = now_ns;
    if (held_ < kCost) return false;
    held_ -= kCost;
    return true;
  }

 private:
  static constexpr int64_t kCost = 1'000'000'000;
  const int64_t rate_, full_;
  int64_t held_;
  int64_t last_ns_ = 0;
};

TEST(PaceTest, AgreesWithABucket) {
  std::mt19937_64 random(3);
  for (const uint32_t rate : {1u, 2u, 5u, 100u, 1000u}) {  // divisors of a second in nanoseconds
    Pace pace(rate);
    Bucket bucket(rate);
    int64_t now = 1'000'000;
    size_t taken = 0;
    for (int i = 0; i < 20'000; ++i) {
      now += static_cast<int64_t>(random() % (2'000'000'000 / rate));
      if (random() % 50 == 0) now += 3'000'000'000;
      for (size_t burst = random() % 4; burst > 0; --burst) {
        const int64_t wait = pace.Take(now);
        ASSERT_EQ(wait == 0, bucket.Take(now)) << "rate " << rate << ", turn " << i;
        taken += wait == 0 ? 1 : 0;
      }
    }
    EXPECT_GT(taken, 5000u);
  }
}

TEST(PaceTest, TheWaitThatItNamesIsEnoughAndNotTooLong) {
  Pace pace(4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pace.Take(100), 0);
  const int64_t wait = pace.Take(100);
  EXPECT_EQ(wait, 250'000'000);
  EXPECT_GT(pace.Take(100 + wait - 1), 0);
  EXPECT_EQ(pace.Take(100 + wait), 0);
  Pace without(0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(without.Take(0), 0);
}

}  // namespace
}  // namespace tacit::http

// gzip as strangers send it: what is whole is read, and nothing else; no bomb takes more memory
// than a body may. Then the same through a server, and answers that come packed.
#include "http/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <random>

#include "echo_server.h"

namespace tacit::http {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kMost = 1 << 20;

// Packs a text by zlib itself, with this level and strategy; with a name and an extra field in
// its head if that is asked for.
std::string Gzipped(std::string_view text, int level = 6, int strategy = Z_DEFAULT_STRATEGY,
                    bool long_head = false) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS + 16, 8, strategy), Z_OK);
  gz_header head{};
  std::string extra = "extra", name = "name", comment = "comment";
  head.extra = reinterpret_cast<Bytef*>(extra.data());
  head.extra_len = static_cast<uInt>(extra.size());
  head.name = reinterpret_cast<Bytef*>(name.data());
  head.comment = reinterpret_cast<Bytef*>(comment.data());
  head.hcrc = 1;
  if (long_head) {
    EXPECT_EQ(deflateSetHeader(&stream, &head), Z_OK);
  }
  std::string packed(text.size() + text.size() / 8 + 200, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

struct Tried {
  Unpacked how = Unpacked::kNotGzip;
  std::string text;
  uint64_t asked = 0;  // the most bytes that room was asked for
};

Tried Try(std::string_view packed, uint64_t most = kMost, uint64_t room = UINT64_MAX) {
  Tried tried;
  BodyBuffer out;
  tried.how = Unpack(
      packed, most,
      [&](uint64_t bytes) {
        tried.asked = std::max(tried.asked, bytes);
        return bytes <= room;
      },
      &out);
  tried.text = out.view();
  return tried;
}

// A text with repetitions and without.
std::string MixedText(std::mt19937_64& random, size_t size) {
  std::string text;
  while (text.size() < size) {
    if (!text.empty() && random() % 2 == 0) {
      const size_t from = random() % text.size();
      text += text.substr(from, 1 + random() % 100);
    } else {
      for (uint64_t i = 1 + random() % 40; i > 0; --i) text += static_cast<char>(random() % 256);
    }
  }
  text.resize(size);
  return text;
}

uint64_t GzipSeed() {
  return std::getenv("TACIT_SEED") != nullptr ? std::stoull(std::getenv("TACIT_SEED")) : 11;
}

// RFC 1952 and RFC 1951 by hand: a stored block with the CRC of "123456789" that catalogues of CRCs
// list (cbf43926).
TEST(GzipTest, AMemberByHandIsRead) {
  const std::string by_hand(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
      "\x01\x09\x00\xf6\xff"
      "123456789"
      "\x26\x39\xf4\xcb\x09\x00\x00\x00",
      32);
  EXPECT_EQ(Try(by_hand).how, Unpacked::kWhole);
  EXPECT_EQ(Try(by_hand).text, "123456789");
  EXPECT_EQ(Try(by_hand + by_hand).text, "123456789123456789");
  EXPECT_EQ(Try(by_hand + "x").how, Unpacked::kNotGzip);
  EXPECT_EQ(Try(by_hand + std::string(3, '\0')).how, Unpacked::kNotGzip);
  std::string other_sum = by_hand;
  other_sum[24] ^= 1;
  EXPECT_EQ(Try(other_sum).how, Unpacked::kNotGzip);
  EXPECT_EQ(Try("").how, Unpacked::kNotGzip);
  EXPECT_EQ(Try("{\"rows\":[]}").how, Unpacked::kNotGzip);
}

TEST(GzipTest, WhatIsPackedIsUnpackedAgain) {
  std::mt19937_64 random(GzipSeed());
  for (const size_t size : {0, 1, 100, 16383, 16384, 16385, 70000, 300000}) {
    const std::string text = MixedText(random, size);
    EXPECT_EQ(Try(Pack(text)).text, text);
    EXPECT_EQ(Try(Pack(text)).how, Unpacked::kWhole);
    for (const int level : {0, 1, 9})
      for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE})
        EXPECT_EQ(Try(Gzipped(text, level, strategy, level == 9)).text, text);
  }
}

TEST(GzipTest, WhatIsCutOffIsRefused) {
  std::mt19937_64 random(GzipSeed());
  const std::string packed = Gzipped(MixedText(random, 2000), 6, Z_DEFAULT_STRATEGY, true);
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_EQ(Try(packed.substr(0, size)).how, Unpacked::kNotGzip) << size;
}

// A changed bit is found, or is one of those in the head and behind the last block that mean
// nothing for the text.
TEST(GzipTest, NoFlippedBitGivesAnotherText) {
  std::mt19937_64 random(GzipSeed());
  const std::string text = MixedText(random, 900);
  const std::string packed = Gzipped(text);
  size_t same = 0;
  for (size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    std::string flipped = packed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Tried tried = Try(flipped);
    if (tried.how != Unpacked::kWhole) continue;
    EXPECT_EQ(tried.text, text) << bit;
    const bool is_filling = bit / 8 == packed.size() - 9;  // up to the whole byte
    EXPECT_TRUE(bit < 80 || is_filling) << bit;
    ++same;
  }
  EXPECT_LE(same, 57u);
}

TEST(GzipTest, DamagedPackagesAreReadOrRefused) {
  std::mt19937_64 random(GzipSeed());
  size_t whole = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text, packed;
    for (uint64_t members = 1 + random() % 3; members > 0; --members) {
      const std::string part = MixedText(random, random() % 500);
      text += part;
      packed +=
          Gzipped(part, static_cast<int>(random() % 10), Z_DEFAULT_STRATEGY, random() % 2 == 0);
    }
    ASSERT_EQ(Try(packed).text, text);
    for (uint64_t edits = random() % 4; edits > 0; --edits) {
      const size_t at = random() % packed.size();
      switch (random() % 4) {
        case 0:
          packed[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          packed.erase(at, 1 + random() % 30);
          break;
        case 2:
          packed.insert(at, 1 + random() % 4, static_cast<char>(random() % 256));
          break;
        default:
          packed += packed.substr(at);
      }
      if (packed.empty()) break;
    }
    const uint64_t most = random() % 3 == 0 ? random() % 1000 : kMost;
    const Tried tried = Try(packed, most);
    ASSERT_LE(tried.asked, most);
    ASSERT_LE(tried.text.size(), most);
    ++(tried.how == Unpacked::kWhole ? whole : refused);
  }
  EXPECT_GT(whole, 300u);
  EXPECT_GT(refused, 300u);
}

TEST(GzipTest, ABombIsStoppedAtTheLimit) {
  const std::string zeros(64 << 20, '\0');
  const std::string bomb = Gzipped(zeros, 9);
  ASSERT_LT(bomb.size(), 100'000u);
  const Tried tried = Try(bomb);
  EXPECT_EQ(tried.how, Unpacked::kTooLong);
  EXPECT_LE(tried.asked, kMost);
  const std::string as_long_as_may_be(kMost, 'x');
  EXPECT_EQ(Try(Gzipped(as_long_as_may_be)).how, Unpacked::kWhole);
  EXPECT_EQ(Try(Gzipped(as_long_as_may_be + "x")).how, Unpacked::kTooLong);
  // Many small members are one long text.
  std::string many;
  for (int i = 0; i < 3; ++i) many += Gzipped(std::string(kMost / 2, 'x'));
  EXPECT_EQ(Try(many).how, Unpacked::kTooLong);
  EXPECT_EQ(Try(bomb, kMost, 100'000).how, Unpacked::kNoRoom);
  EXPECT_LE(Try(bomb, kMost, 100'000).text.size(), 100'000u);
}

TEST(GzipTest, AcceptEncodingIsReadAsTheRfcSays) {
  for (const char* yes : {"gzip", "GZip", "x-gzip", "deflate, gzip", "gzip;q=0.5", "gzip; q=1",
                          "br;q=1, gzip;q=0.001", "*", "*;q=0.1", "identity;q=0, *",
                          "gzip;q=1,*;q=0", "gzip ;q=0.8", "\tgzip"})
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  for (const char* no : {"", "identity", "deflate, br", "gzip;q=0", "gzip;q=0.000", "gzip; q=0",
                         "*;q=0", "*, gzip;q=0", "gzipped", "g zip", ",", ";q=1"})
    EXPECT_FALSE(AcceptsGzip(no)) << no;
  EXPECT_EQ(CodingOf(""), BodyCoding::kNone);
  EXPECT_EQ(CodingOf("identity"), BodyCoding::kNone);
  EXPECT_EQ(CodingOf("GZIP "), BodyCoding::kGzip);
  EXPECT_EQ(CodingOf("x-gzip"), BodyCoding::kGzip);
  for (const char* unknown : {"br", "deflate", "gzip, gzip", "gzip, identity", "gzi"})
    EXPECT_EQ(CodingOf(unknown), BodyCoding::kUnknown) << unknown;
}

// Through a server.

Response SendBody(EchoServer& server, std::string_view body, const FieldList& fields) {
  const auto response = Fetch("http://" + server.address() + "/a", "POST", body, kPatience, fields);
  EXPECT_TRUE(response.has_value()) << response.error().message;
  return response ? *response : Response{};
}

ServerOptions WithBodies(uint32_t most) {
  ServerOptions options = OnLoopback();
  options.max_body_bytes = most;
  return options;
}

TEST(GzipBodyTest, AHandlerSeesThePlainBody) {
  EchoServer server(OnLoopback());
  std::mt19937_64 random(GzipSeed());
  for (const size_t size : {1, 1000, 300'000}) {
    const std::string text = MixedText(random, size);
    const Response response = SendBody(server, Gzipped(text), {{"Content-Encoding", "gzip"}});
    EXPECT_EQ(response.status, 200u);
    EXPECT_EQ(response.body, "POST /a? " + text + " public");
  }
  EXPECT_TRUE(Eventually("nothing is held any more",
                         [&] { return server->held_bytes(Role::kPublic) == 0; }));
  // Nothing needs no coding.
  EXPECT_EQ(SendBody(server, "", {{"Content-Encoding", "gzip"}}).body, "POST /a?  public");
  EXPECT_EQ(SendBody(server, "plain", {{"Content-Encoding", "identity"}}).body,
            "POST /a? plain public");
}

TEST(GzipBodyTest, AConnectionGoesOnBehindAPackedBody) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  const std::string packed = Gzipped("first");
  const std::string head = "POST /b HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n";
  ASSERT_TRUE(connection.Send(head + "Content-Length: " + std::to_string(packed.size()) +
                              "\r\n\r\n" + packed + MakeRequest("POST", "/c", "second")));
  EXPECT_EQ(connection.Receive()->body, "POST /b? first public");
  EXPECT_EQ(connection.Receive()->body, "POST /c? second public");
  // In chunks, one of them in two pieces.
  char size[8];
  std::snprintf(size, sizeof size, "%zx", packed.size() - 4);
  ASSERT_TRUE(connection.Send(head + "Transfer-Encoding: chunked\r\n\r\n4\r\n" +
                              packed.substr(0, 4) + "\r\n" + size + "\r\n" + packed.substr(4, 3)));
  ASSERT_TRUE(connection.Send(packed.substr(7) + "\r\n0\r\n\r\n"));
  EXPECT_EQ(connection.Receive()->body, "POST /b? first public");
}

TEST(GzipBodyTest, ABombGets413AndTakesNoMemory) {
  EchoServer server(WithBodies(1 << 20));
  const std::string bomb = Gzipped(std::string(64 << 20, '\0'), 9);
  ASSERT_LT(bomb.size(), 1u << 20);
  const Response response =
      SendBody(server, bomb, {{"Content-Encoding", "gzip"}, {"X-Request-Id", "r-1"}});
  EXPECT_EQ(response.status, 413u);
  EXPECT_THAT(response.body, HasSubstr("a body has at most 1048576 bytes, unpacked too"));
  EXPECT_EQ(response.Header("X-Request-Id"), "r-1");
  EXPECT_TRUE(Eventually("nothing is held any more",
                         [&] { return server->held_bytes(Role::kPublic) == 0; }));
  const std::string whole((1 << 20), 'x');
  EXPECT_EQ(SendBody(server, Gzipped(whole), {{"Content-Encoding", "gzip"}}).status, 200u);
  EXPECT_EQ(SendBody(server, Gzipped(whole + "x"), {{"Content-Encoding", "gzip"}}).status, 413u);
}

// Unpacked bytes count as held, as if it had come so.
TEST(GzipBodyTest, UnpackedBytesCountAsHeld) {
  ServerOptions options = WithBodies(1 << 20);
  options.max_held_bytes = 1 << 20;
  EchoServer server(options);
  RawConnection stalled(server.address());
  ASSERT_TRUE(stalled.Send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
                           std::string(600'000, 'b')));
  ASSERT_TRUE(
      Eventually("a body is held", [&] { return server->held_bytes(Role::kPublic) == 600'000; }));
  const std::string packed = Gzipped(std::string(400'000, 'x'));
  ASSERT_LT(packed.size(), 10'000u);
  const Response response = SendBody(server, packed, {{"Content-Encoding", "gzip"}});
  EXPECT_EQ(response.status, 503u);
  EXPECT_EQ(response.Header("Retry-After"), "1");
  EXPECT_EQ(
      SendBody(server, Gzipped(std::string(10'000, 'x')), {{"Content-Encoding", "gzip"}}).status,
      200u);
  EXPECT_EQ(server->held_bytes(Role::kPublic), 600'000u);
}

TEST(GzipBodyTest, WhatIsNotGzipIsRefused) {
  EchoServer server(OnLoopback());
  const std::string packed = Gzipped("a text that is cut off");
  for (const std::string& bad :
       {std::string("plain"), packed.substr(0, packed.size() - 1), packed + "more"}) {
    const Response response = SendBody(server, bad, {{"Content-Encoding", "gzip"}});
    EXPECT_EQ(response.status, 400u);
    EXPECT_THAT(response.body, HasSubstr("the body is not gzip"));
  }
  for (const char* coding : {"br", "deflate", "gzip, gzip"}) {
    const Response response = SendBody(server, packed, {{"Content-Encoding", coding}});
    EXPECT_EQ(response.status, 415u) << coding;
    EXPECT_EQ(response.Header("Accept-Encoding"), "gzip");
  }
  RawConnection twice(server.address());
  ASSERT_TRUE(
      twice.Send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
                 "Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(twice.Receive()->status, 415);
}

// Answers.

constexpr size_t kAnswerBytes = 5000;

EchoHandler::Function AnswersOf(size_t bytes, bool same_for_all, uint32_t status = 200) {
  return [=](const Request&, Reply* reply) {
    reply->status = status;
    reply->same_for_all = same_for_all;
    reply->body = std::string(bytes, 'a');
  };
}

TEST(GzipAnswerTest, OnlyAnswersThatAreTheSameForAllComePacked) {
  const FieldList wants = {{"Accept-Encoding", "br, gzip"}};
  EchoServer same(OnLoopback(), AnswersOf(kAnswerBytes, true));
  const Response packed = SendBody(same, "", wants);
  EXPECT_EQ(packed.Header("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.Header("Vary"), "Accept-Encoding");
  EXPECT_LT(packed.body.size(), 200u);
  EXPECT_EQ(Try(packed.body).text, std::string(kAnswerBytes, 'a'));
  const Response plain = SendBody(same, "", {});
  EXPECT_EQ(plain.Header("Content-Encoding"), "");
  EXPECT_EQ(plain.Header("Vary"), "Accept-Encoding") << "a cache must know";
  EXPECT_EQ(plain.body.size(), kAnswerBytes);
  EchoServer own(OnLoopback(), AnswersOf(kAnswerBytes, false));
  const Response of_caller = SendBody(own, "", wants);
  EXPECT_EQ(of_caller.Header("Content-Encoding"), "");
  EXPECT_EQ(of_caller.Header("Vary"), "");
  EXPECT_EQ(of_caller.body.size(), kAnswerBytes);
  EchoServer small(OnLoopback(), AnswersOf(1023, true));
  EXPECT_EQ(SendBody(small, "", wants).Header("Content-Encoding"), "");
  EchoServer failed(OnLoopback(), AnswersOf(kAnswerBytes, true, 404));
  EXPECT_EQ(SendBody(failed, "", wants).Header("Content-Encoding"), "");
}

TEST(GzipAnswerTest, HeadSaysWhatGetWould) {
  EchoServer server(OnLoopback(), AnswersOf(kAnswerBytes, true));
  RawConnection connection(server.address());
  for (const char* method : {"GET", "HEAD"}) {
    ASSERT_TRUE(connection.Send(std::string(method) +
                                " / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"));
    const auto response = connection.Receive(method == std::string("HEAD"));
    ASSERT_TRUE(response.has_value());
    EXPECT_THAT(response->head, HasSubstr("Content-Encoding: gzip"));
    EXPECT_THAT(response->head, Not(HasSubstr("Content-Length: 5000")));
    EXPECT_THAT(response->head,
                HasSubstr("Content-Length: " +
                          std::to_string(Pack(std::string(kAnswerBytes, 'a')).size()) + "\r\n"));
  }
}

}  // namespace
}  // namespace tacit::http

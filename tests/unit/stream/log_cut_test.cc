// Packed files that end within a member or frame: they are still being written, or their copy was
// broken off. All text and all cuts are made here.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/files/log.h"
#include "log_files.h"

namespace tacit::stream {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr size_t kRecordBytesMost = 300;

using Random = std::mt19937;

// Between `from` and `to`, both included.
size_t Between(Random& random, size_t from, size_t to) {
  return std::uniform_int_distribution<size_t>(from, to)(random);
}

// Lines of all lengths, empty and too long ones too, of bytes that hardly pack.
std::string RandomLines(Random& random, size_t lines) {
  std::string text = Between(random, 0, 3) == 0 ? "\xef\xbb\xbf" : "";
  for (size_t i = 0; i < lines; ++i) {
    const size_t kind = Between(random, 0, 19);
    const size_t length = kind == 0   ? 0
                          : kind == 1 ? Between(random, kRecordBytesMost - 2, kRecordBytesMost + 50)
                                      : Between(random, 1, 40);
    for (size_t k = 0; k < length; ++k) text += static_cast<char>(Between(random, ' ', 255));
    text += '\n';
  }
  if (lines > 0 && Between(random, 0, 3) == 0) text.pop_back();
  return text;
}

struct Packed {
  std::string bytes;
  std::set<size_t> whole_at;  // cut to this many bytes, the file would be a whole one
};

// Members or frames that are flushed now and then, so that what is before a cut can end anywhere.
class LogCutTest : public LogFilesTest {
 protected:
  LogCutTest() { spdlog::set_level(spdlog::level::err); }
  ~LogCutTest() override { spdlog::set_level(spdlog::level::info); }

  enum class Pack { kGzip, kZstd };
  static constexpr Pack kPacks[] = {Pack::kGzip, Pack::kZstd};

  static std::string NameOf(Pack pack) { return pack == Pack::kGzip ? "day.gz" : "day.zst"; }

  // A member or a frame, flushed behind each piece.
  static std::string PackPieces(Pack pack, const std::vector<std::string_view>& pieces) {
    return pack == Pack::kGzip ? GzipPieces(pieces) : ZstdPieces(pieces);
  }

  // Some members or frames, with an empty one and what may stand between or behind them.
  static Packed PackParts(Random& random, Pack pack, std::string_view text) {
    Packed packed;
    const auto add = [&](const std::string& bytes) {
      packed.bytes += bytes;
      packed.whole_at.insert(packed.bytes.size());
    };
    const size_t parts = Between(random, 1, 3);
    for (size_t part = 0; part < parts; ++part) {
      const size_t length = part + 1 == parts ? text.size() : Between(random, 0, text.size());
      const std::string_view mine = text.substr(0, length);
      text.remove_prefix(length);
      add(PackPieces(pack, PiecesOf(random, mine)));
      if (pack == Pack::kZstd && Between(random, 0, 2) == 0)
        add(std::string("\x5a\x2a\x4d\x18\4\0\0\0abcd", 12));  // a skippable frame
    }
    for (size_t zeros = pack == Pack::kGzip ? Between(random, 0, 2) : 0; zeros > 0; --zeros)
      add(std::string(1, '\0'));
    return packed;
  }

  std::unique_ptr<Source> OpenWith(LogSourceOptions options) const {
    options.max_record_bytes = kRecordBytesMost;
    auto source = OpenLogSource(std::move(options));
    EXPECT_TRUE(source) << (source ? "" : source.error().message);
    return source ? std::move(*source) : nullptr;
  }
  // Waits where a file is cut, as tacitd does.
  std::unique_ptr<Source> OpenWaiting(std::vector<std::string> files) const {
    return OpenWith({.files = std::move(files), .waits_for_rest = true});
  }
  // Fails there, as tacitd --until-end and all commands do.
  std::unique_ptr<Source> OpenToEnd(std::vector<std::string> files) const {
    return OpenWith({.files = std::move(files)});
  }

  void Append(const std::string& path, std::string_view bytes) const {
    std::ofstream(path, std::ios::app | std::ios::binary) << bytes;
  }

 private:
  static std::vector<std::string_view> PiecesOf(Random& random, std::string_view text) {
    std::vector<std::string_view> pieces;
    do {
      size_t length = std::min(text.size(), Between(random, 1, 400));
      const size_t newline = text.find('\n');
      if (Between(random, 0, 1) == 0 && newline != text.npos) length = newline + 1;
      pieces.push_back(text.substr(0, length));
      text.remove_prefix(length);
    } while (!text.empty());
    return pieces;
  }

  static std::string GzipPieces(const std::vector<std::string_view>& pieces) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string packed;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool last = i + 1 == pieces.size();
      packed.resize(stream.total_out + 2 * pieces[i].size() + 4096);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(pieces[i].data()));
      stream.avail_in = static_cast<uInt>(pieces[i].size());
      stream.next_out = reinterpret_cast<Bytef*>(packed.data() + stream.total_out);
      stream.avail_out = static_cast<uInt>(packed.size() - stream.total_out);
      EXPECT_EQ(deflate(&stream, last ? Z_FINISH : Z_SYNC_FLUSH), last ? Z_STREAM_END : Z_OK);
    }
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
  }

  // Without the checksum that the zstd program writes, which would be read after all else.
  static std::string ZstdPieces(const std::vector<std::string_view>& pieces) {
    const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                     ZSTD_freeCCtx);
    std::string packed;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool last = i + 1 == pieces.size();
      const size_t before = packed.size();
      packed.resize(before + 2 * pieces[i].size() + 4096);
      ZSTD_outBuffer out{packed.data(), packed.size(), before};
      ZSTD_inBuffer in{pieces[i].data(), pieces[i].size(), 0};
      EXPECT_EQ(ZSTD_compressStream2(context.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_flush),
                0u);
      packed.resize(out.pos);
    }
    return packed;
  }
};

// Sizes that a file has as it is written: cuts, and the whole of it at last.
std::vector<size_t> SizesOf(Random& random, const Packed& packed) {
  std::set<size_t> sizes;
  for (size_t i = Between(random, 1, 3); i > 0; --i)
    sizes.insert(Between(random, 0, packed.bytes.size() - 1));
  for (const size_t whole : packed.whole_at) sizes.erase(whole);
  sizes.insert(packed.bytes.size());
  return {sizes.begin(), sizes.end()};
}

void Extend(Delivered* all, const Delivered& more) {
  all->records.insert(all->records.end(), more.records.begin(), more.records.end());
  all->places.insert(all->places.end(), more.places.begin(), more.places.end());
  all->cuts.insert(all->cuts.end(), more.cuts.begin(), more.cuts.end());
}

TEST_F(LogCutTest, ACutFileGivesItsWholeLinesAndNothingBehindThem) {
  const std::string text = Lines(0, 20000);
  const std::string next = Write("next", "after\n");
  for (const Pack pack : kPacks) {
    const std::string whole = pack == Pack::kGzip ? Gzip(text) : Zstd(text);
    size_t most = 0;
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{3}, size_t{12}, whole.size() / 3,
                             whole.size() / 2, whole.size() - 9, whole.size() - 1}) {
      const std::string path = Write(NameOf(pack), whole.substr(0, cut));
      const Delivered all = ReadAll(*Open({path, next}));
      EXPECT_THAT(all.error, AllOf(HasSubstr("truncated "),
                                   HasSubstr(" at byte " + std::to_string(cut) + " of " + path),
                                   HasSubstr("put the whole file in its place"),
                                   HasSubstr("--past-cut " + path)));
      EXPECT_THAT(all.cuts, IsEmpty());
      ASSERT_LE(all.records.size(), 20000u);
      for (size_t i = 0; i < all.records.size(); ++i)
        ASSERT_EQ(all.records[i] + "\n", Lines(i, 1)) << "after a cut at " << cut;
      most = std::max(most, all.records.size());
    }
    EXPECT_EQ(most, 19999u) << "a last line comes with the end of its file";
  }
}

// The records learnt before a cut and those learnt of the whole file after a restart are the
// records of the whole file, each once and in order, and its end is told once.
TEST_F(LogCutTest, AnyCutIsGoneOnFromAfterARestart) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  size_t cuts = 0, with_records = 0;
  for (int round = 0; round < 60; ++round) {
    const Pack pack = kPacks[round % 2];
    const Packed packed = PackParts(random, pack, RandomLines(random, Between(random, 0, 60)));
    const std::vector<std::string> files = {Write(NameOf(pack), packed.bytes),
                                            Write("next", "after\n")};
    const Delivered whole = ReadAll(*OpenToEnd(files));
    ASSERT_EQ(whole.error, "");
    for (int attempt = 0; attempt < 20; ++attempt) {
      Delivered learnt;
      std::string identity;
      for (const size_t size : SizesOf(random, packed)) {
        SCOPED_TRACE(testing::Message() << "round " << round << ", cut at " << size);
        fs::remove(files[0]);  // to write over a file can wait for the disk
        Write(NameOf(pack), packed.bytes.substr(0, size));
        const auto source = OpenToEnd(files);
        const Status known = source->VerifyIdentity(identity);
        ASSERT_TRUE(known) << known.error().message;
        const Status sought = SeekTo(*source, learnt.records.size());
        ASSERT_TRUE(sought) << sought.error().message;
        const Delivered more = ReadAll(*source);
        Extend(&learnt, more);
        if (size == packed.bytes.size()) break;
        ++cuts;
        with_records += more.records.empty() ? 0 : 1;
        ASSERT_THAT(more.error, HasSubstr(fmt::format(" at byte {} of {}", size, files[0])));
        ASSERT_THAT(more.cuts, IsEmpty());
        // The last commit may have been anywhere before.
        if (Between(random, 0, 1) == 0) learnt.KeepFirst(Between(random, 0, learnt.records.size()));
        identity = source->Identity();
      }
      ASSERT_EQ(learnt.records, whole.records);
      ASSERT_EQ(learnt.places, whole.places);
      ASSERT_EQ(learnt.cuts, whole.cuts);
    }
  }
  EXPECT_GT(cuts, 1000u);
  EXPECT_GT(with_records, cuts / 4);
}

// The same without a restart: bytes are appended, and the source goes on by itself.
TEST_F(LogCutTest, ASourceThatWaitsGoesOnAsTheFileGrows) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Pack pack = kPacks[round % 2];
    const Packed packed = PackParts(random, pack, RandomLines(random, Between(random, 1, 60)));
    const std::vector<std::string> files = {Write(NameOf(pack), packed.bytes),
                                            Write("next", "after\n")};
    const Delivered whole = ReadAll(*OpenToEnd(files));
    Write(NameOf(pack), "");
    const auto source = OpenWaiting(files);
    Delivered learnt;
    size_t written = 0;
    for (const size_t size : SizesOf(random, packed)) {
      Append(files[0], packed.bytes.substr(written, size - written));
      written = size;
      for (int look = 0; look < 3; ++look) Extend(&learnt, ReadAll(*source));
      if (size == packed.bytes.size()) break;
      ASSERT_THAT(learnt.cuts, IsEmpty());
      EXPECT_TRUE(source->health().connected);
      EXPECT_THAT(source->health().alert,
                  HasSubstr(fmt::format(" at byte {} of {}", size, files[0])));
    }
    ASSERT_EQ(learnt.records, whole.records);
    ASSERT_EQ(learnt.places, whole.places);
    ASSERT_EQ(learnt.cuts, whole.cuts);
    EXPECT_EQ(source->health().alert, "");
  }
}

// More than what identifies a file was there: it is read on where it was, and not from its front.
TEST_F(LogCutTest, ALargeFileIsReadOnWhereItWas) {
  Random random(1);
  std::string text;
  while (text.size() < 5'000'000) text += RandomLines(random, 50'000);
  for (const Pack pack : kPacks) {
    const std::string packed = pack == Pack::kGzip ? Gzip(text) : Zstd(text);
    ASSERT_GT(packed.size(), size_t{3} << 20);
    const std::vector<std::string> files = {Write(NameOf(pack), packed)};
    const Delivered whole = ReadAll(*OpenToEnd(files));
    Write(NameOf(pack), packed.substr(0, 3'000'000));
    const auto source = OpenWaiting(files);
    Delivered learnt = ReadAll(*source);
    EXPECT_GT(learnt.records.size(), whole.records.size() / 2);
    Append(files[0], packed.substr(3'000'000, 100'000));
    Extend(&learnt, ReadAll(*source));
    EXPECT_THAT(source->health().alert, HasSubstr("at byte 3100000 of "));
    Append(files[0], packed.substr(3'100'000));
    Extend(&learnt, ReadAll(*source));
    EXPECT_TRUE(learnt.records == whole.records);
    EXPECT_EQ(learnt.cuts, whole.cuts);
  }
}

// cp writes the file anew, rsync and mv put another one there: the old bytes are there, and more.
TEST_F(LogCutTest, TheWholeFileMayBePutInThePlaceOfTheCutOne) {
  Random random(1);
  std::string text;
  while (text.size() < 5'000'000) text += RandomLines(random, 50'000);
  for (const size_t cut : {size_t{20'000}, size_t{3'000'000}}) {
    const std::string packed = Gzip(text);
    const std::vector<std::string> files = {Write("day.gz", packed)};
    const Delivered whole = ReadAll(*OpenToEnd(files));
    for (const bool renamed : {false, true}) {
      Write("day.gz", packed.substr(0, cut));
      const auto source = OpenWaiting(files);
      Delivered learnt = ReadAll(*source);
      EXPECT_THAT(learnt.records, Not(IsEmpty()));
      if (renamed) {
        fs::remove(files[0]);
        EXPECT_THAT(ReadAll(*source).records, IsEmpty());
        fs::rename(Write("part", packed), files[0]);
      } else {
        for (const size_t written : {size_t{0}, cut / 2, cut}) {
          Write("day.gz", packed.substr(0, written));
          EXPECT_THAT(ReadAll(*source).records, IsEmpty());
          EXPECT_THAT(source->health().alert, HasSubstr(fmt::format("at byte {} of ", cut)));
        }
        Write("day.gz", packed);
      }
      const Delivered rest = ReadAll(*source);
      EXPECT_EQ(rest.error, "");
      Extend(&learnt, rest);
      EXPECT_TRUE(learnt.records == whole.records);
      EXPECT_EQ(learnt.cuts, whole.cuts);
    }
  }
}

// An end, and a cut, are found where the buffer that takes the lines is just full.
TEST_F(LogCutTest, LinesThatFillABufferAreWholeOrCutAsOthers) {
  for (const size_t bytes : {(256u << 10) - 1, 256u << 10, (256u << 10) + 1, 512u << 10}) {
    std::string text;
    while (text.size() < bytes) text += std::string(63, 'x') + "\n";
    text.resize(bytes - 1);
    text += '\n';
    const size_t lines = static_cast<size_t>(std::ranges::count(text, '\n'));
    for (const Pack pack : kPacks) {
      const Delivered all = ReadAll(*OpenWaiting({Write("day", PackPieces(pack, {text}))}));
      EXPECT_EQ(all.records.size(), lines);
      EXPECT_THAT(all.cuts, testing::SizeIs(1)) << all.error;
      const std::string whole = PackPieces(pack, {text, ""});
      const auto waiting = OpenWaiting({Write("day", whole.substr(0, whole.size() - 1))});
      EXPECT_EQ(ReadAll(*waiting).records.size(), lines - 1);
      Write("day", whole);
      const Delivered rest = ReadAll(*waiting);
      EXPECT_EQ(rest.records.size(), 1u);
      EXPECT_THAT(rest.cuts, testing::SizeIs(1)) << rest.error;
    }
  }
}

TEST_F(LogCutTest, AnotherFileInThePlaceOfTheCutOneIsRefused) {
  const std::string packed = Gzip(Lines(0, 5000)), other = Gzip(Lines(7, 20000));
  const auto source = OpenWaiting({Write("day.gz", packed.substr(0, packed.size() / 2))});
  EXPECT_THAT(ReadAll(*source).records, Not(IsEmpty()));
  Write("day.gz", other);
  const Delivered more = ReadAll(*source);
  EXPECT_THAT(more.records, IsEmpty());
  EXPECT_THAT(more.error, AllOf(HasSubstr("/day.gz: has changed since it was read"),
                                HasSubstr("Put it back as it was")));
}

// A few bytes of a file identify it hardly. Once more of it was there, more has to be the same.
TEST_F(LogCutTest, AFileThatWasCutAtItsFrontIsIdentifiedByMoreLater) {
  const std::string packed = Gzip(Lines(0, 5000)), other = Gzip(Lines(7, 20000));
  const std::vector<std::string> files = {Write("day.gz", packed.substr(0, 10))};
  const auto source = OpenWaiting(files);
  ReadAll(*source);
  Write("day.gz", packed.substr(0, packed.size() / 2));
  ReadAll(*source);
  const std::string identity = source->Identity();
  Write("day.gz", other);  // the first ten bytes of gzip files are the same
  EXPECT_THAT(OpenToEnd(files)->VerifyIdentity(identity).error().message,
              HasSubstr("/day.gz: has changed"));
}

// A position may lie behind what a file that was cut once more has. No later record takes its
// place.
TEST_F(LogCutTest, AFileThatIsShorterThanWhatWasReadIsNotGoneOnFrom) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += fmt::format("{:x}\n", uint64_t{0x9e3779b97f4a7c15} * i);
  const std::string packed = Gzip(text);
  ASSERT_GT(packed.size(), size_t{2'500'000});
  const std::vector<std::string> files = {Write("day.gz", packed.substr(0, 2'000'000))};
  const auto source = OpenToEnd(files);
  const uint64_t read = ReadAll(*source).records.size();
  Write("day.gz", packed.substr(0, 1'500'000));
  const auto again = OpenToEnd(files);
  ASSERT_TRUE(again->VerifyIdentity(source->Identity()));
  const Status sought = SeekTo(*again, read);
  ASSERT_FALSE(sought);
  EXPECT_EQ(sought.error().code, ErrorCode::kIo) << "a later start may find the rest";
  EXPECT_THAT(sought.error().message, HasSubstr("at byte 1500000 of " + files[0]));
}

// The operator says that no more of it exists: the cut is damage, as it is in a corrupt file.
TEST_F(LogCutTest, ACutThatIsPassedIsAFaultAndTheNextFileGoesOn) {
  const std::string packed = Gzip(Lines(0, 5000));
  const std::vector<std::string> files = {Write("day.gz", packed.substr(0, packed.size() / 2)),
                                          Write("next", "after\n")};
  const auto waiting = OpenWaiting(files);
  const Delivered before = ReadAll(*waiting);
  const auto passing = OpenWith({.files = files, .waits_for_rest = true, .past_cut = files[0]});
  ASSERT_TRUE(passing->VerifyIdentity(waiting->Identity()));
  ASSERT_TRUE(SeekTo(*passing, before.records.size()));
  const std::string fault =
      fmt::format("FAULT truncated gzip data at byte {} of {}", packed.size() / 2, files[0]);
  EXPECT_THAT(ReadAll(*passing).records, ElementsAre(fault, "after"));
  // Its end is known from then on.
  const auto later = OpenWaiting(files);
  ASSERT_TRUE(later->VerifyIdentity(passing->Identity()));
  ASSERT_TRUE(SeekTo(*later, before.records.size()));
  EXPECT_THAT(ReadAll(*later).records, ElementsAre(fault, "after"));
  Write("day.gz", packed);
  EXPECT_THAT(OpenWaiting(files)->VerifyIdentity(passing->Identity()).error().message,
              HasSubstr("/day.gz: has grown"));
}

TEST_F(LogCutTest, NoOtherCutIsPassed) {
  const std::string packed = Gzip(Lines(0, 5000));
  const std::vector<std::string> files = {Write("a.gz", packed.substr(0, packed.size() / 2)),
                                          Write("b.gz", packed.substr(0, packed.size() / 3))};
  const auto passing = OpenWith({.files = files, .past_cut = files[0]});
  const Delivered all = ReadAll(*passing);
  EXPECT_THAT(all.cuts, testing::SizeIs(1));
  EXPECT_THAT(all.error, HasSubstr("of " + files[1]));
  auto none = OpenLogSource({.files = files, .past_cut = PathOf("c.gz")});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(none.error().message, HasSubstr("--past-cut " + PathOf("c.gz")));
}

// Corrupt data does not become whole by waiting.
TEST_F(LogCutTest, CorruptDataIsDamageAlsoWhereTheFileIsCutBehindIt) {
  std::string packed = Gzip(Lines(0, 5000));
  packed.resize(packed.size() - 20);
  for (size_t i = packed.size() / 2; i < packed.size() / 2 + 400; ++i) packed[i] = '\xff';
  const Delivered all = ReadAll(*OpenToEnd({Write("day.gz", packed), Write("next", "after\n")}));
  ASSERT_GE(all.records.size(), 2u);
  EXPECT_THAT(all.records[all.records.size() - 2], HasSubstr("FAULT corrupt gzip data"));
  EXPECT_EQ(all.records.back(), "after");
}

// Neither a plain file nor one that was cut between members tells that it is not whole. It is
// refused when it has grown, and the refusal says how to go on.
TEST_F(LogCutTest, AFileThatGrewBehindItsEndIsGoneOnFromAsTheRefusalSays) {
  const std::string first = Lines(0, 1000), second = Lines(1000, 500);
  const std::string cut[] = {first, Gzip(first), Zstd(first)};
  const std::string whole[] = {first + second, cut[1] + Gzip(second), cut[2] + Zstd(second)};
  for (const size_t i : {0u, 1u, 2u}) {
    const std::vector<std::string> files = {Write("day", cut[i])};
    const auto source = OpenToEnd(files);
    Delivered learnt = ReadAll(*source);
    EXPECT_THAT(learnt.cuts, ElementsAre("day@1000"));
    Write("day", whole[i]);
    const auto grown = OpenToEnd(files)->VerifyIdentity(source->Identity());
    ASSERT_FALSE(grown);
    EXPECT_EQ(grown.error().code, ErrorCode::kRefused);
    const auto size = cut[i].size();
    EXPECT_THAT(
        grown.error().message,
        AllOf(HasSubstr(fmt::format("from {} to {} bytes", size, whole[i].size())),
              HasSubstr(fmt::format("(head -c {})", size)),
              HasSubstr("(tail -n +1001, unpacked) into a new file"), HasSubstr("another name")));
    Write("day", whole[i].substr(0, size));
    const auto again = OpenToEnd({files[0], Write("day-rest", second)});
    ASSERT_TRUE(again->VerifyIdentity(source->Identity()));
    ASSERT_TRUE(SeekTo(*again, 1000));
    Extend(&learnt, ReadAll(*again));
    EXPECT_EQ(learnt.records.size(), 1500u);
    EXPECT_EQ(learnt.records.back() + "\n", Lines(1499, 1));
  }
}

}  // namespace
}  // namespace tacit::stream

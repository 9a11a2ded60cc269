// Avro's object container files as a log. They are made here, after the specification;
// tests/system/avro has files that fastavro wrote.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "base/files/log.h"
#include "event/avro/schemas.h"
#include "log_files.h"

namespace tacit::stream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kTextSchema =
    R"({"type":"record","name":"R","fields":[{"name":"text","type":"string"}]})";
const std::string kContainerSync = "0123456789abcdef";

std::string AvroLong(int64_t value) {
  std::string bytes;
  event::PutAvroLong(value, &bytes);
  return bytes;
}
std::string AvroText(std::string_view text) {
  return AvroLong(static_cast<int64_t>(text.size())).append(text);
}

class LogContainerTest : public LogFilesTest {
 protected:
  LogContainerTest() { spdlog::set_level(spdlog::level::err); }
  ~LogContainerTest() override { spdlog::set_level(spdlog::level::info); }

  static std::string Header(std::string_view codec, std::string_view schema = kTextSchema) {
    return "Obj\x01" + AvroLong(2) + AvroText("avro.schema") + AvroText(schema) +
           AvroText("avro.codec") + AvroText(codec) + AvroLong(0) + kContainerSync;
  }
  static std::string Deflate(std::string_view content) {
    // The same data without gzip's header and trailer.
    const std::string packed = Gzip(content);
    return packed.substr(10, packed.size() - 18);
  }
  static std::string Block(std::string_view codec, const std::vector<std::string>& texts) {
    std::string records;
    for (const std::string& text : texts) records += AvroText(text);
    if (codec == "deflate") records = Deflate(records);
    if (codec == "zstandard") records = Zstd(records);
    return AvroLong(static_cast<int64_t>(texts.size())) + AvroText(records) + kContainerSync;
  }

  std::unique_ptr<Source> OpenAvro(std::vector<std::string> files, std::string past_cut = "",
                                   size_t records_per_poll = 4096) {
    auto source = OpenLogSource({.files = std::move(files),
                                 .max_record_bytes = 1000,
                                 .records_per_poll = records_per_poll,
                                 .past_cut = std::move(past_cut),
                                 .avro = schemas_});
    EXPECT_TRUE(source) << (source ? "" : source.error().message);
    return source ? std::move(*source) : nullptr;
  }
  std::string Refusal(const std::string& file) {
    const auto source = OpenLogSource({.files = {file}, .avro = schemas_});
    return source ? "" : source.error().message;
  }
  // The texts of records, whose frames must name the schema of their file.
  Delivered TextsOf(Source& source, size_t records_max = SIZE_MAX) {
    Delivered all = ReadAll(source, records_max);
    for (std::string& record : all.records) {
      if (record.starts_with("FAULT ")) continue;
      event::Unframed unframed;
      EXPECT_FALSE(event::Unframe(record.substr(event::kGuidFrameBytes),
                                  record.substr(0, event::kGuidFrameBytes),
                                  event::PayloadKind::kAvro, &unframed));
      EXPECT_NE(schemas_->Find(unframed.schema), nullptr);
      event::AvroBytes bytes(std::string_view(record).substr(event::kGuidFrameBytes));
      record = bytes.Bytes();
    }
    return all;
  }

  const std::shared_ptr<event::AvroSchemas> schemas_ = *event::AvroSchemas::Make("", nullptr);
};

TEST_F(LogContainerTest, RecordsOfEachCodecAreRead) {
  for (const std::string codec : {"null", "deflate", "zstandard"}) {
    const std::string path =
        Write("a.avro", Header(codec) + Block(codec, {"a", "", std::string(300, 'x')}) +
                            Block(codec, {}) + Block(codec, {"b"}));
    const Delivered all = TextsOf(*OpenAvro({path}));
    EXPECT_EQ(all.error, "");
    EXPECT_THAT(all.records, ElementsAre("a", "", std::string(300, 'x'), "b")) << codec;
    EXPECT_THAT(all.places, ElementsAre("a.avro:1", "a.avro:2", "a.avro:3", "a.avro:4"));
    EXPECT_THAT(all.cuts, ElementsAre("a.avro@4"));
  }
  // A file may be packed once more, and have no record.
  const Delivered all =
      TextsOf(*OpenAvro({Write("empty.avro", Header("null")),
                         Write("b.gz", Gzip(Header("null") + Block("null", {"c"})))}));
  EXPECT_THAT(all.records, ElementsAre("c"));
  EXPECT_THAT(all.cuts, ElementsAre("empty.avro@0", "b.gz@1"));
}

TEST_F(LogContainerTest, WhatIsNotReadIsRefusedByName) {
  EXPECT_THAT(Refusal(Write("a", "{\"label\":1}\n")),
              AllOf(HasSubstr(PathOf("a")), HasSubstr("is no Avro container file")));
  for (const std::string codec : {"snappy", "bzip2", "xz"})
    EXPECT_THAT(Refusal(Write("a", Header(codec))),
                AllOf(HasSubstr(PathOf("a")), HasSubstr("its codec is '" + codec + "'")));
  EXPECT_THAT(Refusal(Write("a", Header("null", "{"))),
              AllOf(HasSubstr(PathOf("a")), HasSubstr("no valid Avro schema: byte 1")));
  EXPECT_THAT(Refusal(Write("a", Header("null", "\"string\""))),
              HasSubstr("that of no record with fields"));
  EXPECT_THAT(Refusal(Write("a", "Obj\x01" + std::string(3 << 20, '\x80'))),
              HasSubstr("its header is damaged"));
}

// Each size that a file has as it is written is a cut, or the end of a block.
TEST_F(LogContainerTest, AnyCutIsGoneOnFrom) {
  std::vector<std::string> texts;
  for (int i = 0; i < 12; ++i) texts.push_back(std::string(static_cast<size_t>(i), 'x') + "!");
  for (const std::string codec : {"null", "deflate", "zstandard"}) {
    std::string file = Header(codec);
    std::set<size_t> whole_at = {file.size()};
    for (size_t i = 0; i < texts.size(); i += 4) {
      file += Block(codec, {texts.begin() + i, texts.begin() + i + 4});
      whole_at.insert(file.size());
    }
    size_t most = 0;
    for (size_t cut = 0; cut < file.size(); ++cut) {
      if (whole_at.contains(cut)) continue;
      const std::string path = Write("a.avro", file.substr(0, cut));
      const auto source = OpenAvro({path});
      Delivered learnt = TextsOf(*source);
      ASSERT_THAT(learnt.error, AllOf(HasSubstr("truncated Avro "),
                                      HasSubstr(fmt::format(" at byte {} of {}", cut, path)),
                                      HasSubstr("--past-cut " + path)));
      ASSERT_THAT(learnt.cuts, IsEmpty());
      most = std::max(most, learnt.records.size());
      const std::string identity = source->Identity();
      Write("a.avro", file);
      const auto again = OpenAvro({path});
      ASSERT_TRUE(again->VerifyIdentity(identity));
      ASSERT_TRUE(SeekTo(*again, learnt.records.size()));
      const Delivered rest = TextsOf(*again);
      learnt.records.insert(learnt.records.end(), rest.records.begin(), rest.records.end());
      ASSERT_EQ(learnt.records, texts) << codec << ", cut at " << cut;
      ASSERT_THAT(rest.cuts, ElementsAre("a.avro@12"));
    }
    EXPECT_EQ(most, 8u);
  }
}

TEST_F(LogContainerTest, TheSameReaderGoesOnWhenTheRestIsWritten) {
  const std::string file = Header("null") + Block("null", {"a", "b"}) + Block("null", {"c"});
  const std::string path = Write("a.avro", file.substr(0, file.size() - 1));
  auto source = OpenLogSource({.files = {path}, .waits_for_rest = true, .avro = schemas_});
  ASSERT_TRUE(source);
  EXPECT_THAT(TextsOf(**source).records, ElementsAre("a", "b"));
  EXPECT_THAT((*source)->health().alert, HasSubstr("truncated Avro block at byte "));
  Write("a.avro", file);
  const Delivered rest = TextsOf(**source);
  EXPECT_THAT(rest.records, ElementsAre("c"));
  EXPECT_EQ(rest.first_offset, 2u);
  EXPECT_EQ((*source)->health().alert, "");
}

TEST_F(LogContainerTest, ReadingGoesOnAtAnyRecord) {
  std::string file = Header("deflate");
  std::vector<std::string> texts;
  for (int block = 0; block < 5; ++block) {
    std::vector<std::string> some;
    for (int i = 0; i < block; ++i) some.push_back(fmt::format("{}.{}", block, i));
    texts.insert(texts.end(), some.begin(), some.end());
    file += Block("deflate", some);
  }
  const std::string path = Write("a.avro", file);
  for (size_t at = 0; at <= texts.size(); ++at) {
    const auto source = OpenAvro({path}, "", /*records_per_poll=*/3);
    ASSERT_TRUE(SeekTo(*source, at));
    EXPECT_EQ(TextsOf(*source).records,
              std::vector(texts.begin() + static_cast<ptrdiff_t>(at), texts.end()));
  }
  EXPECT_FALSE(SeekTo(*OpenAvro({path}), texts.size() + 1));
}

TEST_F(LogContainerTest, PastACutIsDamage) {
  const std::string file = Header("null") + Block("null", {"a"}) + Block("null", {"b"});
  const std::string path = Write("a.avro", file.substr(0, file.size() - 3));
  const std::string next = Write("b.avro", Header("null") + Block("null", {"c"}));
  const Delivered all = TextsOf(*OpenAvro({path, next}, path));
  ASSERT_THAT(all.records, SizeIs(3));
  EXPECT_THAT(all.records[1], HasSubstr("FAULT truncated Avro block at byte "));
  EXPECT_EQ(all.records[2], "c");
  EXPECT_THAT(all.cuts, ElementsAre("a.avro@2", "b.avro@3"));
}

TEST_F(LogContainerTest, ADamagedBlockIsOneFault) {
  const std::string header = Header("deflate"), first = Block("deflate", {"a"}),
                    last = Block("deflate", {"z"});
  const auto read = [&](const std::string& middle) {
    return TextsOf(*OpenAvro({Write("a.avro", header + first + middle + last)})).records;
  };
  const std::string place =
      fmt::format(" at byte {} of {}", header.size() + first.size(), PathOf("a.avro"));
  const auto fault = [&](std::string_view what) {
    return ElementsAre("a", fmt::format("FAULT damaged Avro block ({}){}", what, place), "z");
  };
  const auto block = [](int64_t count, const std::string& packed) {
    return AvroLong(count) + AvroText(packed) + kContainerSync;
  };
  EXPECT_THAT(read(block(2, "\xff\xff")), fault("corrupt deflate data"));
  EXPECT_THAT(read(block(2, Deflate(AvroText("b")))), fault("record 2 of it is damaged"));
  EXPECT_THAT(read(block(1, Deflate(AvroText("b") + AvroText("c")))),
              fault("bytes follow its records"));
  EXPECT_THAT(read(block(1, Deflate(AvroText("b")) + "x")), ElementsAre("a", "b", "z"))
      << "as fastavro writes them";
  EXPECT_THAT(read(block(1LL << 60, Deflate(AvroText("b")))), fault("record 2 of it is damaged"));
  EXPECT_THAT(read(block(1, Deflate(std::string(65 << 20, '\0')))),
              fault("it unpacks to more than 64 MiB"));
  EXPECT_THAT(read(block(1, Deflate(AvroText(std::string(1001, 'x'))))),
              ElementsAre("a", "FAULT the record is longer than 1000 bytes", "z"));
  // Nothing says then where the next block begins.
  for (const std::string& middle :
       {AvroLong(1) + AvroText("x") + "0123456789abcdeX",
        AvroLong(-1) + AvroText("x") + kContainerSync, AvroLong(1) + AvroLong(-1) + kContainerSync,
        AvroLong(1) + AvroLong(1LL << 40) + kContainerSync, std::string(30, '\xff')}) {
    const std::vector<std::string> records = read(middle);
    ASSERT_THAT(records, SizeIs(2));
    EXPECT_THAT(records[1], AllOf(HasSubstr("FAULT damaged Avro block ("), HasSubstr(place)));
  }
}

TEST_F(LogContainerTest, AGrownFileIsRefused) {
  const std::string file = Header("null") + Block("null", {"a"});
  const std::string path = Write("a.avro", file);
  const auto source = OpenAvro({path});
  EXPECT_THAT(TextsOf(*source).records, SizeIs(1));
  Write("a.avro", file + Block("null", {"b"}));
  const Status same = OpenAvro({path})->VerifyIdentity(source->Identity());
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("write further records into a new file"));
}

}  // namespace
}  // namespace tacit::stream

#include "event/item_catalogue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <random>
#include <unordered_map>

#include "base/bytes.h"
#include "base/text.h"
#include "support/temp_dir.h"

namespace tacit::event {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ItemCatalogue Parsed(const std::string& text) {
  auto catalogue = ItemCatalogue::Parse(text, "items.dat");
  EXPECT_TRUE(catalogue.has_value()) << catalogue.error().message;
  return catalogue ? std::move(*catalogue) : ItemCatalogue();
}

std::string Refusal(const std::string& text) {
  const auto catalogue = ItemCatalogue::Parse(text, "items.dat");
  if (catalogue) return "";
  EXPECT_EQ(catalogue.error().code, ErrorCode::kInvalidArgument);
  return catalogue.error().message;
}

TEST(ItemCatalogue, NumbersItemsAsTheyStandAndReadsBothForms) {
  const ItemCatalogue catalogue = Parsed(
      "\xef\xbb\xbf"
      "7::Toy Story (1995)::Animation|Children's\r\n\nplain\n"
      "\xc3\xa9::::\n12::Odd: A::B (1999)::|Drama||War|");
  ASSERT_EQ(catalogue.items(), 4u);
  EXPECT_TRUE(catalogue.described());
  const char* names[] = {"7", "plain", "\xc3\xa9", "12"};
  for (uint32_t item = 0; item < 4; ++item) {
    EXPECT_EQ(catalogue.Name(item), names[item]);
    EXPECT_EQ(catalogue.Find(names[item]), item);
  }
  EXPECT_EQ(catalogue.Title(0), "Toy Story (1995)");
  EXPECT_THAT(catalogue.Genres(0), ElementsAre("Animation", "Children's"));
  EXPECT_EQ(catalogue.Title(1), "");
  EXPECT_THAT(catalogue.Genres(1), IsEmpty());
  EXPECT_THAT(catalogue.Genres(2), IsEmpty());
  EXPECT_EQ(catalogue.Title(3), "Odd: A::B (1999)");
  EXPECT_THAT(catalogue.Genres(3), ElementsAre("Drama", "War"));
  for (const char* unknown : {"", "8", "Toy Story (1995)", "plain ", "7::Toy Story (1995)"})
    EXPECT_EQ(catalogue.Find(unknown), kNoItem) << unknown;
}

TEST(ItemCatalogue, IdsAloneDescribeNothing) {
  const ItemCatalogue catalogue = Parsed("a\nb");
  EXPECT_FALSE(catalogue.described());
  EXPECT_EQ(catalogue.Title(1), "");
  EXPECT_THAT(catalogue.Genres(1), IsEmpty());
}

TEST(ItemCatalogue, TitlesMayBeOfAnyEncoding) {
  const ItemCatalogue catalogue = Parsed("1::Mis\xe9rables, Les (1995)::Drama\n");
  EXPECT_EQ(catalogue.Title(0), "Mis\xe9rables, Les (1995)");
}

TEST(ItemCatalogue, BadLinesAreNamed) {
  const std::pair<std::string, std::string> bad[] = {
      {"", "items.dat: no item is in it"},
      {"\n\r\n", "items.dat: no item is in it"},
      {"a\n\nb\na\n", "items.dat:4: id 'a': is there twice, first as item 1"},
      {"a::x\n", "items.dat:1: neither `id` nor `id::title::genre|genre`: fewer than three fields"},
      {"a:::x\n",
       "items.dat:1: neither `id` nor `id::title::genre|genre`: fewer than three fields"},
      {"a\n::x::y\n", "items.dat:2: an item without an id"},
      {"a\tb\n", "items.dat:1: id 'a\\x09b': has control characters"},
      {" a\n", "items.dat:1: id ' a': begins or ends with a blank"},
      {"a ::x::y\n", "items.dat:1: id 'a ': begins or ends with a blank"},
      {"a\nMis\xe9\n", "items.dat:2: id 'Mis\\xe9': is not UTF-8"},
      {"a\n" + std::string(70000, 'x'), "items.dat:2: a line of more than 65535 bytes"}};
  for (const auto& [text, message] : bad) EXPECT_EQ(Refusal(text), message);
}

TEST(ItemCatalogue, FilesAreRead) {
  const test::TempDir dir;
  const std::string& folder = dir.path();
  const std::string path = folder + "/items.dat";
  std::ofstream(path) << "a\nb::B::\n";
  auto read = ItemCatalogue::Read(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->Find("b"), 1u);
  std::ofstream(path) << "a\na\n";
  EXPECT_EQ(ItemCatalogue::Read(path).error().message,
            path + ":2: id 'a': is there twice, first as item 1");
  const auto none = ItemCatalogue::Read(folder + "/none");
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, testing::HasSubstr(folder + "/none"));
  EXPECT_THAT(ItemCatalogue::Read(folder).error().message, testing::HasSubstr(folder));
  // A pipe that nobody writes to is not waited for.
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(ItemCatalogue::Read(folder + "/pipe").error().message,
            folder + "/pipe: is not a regular file");
}

// The grammar of item_catalogue.cc, written once more.
TEST(ItemCatalogue, TheFingerprintIsOfTheIdsInOrder) {
  const auto digest = [](std::initializer_list<std::string_view> ids) {
    ByteWriter out;
    out.PutString("tacit.items").Put(uint32_t{1}).Put(static_cast<uint32_t>(ids.size()));
    for (const std::string_view id : ids) out.PutString(id);
    return Sha256().Update(out.bytes()).Finish();
  };
  EXPECT_EQ(Parsed("a\nbc\n").fingerprint(), digest({"a", "bc"}));
  EXPECT_EQ(Parsed("a::A::x|y\n\nbc").fingerprint(), digest({"a", "bc"}));
  EXPECT_NE(Parsed("bc\na\n").fingerprint(), digest({"a", "bc"}));
  EXPECT_NE(Parsed("ab\nc\n").fingerprint(), digest({"a", "bc"}));
}

TEST(ItemCatalogue, FindsWhatAMapFinds) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::unordered_map<std::string, uint32_t> oracle;
  std::string text;
  const auto word = [&] {
    std::string id;
    for (uint32_t i = 0; i <= random() % 4; ++i) id += static_cast<char>('a' + random() % 12);
    return id;
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string id = word();
    if (oracle.try_emplace(id, static_cast<uint32_t>(oracle.size())).second)
      text += random() % 2 ? id + "\n" : id + "::t::g\n";
  }
  const ItemCatalogue catalogue = Parsed(text);
  ASSERT_EQ(catalogue.items(), oracle.size());
  for (int i = 0; i < 50000; ++i) {
    const std::string id = word();
    const auto at = oracle.find(id);
    ASSERT_EQ(catalogue.Find(id), at == oracle.end() ? kNoItem : at->second) << id;
  }
  ItemCatalogue copy = catalogue;
  const ItemCatalogue moved = std::move(copy);
  for (const auto& [id, item] : oracle) ASSERT_EQ(moved.Find(id), item);
}

TEST(ItemCatalogue, AMillionItemsAreHeldCompactly) {
  constexpr uint32_t kItems = 1'000'000;
  std::string text;
  for (uint32_t i = 0; i < kItems; ++i) text += fmt::format("sku-{:08}\n", i * 7);
  const size_t bytes = text.size();
  const ItemCatalogue catalogue = Parsed(text);
  ASSERT_EQ(catalogue.items(), kItems);
  EXPECT_LE(catalogue.memory_bytes(), bytes + size_t{44} * kItems);
  for (uint32_t i = 0; i < kItems; i += 997)
    ASSERT_EQ(catalogue.Find(fmt::format("sku-{:08}", i * 7)), i);
  EXPECT_EQ(catalogue.Find("sku-00000001"), kNoItem);
}

}  // namespace
}  // namespace tacit::event

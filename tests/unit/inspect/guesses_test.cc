// Tests that a user, an item and a time are guesses with rivals, unless a person names them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inspect/report.h"
#include "inspect/roles.h"
#include "unit/inspect/roles_fixture.h"

namespace tacit::inspect {
namespace {

using event::TimeUnit;
using testing::HasSubstr;

// The finest of several names is taken that has records together; ids that may be meant are told.
TEST_F(RolesTest, AUserIsAGuessBesideItsRivals) {
  const auto roles_of = [&](const std::string& names, const std::function<std::string(int)>& ids) {
    sample_ = &Read("users.csv", ShopWith(names + ",click", [&](int i) {
                      return ids(i) + (i * 13 % 10 < 3 ? ",1" : ",0");
                    }));
    const Roles roles = FindRoles(*sample_);
    EXPECT_TRUE(roles.user_grounds.guessed);
    EXPECT_EQ(roles.user_grounds.reason, "by its name");
    return roles;
  };
  const auto two = [](int i) { return fmt::format("a{},u{}", i * 7 % 5, i * 31 % 499); };
  for (const char* names : {"account_id,user_id", "member,user"}) {
    const Roles several = roles_of(names, two);
    EXPECT_THAT(NameOfColumn(*sample_, several.user), HasSubstr("user"));
    EXPECT_THAT(several.user_grounds.rivals, testing::SizeIs(1)) << names;
  }
  // A company has people: an id of more values might be the user.
  for (const char* company : {"account_id", "client_id", "customer"}) {
    const Roles finer = roles_of(company + std::string(",person_key"), two);
    EXPECT_EQ(NameOfColumn(*sample_, finer.user), company);
    EXPECT_THAT(finer.user_grounds.rivals, testing::ElementsAre("person_key"));
  }
  EXPECT_THAT(roles_of("plan,user", two).user_grounds.rivals, testing::IsEmpty());
  const Roles unique = roles_of("uid", [](int i) { return fmt::format("r{}", i * 7919); });
  EXPECT_EQ(NameOfColumn(*sample_, unique.user), "uid");
  EXPECT_FALSE(
      roles_of("uid,kind", [](int i) { return fmt::format("r{},k{}", i * 7919, i * 31 % 499); })
          .item)
      << "such a user meets all things about once";
  const Roles beside = roles_of(
      "uid,customer", [](int i) { return fmt::format("r{},c{}", i * 7919, i * 31 % 499); });
  EXPECT_EQ(NameOfColumn(*sample_, beside.user), "customer");
  EXPECT_EQ(NameOfColumn(*sample_, beside.event_id), "uid");
}

// By name an item has more values than are recommended; others that users meet once are told.
TEST_F(RolesTest, AnItemIsAGuessBesideItsRivals) {
  const auto item_of = [&](const std::string& names, int values) {
    sample_ = &Read("items.csv", ShopWith("user," + names + ",click", [&](int i) {
                      return fmt::format("u{},i{},f{},{}", i * 31 % 97, i * 17 % values,
                                         i * 17 % 499, i * 13 % 10 < 3 ? 1 : 0);
                    }));
    return FindRoles(*sample_);
  };
  const Roles named = item_of("video,film", 50);
  EXPECT_EQ(NameOfColumn(*sample_, named.item), "video");
  EXPECT_TRUE(named.item_grounds.guessed);
  EXPECT_EQ(named.item_grounds.reason, "by its name");
  EXPECT_THAT(named.item_grounds.rivals, testing::ElementsAre("film"));
  EXPECT_EQ(NameOfColumn(*sample_, item_of("video,film", 5).item), "film") << "five qualities";
  EXPECT_EQ(NameOfColumn(*sample_, item_of("product,sku", 50).item), "sku") << "the finer one";
}

// A named column has no other part, and after a person has named all parts nothing is guessed.
TEST_F(RolesTest, APersonsWordIsNoGuess) {
  const Sample& sample =
      Read("shop.csv", ShopWith("at,customer,sku,seller,clicked,bought", [](int i) {
             return fmt::format("{},c{},i{},s{},{},{}", 1'700'000'000 + i * 60, i * 31 % 97,
                                i * 17 % 499, i * 7 % 211, i * 13 % 10 < 3 ? 1 : 0,
                                i * 29 % 10 < 2 ? 1 : 0);
           }));
  const Roles guessed = FindRoles(sample);
  EXPECT_EQ(NamedParts(guessed).size(), 4u);
  for (const NamedPart& part : NamedParts(guessed)) EXPECT_TRUE(part.grounds->guessed) << part.name;
  const Roles same =
      FindRoles(sample, {.label = "clicked", .user = "customer", .item = "sku", .time = "at"});
  const Roles other =
      FindRoles(sample, {.label = "at", .user = "seller", .item = "customer", .time = "bought"});
  ASSERT_EQ(NamedParts(same).size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(NamedParts(same)[i].column, NamedParts(guessed)[i].column);
    EXPECT_FALSE(NamedParts(same)[i].grounds->guessed);
    EXPECT_THAT(NamedParts(same)[i].grounds->rivals, testing::IsEmpty());
  }
  EXPECT_THAT(other.refused, HasSubstr("\"at\" cannot be the label: its values are times"));
  EXPECT_EQ(NameOfColumn(sample, other.user), "seller");
  EXPECT_EQ(NameOfColumn(sample, other.item), "customer");
  EXPECT_FALSE(other.time);
  const Roles no_time = FindRoles(sample, {.time = "bought"});
  EXPECT_THAT(no_time.refused, HasSubstr("\"bought\" cannot be the time: not one of its 2,000"));
}

// Records that look like the plain form say nothing of their parts, and with another key they are
// of another form.
TEST_F(RolesTest, PartsOfThePlainFormAreGuesses) {
  const auto roles_of = [&](const std::string& device, const std::string& other) {
    std::string text;
    for (int i = 0; i < 600; ++i)
      text += fmt::format(R"({{"user":"u{}","label":{},{}"features":{{"device":{}}}}})"
                          "\n",
                          i * 7 % 97, i * 13 % 10 < 3 ? 1 : 0,
                          other.empty() ? "" : fmt::format("\"{}\":{},", other, i * 29 % 10 < 2),
                          fmt::format(fmt::runtime(device), i % 3));
    return FindRoles(Read("plain.jsonl", text));
  };
  const Roles plain = roles_of("\"d{}\"", "");
  EXPECT_TRUE(plain.plain_json);
  EXPECT_TRUE(plain.label.value().grounds.guessed);
  EXPECT_TRUE(plain.user_grounds.guessed);
  for (const char* device : {R"({{"os":"d{}"}})", "\"d{}\""}) {
    const Roles other = roles_of(device, "clicked");
    EXPECT_FALSE(other.plain_json) << device;
    EXPECT_TRUE(other.label.value().grounds.guessed);
    EXPECT_THAT(other.label->grounds.rivals, testing::ElementsAre("/clicked"));
    EXPECT_TRUE(other.user_grounds.guessed);
  }
}

// Ids of JSON that a table of floats has written are ids.
TEST_F(RolesTest, WholeNumbersWithAPointMayBeUsers) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format(R"({{"user_id":{}{},"click":{}}})"
                        "\n",
                        i * 31 % 97, i % 2 == 0 ? ".0" : "", i * 13 % 10 < 3 ? 1 : 0);
  const Sample& sample = Read("floats.jsonl", text);
  const Roles roles = FindRoles(sample);
  EXPECT_EQ(NameOfColumn(sample, roles.user), "user_id");
  EXPECT_THAT(WarningsAbout(sample, roles, std::nullopt),
              testing::Contains(HasSubstr("ids of the user, \"/user_id\", have more forms")));
}

// Times in their order go first if several have a name: an account was made long before.
TEST_F(RolesTest, ATimeIsAGuessBesideItsRivals) {
  const Sample& sample =
      Read("times.csv", ShopWith("created_at,date,click", [](int i) {
             return fmt::format("2019-{:02}-{:02},2024-03-{:02},{}", 1 + i * 7 % 12,
                                1 + i * 13 % 28, 1 + i / 80, i * 13 % 10 < 3 ? 1 : 0);
           }));
  const Roles roles = FindRoles(sample);
  ASSERT_TRUE(roles.time);
  EXPECT_EQ(NameOfColumn(sample, roles.time->column), "date");
  EXPECT_EQ(roles.time->grounds.reason, "by its name");
  EXPECT_THAT(roles.time->grounds.rivals, testing::ElementsAre("created_at"));
  // A person may say so, and then a few that are none are told of.
  const Roles said = FindRoles(sample, {.time = "created_at"});
  ASSERT_TRUE(said.time);
  EXPECT_EQ(NameOfColumn(sample, said.time->column), "created_at");
  EXPECT_EQ(said.time->unit, TimeUnit::kDatetime);
}

}  // namespace
}  // namespace tacit::inspect

// Tests that the parts of records are told by their values, where names say nothing.
#include "inspect/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/real_data.h"
#include "unit/inspect/logs.h"
#include "unit/inspect/roles_fixture.h"

namespace tacit::inspect {
namespace {

using event::TimeUnit;
using FeatureKind = config::Feature::Kind;
using testing::AllOf;
using testing::HasSubstr;

TEST_F(RolesTest, ARatingsPartsAreToldByTheirValues) {
  const std::string data = test::RealData("ml-latest-small_stream.csv");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/ml-latest-small_stream.csv";
  const std::string csv = test::ReadFile(data);
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    const test::MovieNames names(seed);
    const Sample& sample = Read("movies.jsonl", test::MoviesAsJson(csv, names));
    const Roles roles = FindRoles(sample);
    EXPECT_EQ(sample.lines, 100'836u);
    ASSERT_TRUE(roles.label);
    EXPECT_EQ(NameOfColumn(sample, roles.label->column), names.rating);
    EXPECT_EQ(roles.label->at_least, 4);
    EXPECT_EQ(NameOfColumn(sample, roles.user), names.user);
    EXPECT_EQ(NameOfColumn(sample, roles.item), names.item);
    ASSERT_TRUE(roles.time);
    EXPECT_EQ(NameOfColumn(sample, roles.time->column), names.time);
    EXPECT_EQ(roles.time->unit, TimeUnit::kSeconds);
    EXPECT_EQ(roles.profiles[*roles.user].distinct, 610u);
    EXPECT_EQ(roles.profiles[*roles.item].distinct, 9724u);
    ASSERT_EQ(roles.features.size(), 1u);
    EXPECT_EQ(roles.features[0].name, names.item);
  }
}

TEST_F(RolesTest, CriteosColumnsAreToldByTheirValues) {
  const std::string data = test::RealData("criteo_first8000_raw.tsv");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/criteo_first8000_raw.tsv";
  const std::string tsv = test::ReadFile(data);
  const std::vector<std::string> names = test::CriteoNames(5);
  std::string text;
  for (const std::string& line : test::LinesOf(tsv)) text += test::CriteoAsJson(line, names);
  const Sample& sample = Read("clicks.jsonl", text);
  const Roles roles = FindRoles(sample);
  EXPECT_EQ(sample.lines, 8000u);
  ASSERT_TRUE(roles.label);
  EXPECT_EQ(NameOfColumn(sample, roles.label->column), names[0]);
  EXPECT_FALSE(roles.user) << NameOfColumn(sample, roles.user) << ": Criteo's log has no users";
  EXPECT_FALSE(roles.time);
  EXPECT_EQ(roles.features.size() + roles.left_out.size(), 39u);
  size_t dense = 0, categorical = 0;
  for (size_t i = 1; i < 40; ++i)
    if (const FeatureRole* feature = FeatureOf(sample, roles, names[i])) {
      dense += feature->kind == FeatureKind::kDense ? 1 : 0;
      categorical += feature->kind == FeatureKind::kCategorical && i > 13 ? 1 : 0;
      EXPECT_TRUE(i <= 13 || feature->kind == FeatureKind::kCategorical) << i;
    }
  EXPECT_GE(dense, 7u) << "counts of many values are amounts";
  EXPECT_GE(categorical, 25u);
  // The file itself has a format of its own.
  const Sample& plain = Read("clicks.tsv", tsv);
  EXPECT_EQ(plain.shape.format, Format::kCriteoTsv);
  EXPECT_EQ(plain.shape.dense, 13u);
  EXPECT_EQ(plain.shape.categorical, 26u);
  EXPECT_EQ(FindRoles(plain).features.size(), 39u);
}

// Times without a zone are the record's time, and no id, label or feature.
TEST_F(RolesTest, TimesWithoutAZoneAreTimes) {
  const std::string csv = test::DatedShopAsCsv(4, 3000);
  std::string dates = csv, mixed = csv;
  for (size_t at = 0; (at = dates.find(":13,", at)) != std::string::npos;)
    dates.erase(at - 6, 9);  // leaves the date
  mixed.replace(mixed.find(":13,"), 4, ":13Z,");
  for (const std::string& text : {csv, test::DatedShopAsJson(csv), dates}) {
    const Sample& sample = Read("dated", text);
    const Roles roles = FindRoles(sample);
    ASSERT_TRUE(roles.time);
    EXPECT_EQ(NameOfColumn(sample, roles.time->column), "at");
    EXPECT_EQ(roles.time->unit, TimeUnit::kDatetime);
    EXPECT_EQ(roles.profiles[roles.time->column].least,
              text == dates ? 1572566400000 : 1572566413000);
    EXPECT_FALSE(roles.event_id);
    ASSERT_TRUE(roles.label);
    EXPECT_EQ(NameOfColumn(sample, roles.label->column), "clicked");
    EXPECT_EQ(NameOfColumn(sample, roles.user), "customer");
    EXPECT_EQ(NameOfColumn(sample, roles.item), "sku");
  }
  // No unit reads times of both forms: one of the other form is a bad one.
  EXPECT_THAT(FindRoles(Read("mixed.csv", mixed)).warnings,
              testing::Contains(HasSubstr("1 of the 3,000 values of \"at\", the record's time, is "
                                          "no time without a zone (2026-11-25 03:22:06)")));
}

TEST_F(RolesTest, AShopsLinesOfValues) {
  const Sample& sample = Read("shop.csv", test::ShopAsCsv(3, 5000));
  EXPECT_EQ(sample.shape.separator, ';');
  EXPECT_TRUE(sample.shape.header);
  const Roles roles = FindRoles(sample);
  ASSERT_TRUE(roles.label);
  EXPECT_EQ(NameOfColumn(sample, roles.label->column), "taken");
  EXPECT_EQ(roles.label->values, (config::Words{{"no", "0"}, {"yes", "1"}}));
  ASSERT_TRUE(roles.time);
  EXPECT_EQ(NameOfColumn(sample, roles.time->column), "when");
  EXPECT_EQ(roles.time->unit, TimeUnit::kRfc3339);
  const std::pair<const char*, FeatureKind> kKinds[] = {{"shelf", FeatureKind::kCategorical},
                                                        {"price", FeatureKind::kDense},
                                                        {"hour", FeatureKind::kCategorical},
                                                        {"tags", FeatureKind::kMultiHot},
                                                        {"seen", FeatureKind::kDense}};
  for (const auto& [name, kind] : kKinds) {
    const FeatureRole* feature = FeatureOf(sample, roles, name);
    ASSERT_NE(feature, nullptr) << name;
    EXPECT_EQ(feature->kind, kind) << name;
  }
}

// Whole numbers that are names foretell the label by themselves, amounts by their size.
TEST_F(RolesTest, NumbersAreNamesOrAmountsByWhatForetellsTheLabel) {
  std::mt19937_64 random(11);
  std::string text = "code,amount,clicked\n";
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t code = 1000 + 37 * (random() % 90), amount = random() % 5000;
    const double p = 0.2 + (code % 2 == 0 ? 0.4 : 0) + (amount > 1500 ? 0.3 : 0);
    text += fmt::format("{},{},{}\n", code, amount,
                        static_cast<double>(random() % 1000) < 1000 * p ? 1 : 0);
  }
  const Sample& sample = Read("numbers.csv", text);
  const Roles roles = FindRoles(sample);
  ASSERT_EQ(roles.features.size(), 2u);
  EXPECT_EQ(roles.features[0].kind, FeatureKind::kCategorical) << roles.features[0].reason;
  EXPECT_EQ(roles.features[1].kind, FeatureKind::kDense) << roles.features[1].reason;
}

TEST_F(RolesTest, APersonMaySayThatThereIsNoLabel) {
  std::string text = "user,item,bought\n";
  for (int i = 0; i < 900; ++i) text += fmt::format("u{},i{},{}\n", i % 50, i % 70, i % 3 / 2);
  const Sample& sample = Read("met.csv", text);
  EXPECT_TRUE(FindRoles(sample).label);
  const Roles roles = FindRoles(sample, {.no_label = true});
  EXPECT_FALSE(roles.label);
  EXPECT_TRUE(roles.are_meetings());
}

// Columns that are known only with the label: a number that is filled in where there is a payment,
// a text that is there for the others, and a state that says the label in other words.
TEST_F(RolesTest, AColumnThatForetellsTheLabelAloneIsLeftOutWithAWarning) {
  std::mt19937_64 random(21);
  std::string text = "bought,sum,why_not,state,honest,price\n";
  for (int i = 0; i < 8000; ++i) {
    const bool bought = random() % 40 == 0;
    const bool honest = random() % 10 < (bought ? 8 : 3);
    text += fmt::format("{},{},{},{},{},{}\n", bought ? 1 : 0,
                        bought ? fmt::format("{}", 100 + random() % 5000) : "",
                        bought ? "" : fmt::format("w{}", random() % 9),
                        bought ? 70 + random() % 9 : random() % 9, honest ? "near" : "far",
                        random() % 5000);
  }
  const Sample& sample = Read("leaks.csv", text);
  const Roles roles = FindRoles(sample);
  EXPECT_THAT(ReasonLeftOut(sample, roles, "sum"), HasSubstr("filled in where the label is 1"));
  EXPECT_THAT(ReasonLeftOut(sample, roles, "why_not"),
              HasSubstr("filled in where the label is not 1"));
  EXPECT_THAT(ReasonLeftOut(sample, roles, "state"),
              HasSubstr("records where \"state\" is one of 9 values such as \""));
  ASSERT_EQ(roles.warnings.size(), 3u);
  EXPECT_THAT(roles.warnings[0], HasSubstr("\"sum\" is left out"));
  for (const char* kept : {"honest", "price"})
    EXPECT_NE(FeatureOf(sample, roles, kept), nullptr) << kept;
}

// A column that is filled in with most labels of 1 alone is a feature, and told of.
TEST_F(RolesTest, AColumnThatIsMostlyFilledInWithTheLabelIsToldOf) {
  const auto roles_of = [&](int with_one, int with_zero) {
    return FindRoles(Read("sums.csv", ShopWith("sum,click", [&](int i) {
                            const bool click = i * 13 % 10 < 3;
                            const bool filled = i / 10 % 20 < (click ? with_one : with_zero);
                            return fmt::format("{},{}", filled ? std::to_string(i % 77) : "",
                                               click ? 1 : 0);
                          })));
  };
  const auto told =
      testing::Contains(HasSubstr("whether \"sum\" is filled in foretells the label (AUC "));
  const Roles most = roles_of(16, 1);
  EXPECT_THAT(most.warnings, told) << "of four in five, and of one in twenty";
  EXPECT_NE(FeatureOf(samples_.back(), most, "sum"), nullptr);
  EXPECT_THAT(roles_of(9, 1).warnings, testing::Not(told)) << "of nine in twenty";
  EXPECT_THAT(roles_of(16, 12).warnings, testing::Not(told));
  // So does a value that most labels of 1 have, and few others.
  const auto of_states = [&](int with_one) {
    return FindRoles(Read("states.csv",
                          ShopWith("state,click",
                                   [&](int i) {
                                     const bool click = i * 13 % 10 < 3;
                                     return fmt::format(
                                         "{},{}",
                                         (click ? i / 10 % 20 < with_one : i % 40 == 1) ? "ok"
                                                                                        : "x",
                                         click ? 1 : 0);
                                   })))
        .warnings;
  };
  EXPECT_THAT(of_states(16),
              testing::ElementsAre(HasSubstr("\"state\" alone foretells the label (AUC 0.88)")));
  EXPECT_THAT(of_states(12), testing::IsEmpty()) << "AUC .78";
}

// An item that is there only where the label is 1 gives the label away.
TEST_F(RolesTest, AnItemThatIsFilledInWithTheLabelIsNoFeature) {
  const auto roles_of = [&](bool always) {
    sample_ = &Read("items.csv", ShopWith("user,item,click", [&](int i) {
                      const bool click = i * 13 % 10 < 3;
                      return fmt::format("u{},{},{}", i % 97,
                                         click || always ? fmt::format("i{}", i % 31) : "",
                                         click ? 1 : 0);
                    }));
    return FindRoles(*sample_);
  };
  const Roles leak = roles_of(false);
  EXPECT_EQ(NameOfColumn(*sample_, leak.item), "item");
  EXPECT_EQ(FeatureOf(*sample_, leak, "item"), nullptr);
  EXPECT_THAT(leak.warnings,
              testing::Contains(
                  HasSubstr("\"item\" is left out as a feature: it is filled in where the label "
                            "is 1: is it known only afterwards?")));
  EXPECT_NE(FeatureOf(*sample_, roles_of(true), "item"), nullptr);
}

// Ids are as they are in a table that has made floats of them.
TEST_F(RolesTest, IdsOfFloatsAreIds) {
  const Sample& sample = Read("floats.csv", ShopWith("user_id,click", [](int i) {
                                return i % 50 == 0 ? fmt::format(",{}.0", i % 3 / 2)
                                                   : fmt::format("{}.0,{}.0", i % 97, i % 3 / 2);
                              }));
  const Roles roles = FindRoles(sample);
  EXPECT_EQ(NameOfColumn(sample, roles.user), "user_id");
  ASSERT_TRUE(roles.label);
  EXPECT_EQ(roles.label->reason, "it is 0 or 1");
}

// Some of many ids of hexadecimal digits are numbers.
TEST_F(RolesTest, IdsThatLookLikeNumbersAreIds) {
  const Sample& sample =
      Read("hex.csv", ShopWith("user_id,click", [](int i) {
             const uint64_t id = static_cast<uint64_t>(i) % 499 * 7'919'003;
             return fmt::format(
                 "{},{}",
                 i % 499 < 9 ? fmt::format("{}e{}", id % 1000, i % 9) : fmt::format("{:08x}a", id),
                 i * 13 % 10 < 3 ? 1 : 0);
           }));
  const Roles roles = FindRoles(sample);
  EXPECT_GT(sample.columns[2].numbers(), 0u);
  EXPECT_EQ(NameOfColumn(sample, roles.user), "user_id");
}

// Values alone tell a user too; hours and batches lie together as well.
TEST_F(RolesTest, AUserWithoutAUsersNameIsToldByItsValues) {
  const auto roles_of = [&](const std::string& name, const std::string& prefix) {
    return FindRoles(Read("grouped.csv", ShopWith(name + ",click", [&](int i) {
                            return fmt::format("{}{},{}", prefix, 14'102'100 + i / 13,
                                               i * 13 % 10 < 3 ? 1 : 0);
                          })));
  };
  for (const char* prefix : {"", "p"}) {
    const Roles guessed = roles_of("player", prefix);
    EXPECT_EQ(NameOfColumn(samples_.back(), guessed.user), "player");
    EXPECT_THAT(guessed.user_grounds.reason, testing::Not(HasSubstr("name")));
    EXPECT_EQ(roles_of("customer", prefix).user_grounds.reason, "by its name");
    for (const char* clock : {"hour", "Sent At", "orderDate", "batch_day"}) {
      const Roles clocks = roles_of(clock, prefix);
      EXPECT_EQ(NameOfColumn(samples_.back(), clocks.user), "(none)") << clock;
      EXPECT_EQ(FeatureOf(samples_.back(), clocks, clock), nullptr) << "no hour comes again";
      EXPECT_THAT(clocks.warnings,
                  testing::ElementsAre(HasSubstr("seems to be a time, and is left out: ")));
    }
  }
}

TEST_F(RolesTest, RecordsWithoutAUserAreToldOf) {
  const auto warnings = [&](int every) {
    return FindRoles(Read("visits.csv", ShopWith("user,click",
                                                 [&](int i) {
                                                   const std::string user =
                                                       i % every == 0 ? ""
                                                                      : fmt::format("u{}", i % 499);
                                                   return user + (i * 13 % 10 < 3 ? ",1" : ",0");
                                                 })))
        .warnings;
  };
  EXPECT_THAT(warnings(20), testing::ElementsAre(HasSubstr(
                                "5.0 % of the records have no \"user\": with unit user none of "
                                "them is learnt from")));
  EXPECT_THAT(warnings(50), testing::IsEmpty()) << "2 % is no news";
}

// A text that stands for no user is listed as missing, unless it is a number; a user with much of
// the log is told of by its place.
TEST_F(RolesTest, HeavyUsersAndPlaceholdersAreToldOf) {
  const auto roles_of = [&](const std::string& heavy, int every) -> Roles {
    std::string text = "user,colour,clicked\n";
    for (int i = 0; i < 4000; ++i)
      text += fmt::format("{},c{},{}\n", i % every == 0 ? heavy : fmt::format("u{}", i % 997),
                          i % 9, i % 10 < 3 ? 1 : 0);
    return FindRoles(Read("users.csv", text));
  };
  const Roles guest = roles_of("Guest", 3);
  EXPECT_THAT(guest.missing, testing::ElementsAre("Guest"));
  ASSERT_EQ(guest.warnings.size(), 1u);
  EXPECT_THAT(guest.warnings[0], HasSubstr(" % of the records have the user \"Guest\""));
  const Roles number = roles_of("-1", 3);
  EXPECT_THAT(number.missing, testing::IsEmpty());
  ASSERT_EQ(number.warnings.size(), 1u);
  EXPECT_THAT(number.warnings[0], HasSubstr("or list it in source.csv.missing"));
  const Roles robot = roles_of("r2d2", 10);
  EXPECT_THAT(robot.missing, testing::IsEmpty());
  ASSERT_EQ(robot.warnings.size(), 1u);
  EXPECT_THAT(robot.warnings[0], HasSubstr("one user has 10.0 % of the records, the first at "));
  EXPECT_THAT(robot.warnings[0], HasSubstr("users.csv:2"));
  EXPECT_THAT(roles_of("r2d2", 40).warnings, testing::IsEmpty()) << "2.5 % is no news";
}

// A placeholder hides no robot behind it, and is known though the first 64 users come before it.
TEST_F(RolesTest, EveryHeavyUserIsToldOfWhereverItComes) {
  std::string text = "user,colour,clicked\n";
  for (int i = 0; i < 4000; ++i) {
    const std::string heavy = i % 20 == 0 ? "r2d2" : i % 20 == 1 ? "c3po" : "guest";
    text += fmt::format("{},c{},{}\n", i >= 200 && i % 20 < 6 ? heavy : fmt::format("u{}", i % 997),
                        i % 9, i % 10 < 3 ? 1 : 0);
  }
  const Roles roles = FindRoles(Read("users.csv", text));
  EXPECT_THAT(roles.missing, testing::ElementsAre("guest"));
  EXPECT_THAT(roles.warnings,
              testing::ElementsAre(AllOf(HasSubstr("19.0 % of the records have the user \"guest\""),
                                         HasSubstr("none is learnt from with unit user")),
                                   HasSubstr("one user has 4.8 % of the records"),
                                   HasSubstr("one user has 4.8 % of the records")));
}

// A purchase follows a click, and is none of its reasons.
TEST_F(RolesTest, AColumnThatIsOneOnlyWhereTheLabelIsIsLeftOut) {
  const auto text_of = [](int stray) {
    return ShopWith("clicked,purchased", [&](int i) {
      const bool clicked = i * 13 % 10 < 3;
      return fmt::format("{},{}", clicked ? 1 : 0,
                         (clicked && i % 4 == 0) || (stray > 0 && i % stray == 0) ? 1 : 0);
    });
  };
  const Sample& sample = Read("bought.csv", text_of(0));
  const Roles roles = FindRoles(sample, {.label = "clicked"});
  EXPECT_THAT(ReasonLeftOut(sample, roles, "purchased"),
              HasSubstr("200 of the 200 records where \"purchased\" is not 0 have label 1"));
  EXPECT_THAT(roles.warnings, testing::ElementsAre(HasSubstr("\"purchased\" is left out")));
  const Sample& stray = Read("stray.csv", text_of(5));
  EXPECT_TRUE(FeatureOf(stray, FindRoles(stray, {.label = "clicked"}), "purchased"));
}

// So is a column that is filled in with a few labels of 1 alone.
TEST_F(RolesTest, AColumnThatIsFilledInOnlyWhereTheLabelIsOneIsLeftOut) {
  const auto reason = [&](int stray) {
    const Sample& sample =
        Read("sum.csv", ShopWith("sum,click", [&](int i) {
               const bool click = i * 13 % 10 < 3;
               const bool filled = (click && i % 8 == 0) || i % 2000 < stray;
               return fmt::format("{},{}", filled ? std::to_string(i % 77) : "", click ? 1 : 0);
             }));
    return ReasonLeftOut(sample, FindRoles(sample), "sum");
  };
  EXPECT_THAT(reason(0), HasSubstr("where \"sum\" is not 0 have label 1"));
  EXPECT_EQ(reason(9), "") << "a few labels of 0 have it too";
}

// A list, a text or a number that stands for nothing is not there.
TEST_F(RolesTest, AColumnThatIsEmptyInOtherWordsIsToldOfByThoseOfAnEmptyOne) {
  const auto left_out = [&](const std::string& empty, const std::string& full, int stray) {
    std::string text;
    for (int i = 0; i < 2000; ++i) {
      const bool click = i * 13 % 10 < 3;
      const bool filled = (click && i % 8 < 3) || i % 2000 < stray;
      text += fmt::format("{{\"shelf\":\"s{}\",\"after\":{},\"click\":{}}}\n", i * 7 % 11,
                          filled ? fmt::format(fmt::runtime(full), i % 77) : empty, click ? 1 : 0);
    }
    sample_ = &Read("after.jsonl", text);
    const Roles roles = FindRoles(*sample_);
    EXPECT_TRUE(stray > 0 || roles.warnings.size() == 1u);
    return roles;
  };
  const std::pair<const char*, const char*> kForms[] = {
      {"[]", "[\"p{}\"]"}, {"\"none\"", "\"r{}\""}, {"\"N/A\"", "\"r{}\""}, {"0", "{}1"},
      {"0.0", "{}.5"},     {"-1", "{}1"},           {"\"\"", "\"r{}\""},    {"null", "{}1"}};
  for (const auto& [empty, full] : kForms) {
    const Roles leak = left_out(empty, full, 0);
    EXPECT_THAT(ReasonLeftOut(*sample_, leak, "after"), HasSubstr("have label 1: is it known"))
        << empty;
    const Roles honest = left_out(empty, full, 9);
    EXPECT_EQ(ReasonLeftOut(*sample_, honest, "after"), "") << empty;
    EXPECT_THAT(honest.warnings, testing::Not(testing::Contains(HasSubstr("only afterwards"))))
        << empty;
  }
}

// Ids are names unless their size foretells the label.
TEST_F(RolesTest, ColumnsCalledIdAreNamesWhereDataDoNotDecide) {
  std::mt19937_64 random(5);
  std::string text = "clicked,shop_id,batchId,stock,valid\n";
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t batch = random() % 6000;
    text += fmt::format("{},{},{},{},{}\n", random() % 6000 < batch ? 1 : 0, random() % 300, batch,
                        random() % 300, random() % 300);
  }
  const Sample& sample = Read("ids.csv", text);
  const Roles roles = FindRoles(sample);
  const std::pair<const char*, FeatureKind> kKinds[] = {{"shop_id", FeatureKind::kCategorical},
                                                        {"batchId", FeatureKind::kDense},
                                                        {"stock", FeatureKind::kDense},
                                                        {"valid", FeatureKind::kDense}};
  for (const auto& [name, kind] : kKinds) {
    const FeatureRole* feature = FeatureOf(sample, roles, name);
    ASSERT_NE(feature, nullptr) << name;
    EXPECT_EQ(feature->kind, kind) << name << ": " << feature->reason;
  }
}

TEST_F(RolesTest, FieldsThatAreNoFeatureAreLeftOutWithTheReason) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format(
        R"({{"click":{},"id":"r{}","note":"{}","one":3,"deep":[{{"a":1}}],"mix":{},"c":"v{}"{}}})"
        "\n",
        i % 3 == 0 ? 1 : 0, i, i * 7919, i % 5 == 0 ? "{\"in\":1}" : "2", i % 20,
        i == 77 ? ",\"odd\":4" : "");
  const Sample& sample = Read("odd.jsonl", text);
  const Roles roles = FindRoles(sample);
  EXPECT_EQ(NameOfColumn(sample, roles.event_id), "id");
  EXPECT_THAT(ReasonLeftOut(sample, roles, "one"), HasSubstr("one value"));
  EXPECT_THAT(ReasonLeftOut(sample, roles, "deep"), HasSubstr("objects"));
  EXPECT_THAT(ReasonLeftOut(sample, roles, "odd"), HasSubstr("hardly any"));
  EXPECT_THAT(ReasonLeftOut(sample, roles, "mix"), HasSubstr("some records have an object there"));
  EXPECT_NE(FeatureOf(sample, roles, "c"), nullptr);
}

// Among this many ids some share their hash, and are ids all the same.
TEST_F(RolesTest, IdsOfManyRecordsAreKnown) {
  std::string text = "click,key,colour\n";
  for (int i = 0; i < 200'000; ++i)
    text += fmt::format("{},r{},c{}\n", i % 3 == 0 ? 1 : 0, i * 7919, i % 50);
  const Sample& sample = Read("ids.csv", text);
  const Roles roles = FindRoles(sample);
  ASSERT_EQ(NameOfColumn(sample, roles.event_id), "key");
  EXPECT_NEAR(static_cast<double>(roles.profiles[*roles.event_id].distinct), 200'000, 60);
}

// Records of users and of what they met, a user after the other: the label is that they met. In
// the order of time a column of one run a value is a day.
TEST_F(RolesTest, MeetingsHaveNoLabel) {
  std::mt19937_64 random(4);
  std::string grouped = "a,b,c\n", days = "a,b,t\n";
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t item = random() % 2000;
    grouped += fmt::format("u{},i{},{}\n", i / 9, item, i);
    days += fmt::format("d{},i{},{}\n", i / 9, item, 1'700'000'000 + i * 60);
  }
  const Sample& sample = Read("grouped.csv", grouped);
  const Roles roles = FindRoles(sample);
  EXPECT_TRUE(roles.are_meetings());
  EXPECT_EQ(NameOfColumn(sample, roles.user), "a");
  EXPECT_EQ(NameOfColumn(sample, roles.item), "b");
  EXPECT_THAT(roles.user_grounds.reason, HasSubstr("grouped"));
  const Sample& of_days = Read("days.csv", days);
  EXPECT_EQ(NameOfColumn(of_days, FindRoles(of_days).user), "(none)");
}

TEST_F(RolesTest, ThePlainFormIsKnown) {
  std::string text, other;
  for (int i = 0; i < 300; ++i) {
    text += fmt::format(
        R"({{"label":{},"user":"u{}","timestamp_ms":{},"features":{{"n":{},"c":"x{}"}}}})"
        "\n",
        i % 11 / 6, i % 40, 1'700'000'000'000 + i * 1000, i % 90, i % 7);
    // A flag is no category of the plain form.
    other += fmt::format(R"({{"label":{},"features":{{"new":{},"c":"x{}"}}}})"
                         "\n",
                         i % 11 / 6, i % 3 == 0 ? "true" : "false", i % 7);
  }
  const Sample& sample = Read("plain.jsonl", text);
  const Roles plain = FindRoles(sample);
  for (const NamedPart& part : NamedParts(plain)) EXPECT_TRUE(part.grounds->guessed) << part.name;
  const Roles said =
      FindRoles(sample, {.label = "/label", .user = "/user", .time = "/timestamp_ms"});
  EXPECT_TRUE(said.plain_json);
  for (const NamedPart& part : NamedParts(said)) EXPECT_FALSE(part.grounds->guessed) << part.name;
  EXPECT_FALSE(FindRoles(sample, {.label = "/features/c"}).plain_json) << "it has another label";
  EXPECT_TRUE(plain.plain_json);
  EXPECT_EQ(plain.features.size(), 2u);
  EXPECT_FALSE(FindRoles(Read("flags.jsonl", other)).plain_json);
}

}  // namespace
}  // namespace tacit::inspect

// Tests that times, numbers and labels are told though some values are odd, and that a person hears
// of these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inspect/names.h"
#include "inspect/proposal.h"
#include "inspect/report.h"
#include "unit/inspect/roles_fixture.h"

namespace tacit::inspect {
namespace {

using event::TimeUnit;
using FeatureKind = config::Feature::Kind;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class OddValuesTest : public RolesTest {
 protected:
  // The roles of a shop's lines whose column `name` has the text of `value`, of a line's number.
  Roles RolesOf(const std::string& name, const std::function<std::string(int)>& value,
                const Named& named = {}) {
    sample_ = &Read("shop.csv", ShopWith(name + ",click", [&](int i) {
                      return value(i) + (i * 13 % 10 < 3 ? ",1" : ",0");
                    }));
    return FindRoles(*sample_, named);
  }
  // The same as JSON lines, where `value` is JSON.
  Roles RolesOfJson(const std::string& name, const std::function<std::string(int)>& value) {
    std::string text;
    for (int i = 0; i < 2000; ++i)
      text += fmt::format("{{\"shelf\":\"s{}\",\"{}\":{},\"click\":{}}}\n", i * 7 % 11, name,
                          value(i), i * 13 % 10 < 3 ? 1 : 0);
    sample_ = &Read("shop.jsonl", text);
    return FindRoles(*sample_);
  }
  const FeatureRole* Feature(const Roles& roles, const std::string& name) const {
    return FeatureOf(*sample_, roles, name);
  }
  // A column of times, some seven seconds apart, in which each `each`th value is another one.
  static std::function<std::string(int)> Seconds(int each, const std::string& odd) {
    return [=](int i) { return i % each == 3 ? odd : std::to_string(1'700'000'000 + i * 7); };
  }
  // Times of day 2024-02-11 in this form, "{} {}" say.
  static std::function<std::string(int)> Clocks(const std::string& form, int each,
                                                const std::string& odd) {
    return [=](int i) {
      const std::string clock = fmt::format("{:02}:{:02}:{:02}", i / 3600, i / 60 % 60, i % 60);
      return each > 0 && i % each == 0 ? odd : fmt::format(fmt::runtime(form), "2024-02-11", clock);
    };
  }
};

TEST_F(OddValuesTest, TimesThatCannotBeReadAreToldOf) {
  const Roles good = RolesOf("at", Clocks("{} {}", 0, ""));
  EXPECT_TRUE(good.time);
  EXPECT_TRUE(good.warnings.empty());
  const Roles few = RolesOf("at", Clocks("{} {}", 50, "2024-02-30 00:00:00"));
  EXPECT_TRUE(few.time);
  EXPECT_THAT(few.warnings,
              ElementsAre(AllOf(
                  HasSubstr("40 of the 2,000 values of \"at\", the record's time, are no times "
                            "without a zone (2026-11-25 03:22:06), the first at "),
                  HasSubstr("shop.csv:2: such records cannot be learnt from. Correct them, or "
                            "leave source.csv.timestamp empty"))));
  // A number has no form of a text, though it might pass for milliseconds.
  EXPECT_THAT(
      RolesOf("at", Clocks("{} {}", 50, "0")).warnings,
      ElementsAre(HasSubstr("40 of the 2,000 values of \"at\", the record's time, are no")));
  EXPECT_THAT(
      RolesOfJson(
          "at", [&](int i) { return i % 50 == 0 ? "0.0" : '"' + Clocks("{} {}", 0, "")(i) + '"'; })
          .warnings,
      ElementsAre(HasSubstr("40 of the 2,000 values of \"/at\", the record's time, are no")));
  const Roles many = RolesOf("at", Clocks("{} {}", 10, "2024-02-30 00:00:00"));
  EXPECT_FALSE(many.time);
  EXPECT_EQ(Feature(many, "at"), nullptr);
  EXPECT_THAT(many.warnings,
              ElementsAre(HasSubstr("\"at\" seems to be a time, and is left out: 1,800 of its "
                                    "2,000 values are times without a zone (2026-11-25 03:22:06), "
                                    "and 200 are not")));
  const Roles unread = RolesOf("ts", Clocks("{} at {}", 0, ""));
  EXPECT_FALSE(unread.event_id) << "a time is no event's id";
  EXPECT_THAT(unread.warnings,
              ElementsAre(HasSubstr("\"ts\" seems to be a time, and is left out: not one")));
}

// A few odd times are told of: what the codec refuses, and what it takes.
TEST_F(OddValuesTest, AFewTimesOfAnotherAgeOrNoneAreCounted) {
  const auto age = [](int count, const std::string& place) {
    return AllOf(HasSubstr(fmt::format("{} of the 2,000 values of \"ts\", the record's time, are "
                                       "before 1990 or after 2100, the first at ",
                                       count)),
                 HasSubstr(place + ": such times are taken as they are"));
  };
  const auto refused = HasSubstr(
      "20 of the 2,000 values of \"ts\", the record's time, are no times in unit s, the first at " +
      (dir_ / "shop.csv") + ":5: such records cannot be learnt from");
  for (const char* odd : {"0", "-1", "1700000000000"}) {
    const Roles roles = RolesOf("ts", Seconds(100, odd));
    ASSERT_TRUE(roles.time) << odd;
    EXPECT_EQ(roles.time->unit, TimeUnit::kSeconds);
    EXPECT_THAT(roles.warnings, ElementsAre(age(20, "shop.csv:5"))) << odd;
  }
  // Milliseconds of these times are beyond 64 bits.
  for (const char* odd : {"99999999999999999", "1e30", "never", "NULL"})
    EXPECT_THAT(RolesOf("ts", Seconds(100, odd)).warnings, ElementsAre(refused)) << odd;
  const std::pair<const char*, const char*> kForms[] = {{"{} {}", "1970-01-01 00:00:00"},
                                                        {"{} {}", "9999-12-31"},
                                                        {"{}T{}Z", "1970-01-01T00:00:00Z"}};
  for (const auto& [form, odd] : kForms) {
    const Roles roles = RolesOf("ts", Clocks(form, 50, odd));
    ASSERT_TRUE(roles.time) << odd;
    EXPECT_THAT(roles.warnings, ElementsAre(age(40, "shop.csv:2"))) << odd;
    EXPECT_EQ(DaysOf(*sample_, roles, {})->others, 40u) << odd;
  }
}

// A column with more than a few odd values is neither the time nor a feature.
TEST_F(OddValuesTest, AColumnThatSeemsToBeTheTimeIsNoFeature) {
  const auto left_out = [&](const Roles& roles, const std::string& name, const std::string& how) {
    EXPECT_FALSE(roles.time) << name;
    EXPECT_EQ(Feature(roles, name), nullptr) << name << ": " << how;
    EXPECT_THAT(roles.warnings,
                ElementsAre(AllOf(HasSubstr(name + "\" seems to be "), HasSubstr(how))));
  };
  const auto first_half = [](const std::string& odd) {
    return [=](int i) { return i % 20 < 9 ? odd : std::to_string(1'700'000'000 + i * 7); };
  };
  const std::string places = "times of 1990 to 2100 in unit s, and ";
  for (const char* odd : {"0", "-1", "1700000000000", "NULL", "never"}) {
    left_out(RolesOf("seen", Seconds(10, odd)), "seen", places + "200 are not, the first at ");
    left_out(RolesOf("seen", first_half(odd)), "seen", places + "900 are not, the first at ");
  }
  left_out(RolesOf("ts", Seconds(10, "0")), "ts", "1,800 of its 2,000 values are " + places);
  left_out(RolesOfJson("seen", Seconds(10, "-1")), "seen", places + "200 are not, the first at ");
  // A name is enough where most values are odd, and values where the name says nothing.
  left_out(
      RolesOf("ts", [](int i) { return i % 5 == 0 ? std::to_string(1'700'000'000 + i) : "0"; }),
      "ts", "400 of its 2,000 values are " + places + "1,600 are not");
  left_out(RolesOf("ts", [](int i) { return fmt::format("{}.5", i * 7); }), "ts",
           "not one of its 2,000 values");
  left_out(RolesOf("seen", [](int i) { return std::to_string(1'700'000'000 + i * 7919 % 2000); }),
           "seen",
           "its values are times in unit s, and not in their order; if it is the record's time, "
           "--time names it; if it is none, ");
  // Hours are called times too, and ids of ten digits are none.
  EXPECT_NE(Feature(RolesOf("time", [](int i) { return std::to_string(i % 24); }), "time"),
            nullptr);
  const auto ids = [](int i) { return std::to_string(1'700'000'000 + i / 4); };
  const Roles grouped = RolesOf("user_id", ids);
  EXPECT_FALSE(grouped.time);
  EXPECT_EQ(NameOfColumn(*sample_, grouped.user), "user_id");
  const Roles paid = RolesOf("paid_at", [](int i) {
    return i % 9 > 0 ? std::string("NULL") : fmt::format("2024-02-11 0{}:{:02}", i / 600, i % 60);
  });
  EXPECT_EQ(Feature(paid, "paid_at"), nullptr) << "most values are none, and the others times";
  // A time that many records lack is none of the record's, in any order.
  const auto lacking = [](int each) {
    return [=](int i) { return i % each == 3 ? "" : std::to_string(1'700'000'000 + i * 7); };
  };
  left_out(RolesOf("seen", lacking(5)), "seen", "20.0 % of the records lack it");
  EXPECT_TRUE(RolesOf("seen", lacking(20)).time) << "one in twenty lacks it";
  // A second time is none of the record's.
  const Roles two = RolesOf("ts,then", [&](int i) {
    return fmt::format("{},{}", 1'700'000'000 + i * 7, 1'600'000'000 + i);
  });
  ASSERT_TRUE(two.time);
  EXPECT_EQ(ReasonLeftOut(*sample_, two, "then"), "it is a time beside the record's own");
}

// Amounts with texts among them are names, and a person hears of it.
TEST_F(OddValuesTest, NumbersWithTextsAreToldOf) {
  const auto roles_of = [&](const std::vector<std::string>& odd, int values) {
    return RolesOf("paid", [&](int i) {
      return i % 20 == 1 ? odd[static_cast<size_t>(i / 20) % odd.size()]
                         : std::to_string(i * 17 % values);
    });
  };
  const auto none = [](const std::string& texts) {
    return HasSubstr(fmt::format("\"paid\" has numbers, and {} in 100 records", texts));
  };
  const Roles null = roles_of({"NULL"}, 907);
  EXPECT_THAT(null.missing, ElementsAre("NULL"));
  EXPECT_THAT(null.warnings, ElementsAre(none("\"NULL\"")));
  EXPECT_THAT(roles_of({"inf"}, 907).warnings, ElementsAre(none("\"inf\"")));
  const Roles several = roles_of({"?", "nan", "-inf"}, 907);
  EXPECT_THAT(several.missing, testing::UnorderedElementsAre("?", "nan", "-inf"));
  EXPECT_THAT(several.warnings,
              ElementsAre(AllOf(HasSubstr("\"paid\" has numbers, and \""),
                                HasSubstr("in 100 records"), HasSubstr("lists them as missing"))));
  const Roles words = roles_of({"dear", "NULL"}, 907);
  EXPECT_THAT(words.missing, ElementsAre("NULL"));
  EXPECT_THAT(words.warnings, ElementsAre(HasSubstr("\"paid\" has numbers, and \"NULL\" in 50 "
                                                    "records, other texts in 50 records")));
  EXPECT_THAT(RolesOfJson("paid",
                          [](int i) {
                            return i % 20 == 1 ? std::string("\"NULL\"")
                                               : fmt::format("\"{}\"", i * 17 % 907);
                          })
                  .warnings,
              ElementsAre(HasSubstr("\"/paid\" has numbers, and \"NULL\" in 100 records")));
  EXPECT_THAT(roles_of({""}, 907).warnings, IsEmpty());
  EXPECT_THAT(roles_of({"dear"}, 7).warnings, IsEmpty()) << "so few numbers are names";
}

// Names that come once foretell nothing: the difference between their losses is chance.
// Commas make texts of numbers, and a price of nothing is one.
TEST_F(OddValuesTest, NumbersWithCommasAreToldOf) {
  const auto warnings = [&](const std::function<std::string(int)>& value) {
    return RolesOf("cost", [&](int i) { return '"' + value(i) + '"'; }).warnings;
  };
  const auto told = HasSubstr("\"cost\" has numbers with commas or other signs, which are read as");
  EXPECT_THAT(warnings([](int i) { return fmt::format("{},{:02}", i % 37, i % 3); }),
              ElementsAre(told));
  EXPECT_THAT(warnings([](int i) { return fmt::format("{},{:03}", 1 + i % 7, i % 99); }),
              ElementsAre(told));
  EXPECT_THAT(warnings([](int i) { return fmt::format("size {},{}", i % 9, i % 5); }), IsEmpty());
  EXPECT_THAT(warnings([](int i) { return std::to_string(i % 97); }), IsEmpty());
  for (const char* form :
       {"1.{:03},50", "1,{:03}.5", "${}.5", "{},5 EUR", "{} %", "{}%", "\u20ac {},00"})
    EXPECT_THAT(warnings([=](int i) { return fmt::format(fmt::runtime(form), i % 97); }),
                ElementsAre(told))
        << form;
  for (const char* form : {"C-{}", "{} days", "1.{}.2", "SKU {}", "{} red"})
    EXPECT_THAT(warnings([=](int i) { return fmt::format(fmt::runtime(form), i % 97); }), IsEmpty())
        << form;
}

// Days in a form that is not read are no categories, and no ids.
TEST_F(OddValuesTest, DaysOfOtherFormsAreToldOf) {
  for (const char* form :
       {"{0:02}.{1:02}.2024", "{1}/{0}/2024 3:{2:02} PM", "2024/{1}/{0}",
        "2024-{1:02}-{0:02} 06:{2:02}:00 UTC", "2024-{1:02}-{0:02} 06:{2:02}:00+00"}) {
    const Roles roles = RolesOf("made", [=](int i) {
      return fmt::format(fmt::runtime(form), 1 + i * 28 / 2000, 1 + i % 12, i % 60);
    });
    EXPECT_EQ(Feature(roles, "made"), nullptr) << form;
    EXPECT_FALSE(roles.event_id || roles.time) << form;
    EXPECT_THAT(roles.warnings,
                ElementsAre(HasSubstr("\"made\" seems to be a time, and is left out: not one")))
        << form;
  }
  const Roles digits =
      RolesOf("date", [](int i) { return std::to_string(20240301 + i * 28 / 2000); });
  EXPECT_EQ(Feature(digits, "date"), nullptr);
  EXPECT_THAT(digits.warnings,
              ElementsAre(HasSubstr("\"date\" seems to be a time, and is left out: not one")));
  const auto feature_of = [&](const std::string& name, int first) {
    return Feature(RolesOf(name, [=](int i) { return std::to_string(first + i % 28); }), name);
  };
  EXPECT_NE(feature_of("shop", 20240301), nullptr) << "a number of eight digits";
  EXPECT_NE(feature_of("hour", 20240081), nullptr) << "no day of a month";
  for (const char* form : {"10.{}.0.1", "2.{}.14", "{}-2024-11-12", "v2024.{}.1", "2024-{}-00017"})
    EXPECT_NE(
        Feature(RolesOf("made", [=](int i) { return fmt::format(fmt::runtime(form), i % 9); }),
                "made"),
        nullptr)
        << form;
}

// Texts of several words are no ids, though no two are the same.
TEST_F(OddValuesTest, TextsOfWordsAreNoIdsOfEvents) {
  const auto id_of = [&](const char* form) {
    const Roles roles =
        RolesOf("note", [=](int i) { return fmt::format(fmt::runtime(form), i * 7919); });
    return NameOfColumn(*sample_, roles.event_id);
  };
  EXPECT_EQ(id_of("n{}"), "note");
  EXPECT_EQ(id_of("good shoes {}"), "(none)");
}

TEST_F(OddValuesTest, NumbersOfOneRecordEachAreAmounts) {
  for (const int step : {701, 911, 1201, 7919}) {
    const Roles roles = RolesOf("stock", [=](int i) { return std::to_string(i * step % 2003); });
    const FeatureRole* stock = Feature(roles, "stock");
    ASSERT_NE(stock, nullptr);
    EXPECT_EQ(stock->kind, FeatureKind::kDense) << step << stock->reason;
  }
}

// A text that stands for none is no category, in any column of names.
TEST_F(OddValuesTest, TextsForNoneAmongNamesAreMissing) {
  const auto names = [](const std::string& form, const std::string& none) {
    return [=](int i) { return i % 5 == 0 ? none : fmt::format(fmt::runtime(form), i % 7); };
  };
  const auto listed = [&](const Roles& roles, const std::string& name, const std::string& none) {
    EXPECT_THAT(roles.missing, ElementsAre(none));
    EXPECT_THAT(roles.warnings,
                Contains(HasSubstr(fmt::format(
                    "\"{}\" has \"{}\" in 400 records, which stands for none: the proposal lists "
                    "it as missing",
                    name, none))));
  };
  listed(RolesOf("stars_given", names("{}", "NULL")), "stars_given", "NULL");
  listed(RolesOf("kind", names("k{}", "N/A")), "kind", "N/A");
  listed(RolesOfJson("kind", names("\"k{}\"", "\"null\"")), "/kind", "null");
  listed(RolesOf("sku", names("i{}", "none"), {.user = "shelf"}), "sku", "none");
  EXPECT_THAT(RolesOf("kind", names("k{}", "\\N")).missing, ElementsAre("\\N"));
  EXPECT_THAT(RolesOf("kind", names("k{}", "")).warnings, IsEmpty());
  EXPECT_THAT(RolesOf("clock", names("0{}:00", "00:00")).missing, IsEmpty());
  EXPECT_THAT(RolesOf("off", names("{}%", "0%")).missing, IsEmpty()) << "no reduction is one";
  // A text that is a label stays one.
  const Roles said = RolesOf("kind", names("k{}", "none"),
                             {.label = "kind", .label_values = {{"none", "0"}, {"k1", "1"}}});
  EXPECT_THAT(said.missing, IsEmpty());
  const Roles two =
      RolesOf("kind", [](int i) { return i % 20 == 0 ? "buy" : "none"; }, {.label = "kind"});
  ASSERT_TRUE(two.label);
  EXPECT_THAT(two.label->values,
              ElementsAre(testing::Pair("buy", "1"), testing::Pair("none", "0")));
  EXPECT_THAT(two.missing, IsEmpty());
}

// A few texts that stand for none do not hide a label, nor change what it is.
TEST_F(OddValuesTest, TextsForNoneInPlaceOfALabelAreMissing) {
  const auto roles_of = [&](const std::string& name, const std::string& odd, int each,
                            const std::function<std::string(int)>& label) {
    sample_ =
        &Read("label.csv", ShopWith(name, [&](int i) { return i % each == 0 ? odd : label(i); }));
    return FindRoles(*sample_);
  };
  const auto click = [](int i) { return std::string(i * 13 % 10 < 3 ? "1" : "0"); };
  const auto told = ElementsAre(HasSubstr("100 records have \"NULL\" in place of the label"));
  const Roles roles = roles_of("click", "NULL", 20, click);
  ASSERT_TRUE(roles.label);
  EXPECT_EQ(NameOfColumn(*sample_, roles.label->column), "click");
  EXPECT_EQ(roles.label->reason, "it is 0 or 1");
  EXPECT_TRUE(roles.label->values.empty());
  EXPECT_FALSE(roles.label->at_least);
  EXPECT_THAT(roles.missing, ElementsAre("NULL"));
  EXPECT_THAT(roles.warnings, told);
  const Roles scale =
      roles_of("rating", "NULL", 20, [](int i) { return std::to_string(1 + i * 13 % 5); });
  ASSERT_TRUE(scale.label);
  EXPECT_TRUE(scale.label->at_least) << "it is a scale as it is without the text";
  EXPECT_THAT(scale.warnings, told);
  const Roles words = roles_of("outcome", "NULL", 20, [](int i) {
    return std::string(i * 13 % 10 < 3 ? "paid" : i % 2 == 0 ? "seen" : "gone");
  });
  ASSERT_TRUE(words.label);
  EXPECT_THAT(words.label->values, Not(Contains(testing::Pair("NULL", testing::_))));
  EXPECT_THAT(words.warnings, told);
  const Roles fifth = roles_of("click", "NULL", 5, click);
  EXPECT_FALSE(fifth.label) << "a fifth is not a few";
  EXPECT_THAT(fifth.warnings, Contains(HasSubstr("it has 3 different values, 1,600 numbers, 400 "
                                                 "texts. With --label it is one all the same")));
  EXPECT_FALSE(roles_of("click", "maybe", 20, click).label) << "it is no none";
}

// Each spelling may be rare where all together are not.
TEST_F(OddValuesTest, PlaceholdersOfUsersAreCountedTogether) {
  const auto roles_of = [&](int each) {
    return RolesOf("user", [=](int i) {
      static constexpr const char* kNone[] = {"NULL", "nan", "n/a"};
      return i % each == 0 ? kNone[i / each % 3] : fmt::format("u{}", i * 31 % 97);
    });
  };
  const Roles some = roles_of(20);
  EXPECT_THAT(some.warnings, Contains(HasSubstr("5.0 % of the records have the users \"NULL\", "
                                                "\"n/a\", \"nan\", who seem to be none")));
  EXPECT_THAT(some.missing, ElementsAre("NULL", "n/a", "nan"));
  EXPECT_THAT(roles_of(50).warnings, Not(Contains(HasSubstr("to be none"))));
}

// Signs between values make no word.
TEST_F(OddValuesTest, SeveralValuesStandForNoNone) {
  for (const char* text :
       {"none", "n/a", "<None>", "not set", "0000-00-00", "-", "--", "?", ".", "0"})
    EXPECT_TRUE(StandsForNone(text)) << text;
  for (const char* text : {"a;non", "n|a", "0;0", "*", "+", "***", "0-0", "()", "00:00"})
    EXPECT_FALSE(StandsForNone(text)) << text;
}

// A label that was asked for is learnt from, or refused with its counts.
TEST_F(OddValuesTest, ALabelThatSaysNothingIsRefused) {
  const auto why = [&](const std::function<std::string(int)>& value, const Named& named) {
    return WhyNothingToLearn(RolesOf("bought", value, named));
  };
  const auto all = [](const std::string& text) { return [=](int) { return text; }; };
  const auto some = [](const std::string& text) {
    return [=](int i) { return i % 4 == 0 ? text : std::string(); };
  };
  const Named named{.label = "bought"};
  EXPECT_THAT(why(all("0"), named),
              HasSubstr("\"bought\" cannot be the label: it is \"0\" in 2,000 records;"));
  EXPECT_THAT(why(all("no"), named), HasSubstr("it is \"no\" in 2,000 records"));
  EXPECT_THAT(why(all(""), named), HasSubstr("no record has it"));
  EXPECT_THAT(why(some("1"), named),
              HasSubstr("it is \"1\" in 500 records, and is missing in 1,500 records"));
  EXPECT_THAT(why([](int i) { return fmt::format("b{}", i); }, named),
              HasSubstr("it has 2,000 different values, 2,000 texts"));
  EXPECT_THAT(why([](int i) { return i % 2 == 0 ? "view" : "cart"; },
                  {.label = "bought", .label_values = {{"view", "0"}, {"buy", "1"}}}),
              HasSubstr("it has 2 different values, 2,000 texts"));
  EXPECT_THAT(why(Seconds(3000, ""), named), HasSubstr("its values are times"));
  EXPECT_EQ(why([](int i) { return i % 9 == 0 ? "1" : "0"; }, named), "");
  // Without a person's word it is told of.
  const Roles roles = FindRoles(Read("seen.csv", ShopWith("click", all("0"))));
  EXPECT_FALSE(roles.label);
  EXPECT_THAT(roles.warnings, Contains(HasSubstr("\"click\" is called as labels are, and is not "
                                                 "taken for one: it is \"0\" in 2,000 records")));
  const Roles word = FindRoles(Read("seen.csv", ShopWith("click", all("no"))));
  EXPECT_THAT(word.warnings, testing::Each(Not(HasSubstr("With --label"))));
  // It is told of beside a guess too: records that are no clicks often lack the field.
  const Roles beside =
      FindRoles(Read("seen.csv", ShopWith("clicked,slot", [](int i) {
                       return fmt::format("{},{}", i % 9 == 0 ? "true" : "", i / 3 % 4);
                     })));
  ASSERT_TRUE(beside.label);
  EXPECT_TRUE(beside.label->grounds.guessed);
  EXPECT_THAT(beside.warnings,
              ElementsAre(HasSubstr("\"clicked\" is called as labels are, and is not taken for "
                                    "one: it is \"true\" in 223 records, and is missing in"),
                          HasSubstr("0 or less as \"slot\"")));
}

}  // namespace
}  // namespace tacit::inspect

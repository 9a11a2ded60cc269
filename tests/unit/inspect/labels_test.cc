// Tests that the label is found by its values and its name, and called a guess where it is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inspect/roles.h"
#include "unit/inspect/roles_fixture.h"

namespace tacit::inspect {
namespace {

using testing::HasSubstr;

TEST_F(RolesTest, LabelsOfManyKinds) {
  const auto label_of = [&](const std::vector<std::string>& values) {
    std::string text;
    for (size_t i = 0; i < 400; ++i)
      text += fmt::format("{{\"what\":{},\"colour\":\"c{}\"}}\n", values[i % values.size()], i % 9);
    const Roles roles = FindRoles(Read("labels.jsonl", text));
    return roles.label.value_or(LabelRole());
  };
  EXPECT_THAT(label_of({"0", "0", "1"}).reason, HasSubstr("0 or 1"));
  EXPECT_THAT(label_of({"true", "false"}).reason, HasSubstr("0 or 1"));
  const LabelRole two = label_of({"1", "2", "2"});
  EXPECT_TRUE(two.values_open) << "1 may be yes, and 2 no";
  EXPECT_EQ(two.values, (config::Words{{"1", "1"}, {"2", "0"}})) << "for a trial alone";
  EXPECT_TRUE(label_of({"-1", "1", "1"}).values_open);
  EXPECT_TRUE(label_of({"1.5", "2.5"}).values_open);
  const LabelRole event = label_of({"\"view\"", "\"view\"", "\"buy\""});
  EXPECT_TRUE(event.values_open) << "no word alone is a success";
  EXPECT_EQ(event.reason, "its values are \"view\" in 267 records, \"buy\" in 133");
  const LabelRole unknown = label_of({"\"a\"", "\"a\"", "\"b\""});
  EXPECT_TRUE(unknown.values_open) << "no word is a success: a person has to say";
  EXPECT_TRUE(unknown.grounds.guessed);
  EXPECT_EQ(unknown.values, (config::Words{{"a", "0"}, {"b", "1"}})) << "for a trial alone";
  // Numbers in quotes are words to the codec.
  EXPECT_EQ(label_of({"\"0\"", "\"0\"", "\"1\""}).values, (config::Words{{"0", "0"}, {"1", "1"}}));
  const LabelRole scale = label_of({"1", "2", "3", "4", "5"});
  EXPECT_EQ(scale.at_least, 3);
  EXPECT_THAT(scale.reason, HasSubstr("GUESSED: it is 1 from 3 on"));
  EXPECT_EQ(label_of({"7"}).reason, "") << "one value is no label";
  // Nor is it where a person says so, and neither are lists.
  for (const char* value : {"7", "[1,2]"}) {
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += fmt::format("{{\"what\":{},\"colour\":\"c{}\"}}\n", value, i % 9);
    EXPECT_FALSE(FindRoles(Read("named.jsonl", text), {.label = "/what"}).label) << value;
  }
}

// A label that no person has named is a guess, and has the other columns that may be labels beside
// it.
TEST_F(RolesTest, AGuessedLabelNamesItsRivals) {
  const auto label_of = [&](const std::string& header, const std::vector<std::string>& words) {
    std::string text = header + ",colour\n";
    for (size_t i = 0; i < 600; ++i)
      text += fmt::format("{},{},c{}\n", words[i % words.size()], i % 5 == 0 ? 1 : 0, i % 9);
    const Sample& sample = Read("guess.csv", text);
    return std::pair(&sample, FindRoles(sample).label.value());
  };
  const auto [plain, by_name] = label_of("weather,clicked", {"sun", "rain", "wind"});
  EXPECT_EQ(NameOfColumn(*plain, by_name.column), "clicked");
  EXPECT_TRUE(by_name.grounds.guessed);
  EXPECT_EQ(by_name.grounds.reason, "by its name");
  EXPECT_THAT(by_name.grounds.rivals, testing::IsEmpty());
  const auto [two, either] = label_of("bought,clicked", {"1", "0"});
  EXPECT_TRUE(either.grounds.guessed);
  EXPECT_EQ(NameOfColumn(*two, either.column), "bought");
  EXPECT_THAT(either.grounds.rivals, testing::ElementsAre("clicked"));
  // 0 and 1 go before words, which tell no success.
  const auto [untold, number] = label_of("type,mobile", {"view", "scroll", "leave"});
  EXPECT_EQ(NameOfColumn(*untold, number.column), "mobile");
  EXPECT_TRUE(number.grounds.guessed);
  EXPECT_THAT(number.grounds.rivals, testing::ElementsAre("type"));
  const auto [told, flag] = label_of("type,mobile", {"view", "scroll", "payment"});
  EXPECT_EQ(NameOfColumn(*told, flag.column), "mobile");
  EXPECT_THAT(flag.grounds.rivals, testing::ElementsAre("type"));
}

// A name that labels share with other things is the label's if its values are those of a label.
TEST_F(RolesTest, ALabelsNameAloneIsNotEnough) {
  const auto label_of = [&](const std::string& name, const std::function<std::string(int)>& value,
                            bool flag) {
    sample_ = &Read("names.csv", ShopWith(flag ? name + ",opened" : name, [&](int i) {
                      return value(i) + (!flag ? "" : i * 13 % 10 < 3 ? ",1" : ",0");
                    }));
    const LabelRole label = FindRoles(*sample_).label.value_or(LabelRole());
    return label.grounds.guessed ? NameOfColumn(*sample_, label.column) : "(none)";
  };
  const auto number = [](int least, int count) {
    return [=](int i) { return std::to_string(least + i * 17 % count); };
  };
  const auto company = [](int i) { return fmt::format("company {}", i * 17 % 6); };
  EXPECT_EQ(label_of("y", number(0, 1901), true), "opened") << "a place on a screen";
  EXPECT_EQ(label_of("paid", number(5, 997), true), "opened") << "an amount";
  EXPECT_EQ(label_of("label", company, true), "opened") << "a company that sells music";
  EXPECT_EQ(label_of("rating", number(1, 500), true), "opened") << "the mean of a film's";
  EXPECT_EQ(label_of("response", number(200, 5), false), "response") << "a status";
  EXPECT_EQ(label_of("response", number(1, 2), false), "response") << "1 is yes";
  EXPECT_EQ(label_of("label", number(0, 3), false), "label") << "from 1, or 2?";
  EXPECT_EQ(label_of("stars", number(1, 5), true), "stars") << "a hotel's, with guests";
  EXPECT_EQ(label_of("clicked", number(0, 2), true), "clicked");
  const auto sign = [](int i) { return std::string(i % 3 == 0 ? "1" : "-1"); };
  EXPECT_EQ(label_of("y", sign, true), "y");
  const auto percent = [](int i) { return fmt::format("{}%", i * 17 % 60); };
  EXPECT_NE(label_of("off", percent, false), "off") << "1% is no success";
  const auto outcome = [](int i) {
    return std::string(i % 3 == 0 ? "paid" : i % 3 == 1 ? "left" : "lost");
  };
  EXPECT_EQ(label_of("said", outcome, false), "(none)");
  EXPECT_THAT(FindRoles(*sample_).warnings,
              testing::Contains(HasSubstr("These have few values: \"shelf\", \"said\";")));
  EXPECT_EQ(label_of("outcome", outcome, true), "opened");
  EXPECT_EQ(label_of("outcome", outcome, false), "outcome");
}

// Each word of a label, and the label that it has; "?" where a person has to say.
std::string RuleOf(const LabelRole& label) {
  std::string rule;
  for (const auto& [word, value] : label.values)
    rule += fmt::format("{}{}={}", rule.empty() ? "" : " ", word, label.values_open ? "?" : value);
  if (label.at_least) rule += fmt::format("from {}", *label.at_least);
  return rule;
}

// A scale is not turned over: numbers in quotes are numbers. A word is a success beside its
// opposite alone, and two of an event or of praise are none. A person's --label changes nothing of
// it.
TEST_F(RolesTest, ASuccessThatWordsDoNotTellStaysOpen) {
  const auto rule_of = [&](const std::string& name, const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < 600; ++i)
      text += fmt::format("{{\"{}\":\"{}\",\"colour\":\"c{}\"}}\n", name,
                          words[i * 7 % words.size()], i % 9);
    const Sample& sample = Read("words.jsonl", text);
    const std::string rule = RuleOf(FindRoles(sample).label.value_or(LabelRole()));
    EXPECT_EQ(RuleOf(FindRoles(sample, {.label = '/' + name}).label.value()), rule) << name;
    return rule;
  };
  EXPECT_EQ(rule_of("rating", {"1", "2", "3", "4", "5"}), "1=? 2=? 3=? 4=? 5=?");
  EXPECT_EQ(rule_of("what", {"1", "2"}), "1=? 2=?");
  EXPECT_EQ(rule_of("what", {"-1", "1"}), "-1=? 1=?");
  EXPECT_EQ(rule_of("what", {"0", "1"}), "0=0 1=1");
  EXPECT_EQ(rule_of("what", {"0.0", "1.0"}), "0.0=0 1.0=1");
  EXPECT_EQ(rule_of("rating", {"awful", "poor", "good", "great", "excellent"}),
            "awful=? excellent=? good=? great=? poor=?");
  EXPECT_EQ(rule_of("type", {"yes", "no", "later"}), "later=? no=? yes=?");
  EXPECT_EQ(rule_of("response", {"good", "excellent"}), "excellent=? good=?");
  EXPECT_EQ(rule_of("reaction", {"like", "love"}), "like=? love=?");
  EXPECT_EQ(rule_of("what", {"yes", "maybe"}), "maybe=? yes=?");
  EXPECT_EQ(rule_of("what", {"yes", "no"}), "no=0 yes=1");
  EXPECT_EQ(rule_of("what", {"N", "Y"}), "N=0 Y=1");
  EXPECT_EQ(rule_of("what", {"TRUE", "FALSE"}), "FALSE=0 TRUE=1");
  EXPECT_EQ(rule_of("what", {"t", "f"}), "f=0 t=1");
  EXPECT_EQ(rule_of("type", {"view", "purchase", "cart"}), "cart=? purchase=? view=?");
}

// 0 and -1 beside ratings may be no ratings, and a threshold is a guess under --label too.
TEST_F(RolesTest, AScaleMayHaveNumbersForNoAnswer) {
  const auto roles_of = [&](int least, int count) {
    return FindRoles(
        Read("scale.csv",
             ShopWith("stars", [&](int i) { return std::to_string(least + i % count); })),
        {.label = "stars"});
  };
  const auto told = testing::Contains(HasSubstr(" 0 or less as \"stars\""));
  EXPECT_THAT(roles_of(0, 5).warnings, testing::Contains(HasSubstr("400 records have 0 or less")));
  EXPECT_THAT(roles_of(-1, 3).warnings, told);
  EXPECT_THAT(roles_of(1, 5).warnings, testing::Not(told));
  EXPECT_THAT(roles_of(-5, 5).warnings, testing::Not(told)) << "none is 1 or more";
  EXPECT_THAT(roles_of(1, 5).label.value().reason, HasSubstr("GUESSED: it is 1 from 3 on"));
  EXPECT_THAT(roles_of(1, 5).label->reason,
              HasSubstr("its values are \"1\" in 400 records, \"2\" in 400, \"3\" in 400"));
}

// A number that lies far from a scale, or beside 0 and 1, is named, and no guess goes by it.
TEST_F(RolesTest, ANumberFarFromAScaleMayBeNoAnswer) {
  const auto roles_of = [&](const std::vector<int>& values) {
    return FindRoles(Read("far.csv", ShopWith("stars",
                                              [&](int i) {
                                                const auto k = static_cast<size_t>(i);
                                                return std::to_string(values[k % values.size()]);
                                              })),
                     {.label = "stars"});
  };
  const auto far = [](const std::string& number) {
    return testing::ElementsAre(
        HasSubstr(" records have " + number + ", far from the others, as \"stars\""));
  };
  const Roles scale = roles_of({1, 2, 3, 99, 99, 4, 5, 99});
  EXPECT_THAT(scale.warnings, far("99"));
  EXPECT_EQ(scale.label.value().at_least, 3);
  EXPECT_THAT(roles_of({0, 0, 0, 1, 9}).warnings, far("9")) << "the zeros are none of no answer";
  EXPECT_EQ(roles_of({0, 0, 0, 1, 9}).label.value().at_least, 1);
  EXPECT_THAT(roles_of({-999, 1, 2, 3}).warnings, far("-999"));
  EXPECT_THAT(roles_of({1, 2, 3, 98, 99}).warnings, far("98 to 99"));
  EXPECT_THAT(roles_of({1, 2, 3, 5}).warnings, testing::IsEmpty());
}

// A text for none that most records have is a label of its own, for a guess as for a person's.
TEST_F(RolesTest, AWordOfNoneThatMostRecordsHaveIsALabel) {
  const Sample& sample =
      Read("outcome.csv", ShopWith("outcome", [](int i) {
             return std::string(i % 10 < 7 ? "none" : i % 10 < 9 ? "open" : "click");
           }));
  const config::Words values = {{"click", "1"}, {"none", "0"}, {"open", "0"}};
  for (const char* named : {"", "outcome"}) {
    const Roles roles = FindRoles(sample, {.label = named});
    ASSERT_TRUE(roles.label) << named;
    EXPECT_EQ(roles.label->values, values) << named;
    EXPECT_THAT(roles.missing, testing::IsEmpty()) << named;
  }
}

// A column that many records lack is no guess, but a rival; a person who names it hears of the
// rest.
TEST_F(RolesTest, AColumnThatManyRecordsLackMayBeTheLabel) {
  const auto churn = [](int each) {
    return ShopWith("mobile,churn", [=](int i) {
      return fmt::format("{},{}", i % 2, i % each == 0 ? "" : i * 13 % 10 < 3 ? "1" : "0");
    });
  };
  const Sample& sample = Read("lacking.csv", churn(4));
  const Roles roles = FindRoles(sample);
  ASSERT_TRUE(roles.label);
  EXPECT_EQ(NameOfColumn(sample, roles.label->column), "mobile");
  EXPECT_THAT(roles.label->grounds.rivals, testing::ElementsAre("churn"));
  const auto told = testing::Contains(HasSubstr("25.0 % of the records have no \"churn\""));
  EXPECT_THAT(FindRoles(sample, {.label = "churn"}).warnings, told);
  EXPECT_THAT(roles.warnings, testing::Not(told));
  const Sample& few = Read("few.csv", churn(40));
  EXPECT_THAT(FindRoles(few, {.label = "churn"}).warnings, testing::IsEmpty());
}

// Rivals are named as --label takes them: deep fields of JSON by their pointers.
TEST_F(RolesTest, TheRivalsOfAGuessAreNamedByTheirPlaces) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format(R"({{"in":{{"a":"{}","b":"{}"}},"c":"c{}"}})"
                        "\n",
                        i * 13 % 10 < 3 ? "x" : "y", i * 7 % 11 < 4 ? "p" : "q", i % 7);
  const Sample& sample = Read("deep.jsonl", text);
  const Roles roles = FindRoles(sample);
  ASSERT_TRUE(roles.label);
  const std::string label = sample.columns[roles.label->column].place;
  EXPECT_THAT(roles.label->grounds.rivals,
              testing::ElementsAre(label == "/in/a" ? "/in/b" : "/in/a"));
}

}  // namespace
}  // namespace tacit::inspect

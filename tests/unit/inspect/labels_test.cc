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
  EXPECT_EQ(label_of({"1", "2", "2"}).at_least, 2);
  EXPECT_EQ(label_of({"\"view\"", "\"view\"", "\"buy\""}).values,
            (config::Words{{"buy", "1"}, {"view", "0"}}));
  EXPECT_FALSE(label_of({"\"view\"", "\"view\"", "\"buy\""}).values_open);
  const LabelRole unknown = label_of({"\"a\"", "\"a\"", "\"b\""});
  EXPECT_TRUE(unknown.values_open) << "no word is a success: a person has to say";
  EXPECT_TRUE(unknown.guessed);
  EXPECT_EQ(unknown.values, (config::Words{{"a", "0"}, {"b", "1"}})) << "for a trial alone";
  // Numbers in quotes are words to the codec.
  EXPECT_EQ(label_of({"\"0\"", "\"0\"", "\"1\""}).values, (config::Words{{"0", "0"}, {"1", "1"}}));
  EXPECT_EQ(label_of({"1", "2", "3", "4", "5"}).at_least, 3);
  EXPECT_EQ(label_of({"7"}).reason, "") << "one value is no label";
  // Nor is it where a person says so, and neither are lists.
  for (const char* value : {"7", "[1,2]"}) {
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += fmt::format("{{\"what\":{},\"colour\":\"c{}\"}}\n", value, i % 9);
    EXPECT_FALSE(FindRoles(Read("named.jsonl", text), {.label = "/what"}).label) << value;
  }
}

// A label is called guessed where its name does not say it, or other columns might be meant.
TEST_F(RolesTest, AGuessedLabelNamesTheOthers) {
  const auto label_of = [&](const std::string& header, const std::vector<std::string>& words) {
    std::string text = header + ",colour\n";
    for (size_t i = 0; i < 600; ++i)
      text += fmt::format("{},{},c{}\n", words[i % words.size()], i % 5 == 0 ? 1 : 0, i % 9);
    const Sample& sample = Read("guess.csv", text);
    return std::pair(&sample, FindRoles(sample).label.value());
  };
  const auto [plain, by_name] = label_of("weather,clicked", {"sun", "rain", "wind"});
  EXPECT_EQ(NameOfColumn(*plain, by_name.column), "clicked");
  EXPECT_FALSE(by_name.guessed);
  const auto [two, either] = label_of("bought,clicked", {"1", "0"});
  EXPECT_TRUE(either.guessed);
  EXPECT_EQ(NameOfColumn(*two, either.column), "bought");
  EXPECT_THAT(either.others, testing::ElementsAre("clicked"));
  // 0 and 1 go before words that tell no success, and after words that do.
  const auto [untold, number] = label_of("type,mobile", {"view", "scroll", "leave"});
  EXPECT_EQ(NameOfColumn(*untold, number.column), "mobile");
  EXPECT_TRUE(number.guessed);
  EXPECT_THAT(number.others, testing::ElementsAre("type"));
  const auto [told, word] = label_of("type,mobile", {"view", "scroll", "payment"});
  EXPECT_EQ(NameOfColumn(*told, word.column), "type");
  EXPECT_THAT(word.others, testing::ElementsAre("mobile"));
  EXPECT_EQ(word.values, (config::Words{{"payment", "1"}, {"scroll", "0"}, {"view", "0"}}));
}

// A name that labels share with other things is a guess, unless the values are those of a label.
TEST_F(RolesTest, ALabelsNameAloneIsAGuess) {
  using Told = std::pair<std::string, bool>;  // its name, and whether it is guessed
  const auto label_of = [&](const std::string& name, const std::function<std::string(int)>& value,
                            bool flag) {
    sample_ = &Read("names.csv", ShopWith(flag ? name + ",opened" : name, [&](int i) {
                      return value(i) + (!flag ? "" : i * 13 % 10 < 3 ? ",1" : ",0");
                    }));
    const LabelRole label = FindRoles(*sample_).label.value_or(LabelRole());
    return Told(NameOfColumn(*sample_, label.column), label.guessed);
  };
  const auto number = [](int least, int count) {
    return [=](int i) { return std::to_string(least + i * 17 % count); };
  };
  const auto company = [](int i) { return fmt::format("company {}", i * 17 % 6); };
  const Told opened("opened", true);
  EXPECT_EQ(label_of("y", number(0, 1901), true), opened) << "a place on a screen";
  EXPECT_EQ(label_of("paid", number(5, 997), true), opened) << "an amount";
  EXPECT_EQ(label_of("label", company, true), opened) << "a company that sells music";
  EXPECT_EQ(label_of("response", number(200, 5), false), Told("response", true)) << "a status";
  EXPECT_EQ(label_of("response", number(1, 2), false), Told("response", true)) << "1 is yes";
  EXPECT_EQ(label_of("label", number(0, 3), false), Told("label", true)) << "from 1, or 2?";
  EXPECT_EQ(label_of(
                "y", [](int i) { return i % 3 == 0 ? "1" : "-1"; }, true),
            Told("y", false));
  EXPECT_EQ(label_of("rating", number(1, 5), false), Told("rating", false));
  EXPECT_EQ(label_of("stars", number(1, 5), true), Told("stars", true)) << "a hotel's, with guests";
  EXPECT_EQ(label_of("paid", number(0, 2), true), Told("paid", true))
      << "a visit by an advertisement";
  EXPECT_EQ(label_of("paid", number(0, 2), false), Told("paid", false));
  EXPECT_EQ(label_of("clicked", number(0, 2), true), Told("clicked", false));
  EXPECT_EQ(label_of("rating", number(1, 500), true), opened) << "the mean of a film's";
  EXPECT_NE(label_of(
                "off", [](int i) { return fmt::format("{}%", i * 17 % 60); }, false),
            Told("off", true))
      << "1% is no success";
  EXPECT_EQ(
      label_of(
          "said", [](int i) { return i % 9 == 0  ? "like"
                                     : i % 9 < 3 ? "hate"
                                                 : "see"; }, false),
      Told("said", true));
  EXPECT_EQ(label_of(
                "outcome", [](int i) { return i % 3 == 0   ? "paid"
                                              : i % 3 == 1 ? "left"
                                                           : "lost"; },
                true),
            Told("outcome", false));
}

// The others are named as --label takes them: deep fields of JSON by their pointers.
TEST_F(RolesTest, TheOthersOfAGuessAreNamedByTheirPlaces) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format(R"({{"in":{{"a":"{}","b":"{}"}},"c":"c{}"}})"
                        "\n",
                        i * 13 % 10 < 3 ? "x" : "y", i * 7 % 11 < 4 ? "p" : "q", i % 7);
  const Sample& sample = Read("deep.jsonl", text);
  const Roles roles = FindRoles(sample);
  ASSERT_TRUE(roles.label);
  const std::string label = sample.columns[roles.label->column].place;
  EXPECT_THAT(roles.label->others, testing::ElementsAre(label == "/in/a" ? "/in/b" : "/in/a"));
}

}  // namespace
}  // namespace tacit::inspect

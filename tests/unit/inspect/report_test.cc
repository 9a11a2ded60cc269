// Tests that a report says in words what an operator has to know before the first start.
#include "inspect/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <functional>

#include "support/process.h"
#include "support/temp_dir.h"

namespace tacit::inspect {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportTest : public testing::Test {
 protected:
  struct Looked {
    Sample sample;
    Roles roles;
    Proposal proposal;
    Trial trial;

    std::string Text() const { return ReportText(sample, roles, trial); }
    boost::json::object Json() const { return ReportJson(sample, roles, trial); }
  };
  // Looks at a file of these lines behind a header.
  Looked LookAt(const std::string& header, int rows, const std::function<std::string(int)>& line,
                double epsilon = 1) {
    std::string text = header + '\n';
    for (int i = 0; i < rows; ++i) text += line(i) + '\n';
    test::WriteFile(dir_ / "log.csv", text);
    auto sample = ReadSample({dir_ / "log.csv"}, {});
    EXPECT_TRUE(sample) << sample.error().message;
    Looked looked{.sample = *sample, .roles = FindRoles(*sample), .proposal = {}, .trial = {}};
    const auto proposal =
        Propose(looked.sample, looked.roles,
                {.epsilon = epsilon, .delta = 1e-6, .unit = "event", .mode = "once"});
    EXPECT_TRUE(proposal) << proposal.error().message;
    if (!proposal) return looked;
    looked.proposal = *proposal;
    const auto trial = TryOut(looked.sample, looked.proposal.config);
    EXPECT_TRUE(trial) << trial.error().message;
    if (trial) looked.trial = *trial;
    return looked;
  }
  // A click in each `each`th of `rows` records.
  Looked Clicks(int rows, int each, double epsilon = 1) {
    return LookAt(
        "click,shelf", rows,
        [each](int i) { return fmt::format("{},s{}", i % each == 0 ? 1 : 0, i % 7); }, epsilon);
  }

  test::TempDir dir_;
};

// Some 42 labels beside noise of some ten.
TEST_F(ReportTest, FewLabelsBesideTheNoiseAreWarnedOf) {
  const auto warning = [&](int each) {
    const Looked looked = Clicks(8400, each);
    return FewLabelsInNoise(looked.proposal, looked.sample, looked.trial);
  };
  EXPECT_THAT(warning(200), HasSubstr("42 labels of 1 in the first period are few"));
  EXPECT_EQ(warning(4), "");
  // The first period of a long log is no longer than that of a short one.
  const Looked looked = Clicks(60'000, 200);
  EXPECT_EQ(looked.proposal.config.learners[0].participation.batch, 150'000u);
  EXPECT_THAT(FewLabelsInNoise(looked.proposal, looked.sample, looked.trial),
              HasSubstr("50 labels of 1 in the first period"));
  // A person has yet to say which value is 1.
  EXPECT_THAT(FewLabelsInNoise(looked.proposal, looked.sample, looked.trial, true),
              HasSubstr("50 labels of the rarest value in the first period"));
}

// The deviation of an AUC is that of the pairs' share in order, counted over all orders of n labels
// of 1 among m of 0: sqrt((n + m + 1) / (12 n m)).
TEST_F(ReportTest, LabelsThatTellNoAucAreWarnedOf) {
  const auto warning = [&](int rows, int each) {
    const Looked looked = Clicks(rows, each, /*epsilon=*/8);
    for (const std::string& one : WarningsAbout(looked.sample, looked.roles, looked.trial))
      if (one.find("tells an AUC") != std::string::npos) return one;
    return std::string();
  };
  const double ones = 100 / 5.0, zeros = 19'900 / 5.0;
  const double known = 1.96 * std::sqrt((ones + zeros + 1) / (12 * ones * zeros));
  EXPECT_THAT(warning(20'000, 200),
              AllOf(HasSubstr("there are 100 labels of 1 in all"),
                    HasSubstr(fmt::format("tells an AUC to {:.2f} or worse", known)),
                    HasSubstr("a label that is 1 more often")));
  EXPECT_EQ(warning(20'000, 20), "");
}

// Files that are sorted by the label, or a label that begins half way.
TEST_F(ReportTest, HalvesOfOtherLabelsAreWarnedOf) {
  const auto warning = [&](int first_each, int second_each) {
    const Looked looked = LookAt("click,shelf", 4000, [&](int i) {
      const int each = i < 2000 ? first_each : second_each;
      return fmt::format("{},s{}", i % each == 0 ? 1 : 0, i % 7);
    });
    for (const std::string& one : WarningsAbout(looked.sample, looked.roles, looked.trial))
      if (one.find("sorted by it") != std::string::npos) return one;
    return std::string();
  };
  EXPECT_THAT(warning(1, 2000), HasSubstr("the label is 1 in 100.0 % of the first half and in "
                                          "0.1 % of the second"));
  EXPECT_THAT(warning(2000, 8), HasSubstr("in 12.5 % of the second"));
  EXPECT_THAT(warning(1, 2), HasSubstr("in 50.0 % of the second")) << "no label of 0 in the first";
  EXPECT_EQ(warning(8, 20), "") << "rates move";
  EXPECT_EQ(warning(2000, 50), "") << "40 labels are few";
}

// Late records are as far behind as they are late, and files in a wrong order by days.
TEST_F(ReportTest, OlderRecordsAreToldWithTheFurthest) {
  const auto text = [&](const std::function<int(int)>& second) {
    return LookAt("click,shelf,ts", 2000,
                  [&](int i) {
                    return fmt::format("{},s{},{}", i * 13 % 10 < 3 ? 1 : 0, i % 7,
                                       1'700'000'000 + second(i));
                  })
        .Text();
  };
  const std::string older = "of the records are older than the one before, by up to ";
  EXPECT_THAT(text([](int i) {
                return 60 * i - (i % 100 == 50 ? 7300 : i % 100 == 70 ? 90 : 0);
              }),
              HasSubstr("2.0 % " + older + "2 hours: they are learnt in the files' order"));
  EXPECT_THAT(text([](int i) { return i < 1000 ? 900'000 + i : i; }),
              HasSubstr("0.1 % " + older + "10 days"));
  EXPECT_THAT(text([](int i) { return i; }), Not(HasSubstr("older than")));
}

TEST_F(ReportTest, UsersAndItemsAreNamedOrMissed) {
  const auto look = [&](const std::string& header) {
    return LookAt(header, 2000, [](int i) {
      return fmt::format("{},n{},k{}", i * 13 % 10 < 3 ? 1 : 0, i * 17 % 307, i * 7 % 97);
    });
  };
  const Looked known = look("click,customer,sku");
  EXPECT_THAT(
      known.Text(),
      AllOf(HasSubstr("\nlabel      'click', GUESSED: by its name; it is 0 or 1; 30.0 % "),
            HasSubstr("\nuser       'customer', GUESSED: by its name; with unit user each of "
                      "its 307 values is one person\n"),
            HasSubstr("\nitem       'sku', GUESSED: by its name\n")));
  const boost::json::object json = known.Json();
  for (const auto& [part, field] :
       {std::pair("label", "click"), std::pair("user", "customer"), std::pair("item", "sku")}) {
    EXPECT_EQ(json.at(part).at("field"), field);
    EXPECT_EQ(json.at(part).at("guessed"), true);
    EXPECT_EQ(json.at(part).at("reason"), "by its name");
    EXPECT_EQ(json.at(part).at("rivals"), boost::json::array());
  }
  const Looked met = LookAt("click,customer,film", 2000, [](int i) {
    return fmt::format("{},n{},f{}", i * 13 % 10 < 3 ? 1 : 0, i * 17 % 307, i * 7 % 997);
  });
  EXPECT_THAT(met.Text(), HasSubstr("\nitem       'film', GUESSED: of the ids that a user meets"));
  const Looked grouped = LookAt("click,player,shelf", 2000, [](int i) {
    return fmt::format("{},p{},s{}", i * 13 % 10 < 3 ? 1 : 0, i / 13, i % 7);
  });
  EXPECT_THAT(grouped.Text(),
              HasSubstr("\nuser       'player', GUESSED: the file is grouped by its "
                        "values; with unit user each of its 154 values"));
  const Looked unknown = look("click,aa,bb");
  EXPECT_THAT(
      unknown.Text(),
      AllOf(HasSubstr("\nuser       none is found; it might be \""),
            HasSubstr("; --user FIELD names it: without a user the unit can be event alone\n"),
            HasSubstr("\nitem       none is found; --item FIELD names it\n")));
  EXPECT_EQ(unknown.Json().at("user"), nullptr);
}

// Little is not nothing, and one is not many.
TEST_F(ReportTest, NumbersHaveTheirWords) {
  const Looked looked = LookAt("click,shelf,ts", 4000, [](int i) {
    const int old = i == 3000 ? 2999 : i;  // the same line again
    return fmt::format("{},s{},{}", old == 1000 ? 1 : 0, old % 7,
                       1'700'000'000 + (old == 9 ? 0 : old));
  });
  EXPECT_THAT(
      looked.Text(),
      AllOf(HasSubstr("; under 0.1 % are 1: 0.1 % of the first half, 0.0 % of the second"),
            HasSubstr("1 record is there before, byte for byte"),
            HasSubstr("under 0.1 % of the records are older than the one before, by up to 8 "
                      "seconds"),
            HasSubstr("there is 1 label of 1 in all: a fifth of the records, held out, tells "
                      "an AUC to 0.50 or worse")));
}

// The time is proposed, and the records whose time cannot be read are counted with their reason.
TEST_F(ReportTest, BadTimesAreCounted) {
  const Looked looked = LookAt("click,shelf,at", 2000, [](int i) {
    return fmt::format("{},s{},2024-02-{} 10:{:02}:{:02}", i * 13 % 10 < 3 ? 1 : 0, i % 7,
                       i % 50 == 0 ? 30 : 11, i / 60 % 60, i % 60);
  });
  EXPECT_EQ(looked.proposal.config.source.csv.timestamp, "at");
  EXPECT_EQ(looked.trial.good, 1960u);
  EXPECT_THAT(looked.Text(),
              AllOf(HasSubstr("readable   1,960 of them"), HasSubstr("  40 not, first "),
                    HasSubstr("from 2024-02-11 10:00:01 to 2024-02-11 10:33:19")));
}

// Spreadsheets write columns that have neither a name nor a value.
TEST_F(ReportTest, ColumnsWithoutANameArePassedOver) {
  const Looked looked = LookAt("click,shelf,,", 2000, [](int i) {
    return fmt::format("{},s{},,", i * 13 % 10 < 3 ? 1 : 0, i % 7);
  });
  EXPECT_EQ(looked.trial.good, 2000u);
  EXPECT_THAT(looked.Text(), HasSubstr("left out: '': it has no name"));
}

// Numbers that grow may be numbers of invoices.
TEST_F(ReportTest, ATimeIsGuessedWithItsReason) {
  const auto text = [&](const std::string& name, const std::string& form) {
    return LookAt("click,shelf," + name, 2000,
                  [&](int i) {
                    return fmt::format("{},s{},{}", i * 13 % 10 < 3 ? 1 : 0, i % 7,
                                       fmt::format(fmt::runtime(form), 1000 + i));
                  })
        .Text();
  };
  const std::string time = "\ntime       '{}', GUESSED: {}; from ";
  EXPECT_THAT(text("invoice", "100000{}"),
              HasSubstr(fmt::format(fmt::runtime(time), "invoice",
                                    "its numbers grow, and might be times")));
  EXPECT_THAT(text("ts", "100000{}"),
              HasSubstr(fmt::format(fmt::runtime(time), "ts", "by its name")));
  EXPECT_THAT(text("invoice", "{}-01-01"),
              HasSubstr(fmt::format(fmt::runtime(time), "invoice", "its values are times")));
}

// A scale has no number of its own from which on it is a success.
TEST_F(ReportTest, AScaleSaysFromWhereItIsOne) {
  const Looked looked =
      LookAt("label,shelf", 2000, [](int i) { return fmt::format("{},s{}", i * 17 % 3, i % 7); });
  EXPECT_THAT(looked.Text(),
              AllOf(HasSubstr("\nlabel      'label', GUESSED: by its name; it is a scale, and "),
                    HasSubstr("; it is a scale, and GUESSED: it is 1 from 1 on, which divides the "
                              "records most evenly; change label_at_least in the proposal")));
  EXPECT_THAT(looked.proposal.yaml, HasSubstr("GUESSED: it is 1 from 1 on"));
  EXPECT_TRUE(ReportJson(looked.sample, looked.roles, looked.trial)
                  .at("label")
                  .at("at_least_guessed")
                  .as_bool());
}

// The first rivals are named, and the others counted.
TEST_F(ReportTest, FiveRivalsAreNamed) {
  const auto text = [&](int flags) {
    std::string header = "click,shelf";
    for (int flag = 0; flag < flags; ++flag) header += fmt::format(",is{}", flag);
    return LookAt(header, 2000,
                  [&](int i) {
                    std::string line = fmt::format("{},s{}", i * 13 % 10 < 3 ? 1 : 0, i % 7);
                    for (int flag = 0; flag < flags; ++flag)
                      line += i * 7 % (11 + flag) < 4 ? ",1" : ",0";
                    return line;
                  })
        .Text();
  };
  EXPECT_THAT(text(2), HasSubstr("by its name; it might be \"is0\" or \"is1\"; it is 0 or 1"));
  EXPECT_THAT(text(8), HasSubstr("\"is2\", \"is3\", \"is4\" and 3 more; it is 0 or 1"));
}

// A codec takes an id's text, so that one id in two forms counts for two.
TEST_F(ReportTest, IdsOfTwoFormsAreToldOf) {
  const auto warning = [&](const std::string& column, const std::string& form,
                           const std::string& other) {
    const Looked looked = LookAt("click,shelf," + column, 2000, [&](int i) {
      return fmt::format("{},s{},\"{}\"", i * 13 % 10 < 3 ? 1 : 0, i % 7,
                         fmt::format(fmt::runtime(i < 1200 ? form : other), 1000 + i * 31 % 97));
    });
    for (const std::string& one : WarningsAbout(looked.sample, looked.roles, looked.trial))
      if (one.find("more forms than one") != std::string::npos) return one;
    return std::string();
  };
  EXPECT_THAT(warning("user", "{}", "{}.0"),
              AllOf(HasSubstr("97 ids of the user, \"user\", have more forms than one, such as "),
                    HasSubstr(".0\" at "), HasSubstr("log.csv:1202. An id is its text")));
  for (const auto& [form, other] :
       {std::pair("{}", "00{}"), std::pair("{}", "{}.00"), std::pair("{}", " {}"),
        std::pair("ab{}", "AB{}"), std::pair("1{:03}", "1,{:03}")})
    EXPECT_NE(warning("user", form, other), "") << other;
  for (const char* form : {"{}", "{}.0", "AB{}", "00{}"})
    EXPECT_EQ(warning("user", form, form), "") << form;
  EXPECT_EQ(warning("user", "a{}", "b{}"), "");
  EXPECT_EQ(warning("stock", "{}", "{}.0"), "") << "an amount is one in either form";
  // JSON has both forms too.
  std::string json;
  for (int i = 0; i < 2000; ++i)
    json += fmt::format("{{\"click\":{},\"user\":{}{}}}\n", i * 13 % 10 < 3 ? 1 : 0, i * 31 % 97,
                        i < 1200 ? "" : ".0");
  test::WriteFile(dir_ / "log.jsonl", json);
  const auto sample = ReadSample({dir_ / "log.jsonl"}, {});
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_THAT(WarningsAbout(*sample, FindRoles(*sample, {.user = "/user"}), {}),
              testing::Contains(HasSubstr("97 ids of the user, \"/user\", have more forms")));
}

// 1.234 may be 1234 where thousands are parted by points.
TEST_F(ReportTest, FractionsOfThreeDigitsAreToldOf) {
  const auto text = [&](const std::string& more) {
    return LookAt("click,shelf,views", 2000,
                  [&](int i) {
                    return fmt::format("{},s{},{}", i * 13 % 10 < 3 ? 1 : 0, i % 7,
                                       i % 3 == 0 ? std::to_string(i % 907)
                                       : i == 1   ? more
                                                  : fmt::format("{}.{:03}", 1 + i % 9, i % 997));
                  })
        .Text();
  };
  const auto told = HasSubstr("WARNING: each fraction of \"views\" has three digits");
  EXPECT_THAT(text("12.345"), told);
  for (const char* more : {"1.5", "0.123", "1234.567"}) EXPECT_THAT(text(more), Not(told)) << more;
}

// Words that are no known label are judged by the rarest: halves of other words, and few of it.
TEST_F(ReportTest, OpenLabelsAreJudgedToo) {
  const auto text = [&](const std::function<bool(int)>& is_angry) {
    return LookAt(
               "mood,shelf", 4000,
               [&](int i) { return fmt::format("{},s{}", is_angry(i) ? "angry" : "calm", i % 7); })
        .Text();
  };
  EXPECT_THAT(text([](int i) { return i >= 2800; }),
              HasSubstr("the label is \"angry\" in 0.0 % of the first half and in 60.0 % of"));
  EXPECT_THAT(text([](int i) { return i % 100 == 0; }),
              HasSubstr("labels of \"angry\" in all: a fifth"));
  const std::string mixed = text([](int i) { return i * 13 % 10 < 3; });
  EXPECT_THAT(mixed,
              AllOf(Not(HasSubstr("of the first half and")), Not(HasSubstr("in all: a fi"))));
}

// A time after today is of another unit, or a wrong clock's.
TEST_F(ReportTest, TimesAfterTodayAreToldOf) {
  Looked looked = LookAt("click,shelf,ts", 2000, [](int i) {
    return fmt::format("{},s{},{}", i * 13 % 10 < 3 ? 1 : 0, i % 7, 1'700'000'000 + i);
  });
  const auto told = HasSubstr("have \"ts\", a time after today, up to 2023-11-14 22:46:39");
  EXPECT_THAT(looked.Text(), Not(told)) << "no clock is known";
  looked.sample.now_ms = (1'700'000'000.0 - 80'000) * 1000;
  EXPECT_THAT(looked.Text(), Not(told)) << "it is a day at most";
  looked.sample.now_ms = (1'700'000'000.0 + 1000 - 86'400) * 1000;
  EXPECT_THAT(looked.Text(), AllOf(told, HasSubstr("WARNING: 999 records have \"ts\"")));
}

TEST_F(ReportTest, ATimeOfAnotherAgeIsNoDayOfTheLog) {
  const Looked looked = LookAt("click,shelf,ts", 2000, [](int i) {
    return fmt::format("{},s{},{}", i * 13 % 10 < 3 ? 1 : 0, i % 7,
                       i % 100 == 3 ? 0 : 1'700'000'000 + i);
  });
  EXPECT_EQ(looked.trial.good, 2000u);
  EXPECT_THAT(
      looked.Text(),
      AllOf(
          HasSubstr("'ts', GUESSED: by its name; from 2023-11-14 22:13:20 to 2023-11-14 22:46:39"),
          HasSubstr("1980.0 events, over 1 day"), Not(HasSubstr("1970"))));
}

}  // namespace
}  // namespace tacit::inspect

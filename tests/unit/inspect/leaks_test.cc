// Tests that columns which are known only with the label are told, in each form that they have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inspect/report.h"
#include "inspect/roles.h"
#include "unit/inspect/roles_fixture.h"

namespace tacit::inspect {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class LeaksTest : public RolesTest {
 protected:
  // Records whose label is 1 in three of ten, and a column "after" beside it.
  Roles With(const std::function<std::string(int, bool)>& after) {
    sample_ = &Read("shop.csv", ShopWith("after,click", [&](int i) {
                      const bool one = i * 13 % 10 < 3;
                      return after(i, one) + (one ? ",1" : ",0");
                    }));
    return FindRoles(*sample_);
  }
  std::string LeftOut(const Roles& roles) { return ReasonLeftOut(*sample_, roles, "after"); }
};

// The most frequent value of a column is no presence: "no", "FALSE" and "$0.00" are its forms.
TEST_F(LeaksTest, AValueBesideTheMostFrequentOneMayBeALeak) {
  for (const auto& [no, yes] : {std::pair("no", "yes"), std::pair("FALSE", "TRUE"),
                                std::pair("$0.00", "$9.90"), std::pair("7", "8")}) {
    // In a fifth of the labels of 1 alone, so that no AUC shows it.
    const auto leak = [&, no = no, yes = yes](int exceptions) {
      return With([=](int i, bool one) {
        return std::string(
            (one && i % 5 == 0) || (!one && i / 2 < 5 * exceptions && i % 5 == 0) ? yes : no);
      });
    };
    EXPECT_EQ(
        LeftOut(leak(0)),
        fmt::format("200 of the 200 records where \"after\" is not \"{}\" have label 1: is it "
                    "known only afterwards?",
                    no));
    const Roles near = leak(1);
    EXPECT_EQ(LeftOut(near), "") << "one record is an exception";
    EXPECT_THAT(near.warnings, Contains(HasSubstr("200 of the 201 records where \"after\" is not")))
        << no;
  }
  const Roles amount = With([](int i, bool one) {
    return std::string(i == 1 || (one && i % 5 == 0) ? std::to_string(3 + i % 90) + ".5" : "0");
  });
  EXPECT_EQ(LeftOut(amount), "");
  EXPECT_THAT(amount.warnings,
              Contains(HasSubstr("200 of the 201 records where \"after\" is not 0 have label 1")));
  // A value that is honest has labels of either kind.
  const Roles honest = With([](int i, bool one) {
    return std::string(i % 7 == 0 || (one && i % 5 == 0) ? "yes" : "no");
  });
  EXPECT_EQ(LeftOut(honest), "");
  EXPECT_THAT(honest.warnings, Not(Contains(HasSubstr("\"after\""))));
}

// One value of several may be known only afterwards, in any form; a column with it stays.
TEST_F(LeaksTest, OneValueMayBeALeak) {
  const auto told = [&](const std::function<std::string(int, bool)>& after) {
    const Roles roles = With(after);
    EXPECT_EQ(LeftOut(roles), "");
    for (const std::string& warning : roles.warnings)
      if (warning.find("\"after\"") != warning.npos) return warning;
    return std::string();
  };
  const auto beside = [](int i, const char* a, const char* b) { return i % 7 < 4 ? a : b; };
  EXPECT_THAT(
      told([&](int i, bool one) { return one && i % 2 ? "captured" : beside(i, "new", "sent"); }),
      HasSubstr("200 of the 200 records where \"after\" is \"captured\" have label 1: is it "
                "known only afterwards?"));
  EXPECT_THAT(told([&](int i, bool one) { return one && i % 2 ? "" : beside(i, "yes", "no"); }),
              HasSubstr("200 of the 200 records where \"after\" is missing have label 1"));
  EXPECT_THAT(told([&](int i, bool one) {
                return one && i % 2 ? "-" + std::to_string(2 + i)
                       : i % 7 < 2  ? "7.5"
                                    : beside(i, "5.5", "0");
              }),
              HasSubstr("200 of the 200 records where \"after\" is below 0 have label 1"));
  EXPECT_THAT(told([&](int i, bool one) { return one && i % 2 ? "0" : beside(i, "5.5", "2"); }),
              HasSubstr("200 of the 200 records where \"after\" is 0 have label 1"));
  EXPECT_THAT(
      told([&](int i, bool one) { return one && i % 2 ? "thanks" : beside(i, "x|y", "y|z"); }),
      HasSubstr("200 of the 200 records where \"after\" is \"thanks\" have label 1"));
  // The AUC of an amount is told of too.
  EXPECT_THAT(told([&](int i, bool one) {
                return (one && i % 20 > 0) || i % 20 == 1 ? std::to_string(1 + i % 97) + ".5" : "0";
              }),
              HasSubstr("\"after\" alone foretells the label (AUC 0."));
  // A value that a part of others has too, or that has few of the labels of 1, says nothing.
  EXPECT_EQ(told([&](int i, bool one) {
              return (one && i % 2) || i % 30 == 1 ? "captured" : beside(i, "new", "sent");
            }),
            "");
  EXPECT_EQ(
      told([&](int i, bool one) { return one && i % 120 == 7 ? "odd" : beside(i, "a", "b"); }), "");
}

// Values that pass with time have a few labels each, and say it together.
TEST_F(LeaksTest, ValuesThatPassMayBeALeak) {
  const auto after = [](int weeks, bool tells) {
    return [=](int i, bool one) {
      return fmt::format("w{}-{}", i * weeks / 2000, (tells ? one : i % 3 == 0) ? "b" : "a");
    };
  };
  EXPECT_THAT(LeftOut(With(after(10, true))),
              HasSubstr("600 of the 600 records where \"after\" is one of 10 values such as \"w"));
  const Roles honest = With(after(10, false));
  EXPECT_THAT(honest.warnings, Not(Contains(HasSubstr("\"after\""))));
}

// Few labels in the second half say nothing of an AUC, which the report tells; what is filled in
// exactly where the label is 1 is told of all the same.
TEST_F(LeaksTest, TooFewLabelsToFindLeaksAreToldOf) {
  const auto with = [&](int each) {
    sample_ = &Read("rare.csv", ShopWith("order,buy", [&](int i) {
                      return i % each == 0 ? fmt::format("o{},1", i) : std::string(",0");
                    }));
    return FindRoles(*sample_);
  };
  const Roles rare = with(125);  // 16 labels, 8 of them in the second half
  EXPECT_THAT(ReportText(*sample_, rare, std::nullopt),
              HasSubstr("\nleaks      not looked for, for the second half has too few labels"));
  EXPECT_FALSE(ReportJson(*sample_, rare, std::nullopt).at("leaks_looked_for").as_bool());
  EXPECT_EQ(ReasonLeftOut(*sample_, rare, "order"), "");
  EXPECT_THAT(rare.warnings, Contains(HasSubstr("16 of the 16 records where \"order\" is filled in "
                                                "have label 1: is it known only afterwards?")));
  const Roles more = with(50);
  EXPECT_THAT(ReportText(*sample_, more, std::nullopt), Not(HasSubstr("\nleaks ")));
  EXPECT_TRUE(ReportJson(*sample_, more, std::nullopt).at("leaks_looked_for").as_bool());
  EXPECT_THAT(ReasonLeftOut(*sample_, more, "order"), HasSubstr("filled in where the label is 1"));
}

// A person has yet to say which value is a success: each is judged against the others.
TEST_F(LeaksTest, OpenValuesAreJudgedOneByOne) {
  sample_ = &Read("open.csv", ShopWith("sent,result", [](int i) {
                    const int kind = i * 13 % 10;
                    return std::string(kind < 3   ? "dhl,gekauft"
                                       : kind < 4 ? "keiner,storniert"
                                       : i % 2    ? "keiner,angesehen"
                                                  : "abholung,angesehen");
                  }));
  const Roles roles = FindRoles(*sample_, {.label = "result"});
  ASSERT_TRUE(roles.label);
  EXPECT_TRUE(roles.label->values_open);
  EXPECT_THAT(ReasonLeftOut(*sample_, roles, "sent"),
              HasSubstr("where \"sent\" is \"dhl\" have label \"gekauft\""));
  EXPECT_THAT(roles.warnings, Contains(HasSubstr("\"sent\" is left out")));
  for (const std::string& warning : roles.warnings)
    EXPECT_THAT(warning, Not(testing::ContainsRegex("label is [01]")));
}

// A model learns from the elements of a list, and one of them may be known only afterwards.
TEST_F(LeaksTest, AnElementOfListsMayBeALeak) {
  const auto with = [&](const std::function<std::string(int, bool)>& element) {
    std::string text;
    for (int i = 0; i < 2000; ++i) {
      const bool one = i * 13 % 10 < 3;
      text += fmt::format(R"({{"tags":["x{}","y{}"{}],"click":{}}})"
                          "\n",
                          i * 7 % 91, i * 31 % 97, element(i, one), one ? 1 : 0);
    }
    sample_ = &Read("lists.jsonl", text);
    return FindRoles(*sample_);
  };
  const Roles all = with([](int, bool one) { return one ? R"(,"thanks")" : ""; });
  EXPECT_THAT(ReasonLeftOut(*sample_, all, "tags"),
              HasSubstr("has one value of its lists, first at " + sample_->PlaceOf(0)));
  const Roles some = with([](int i, bool one) { return one && i % 5 == 0 ? R"(,"thanks")" : ""; });
  EXPECT_EQ(ReasonLeftOut(*sample_, some, "tags"), "");
  EXPECT_THAT(some.warnings, Contains(HasSubstr("\"/tags\" has one value of its lists")));
  const Roles none = with([](int i, bool) { return i % 5 == 0 ? R"(,"sale")" : ""; });
  EXPECT_THAT(none.warnings, Not(Contains(HasSubstr("/tags"))));
}

}  // namespace
}  // namespace tacit::inspect

// Models whose features or items have changed: what their kinds make of the stored ones.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/linear/state.h"
#include "model/ranking/ranker.h"
#include "model/ranking/released_ranker.h"
#include "model/transitions/released_model.h"
#include "support/process.h"
#include "train/linear/linear_columns.h"
#include "train/ranking/ranked_learner.h"
#include "wiring/assembly.h"
#include "wiring/plans/catalogue_growth.h"
#include "wiring/plans/model_form.h"

namespace tacit::wiring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModelGrowthTest : public testing::Test {
 protected:
  std::shared_ptr<const ModelPlan> Plan(const std::string& features,
                                        const std::string& model = "{kind: linear}") const {
    const bool linear = model.find("linear") != std::string::npos;
    const std::string yaml = fmt::format(
        "source: {{kind: generator}}\n"
        "schema: {{features: [{}]}}\n"
        "store: {{path: {}}}\n"
        "memory: {{total_bytes: 900MiB}}\n"
        "learners:\n"
        "  - id: ctr\n    model: {}\n    mechanism: {}\n"
        "    participation: {{mode: once, batch: 1000}}\n"
        "    privacy: {{unit: event, epsilon: 8, delta: 1.0e-6}}\n",
        features, dir_ / "store", model,
        linear ? "{kind: sums}" : "{kind: adafest, threshold: 1, sigma_ratio: 5}");
    auto config = config::Parse(yaml, "c.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return assembly->learners.at(0).model;
  }
  // The stored model of a plan, with these parts.
  static Result<store::GrownModel> Grow(const ModelPlan& was, const ModelPlan& is,
                                        std::shared_ptr<const std::string> released = nullptr,
                                        std::shared_ptr<const store::DenseState> dense = nullptr) {
    const store::RowLayout rows = was.Rows();
    const Digest fingerprint = was.Fingerprint();
    const std::string form = was.Form();
    return is.Grow({.rows = rows,
                    .fingerprint = fingerprint,
                    .form = form,
                    .dense = std::move(dense),
                    .released = std::move(released)});
  }

  const test::TempDir dir_;
};

constexpr const char* kBefore =
    "{name: n, kind: dense}, {name: a, kind: categorical, buckets: 11}, {name: b, kind: "
    "categorical, buckets: 21}, {name: m, kind: dense}";
// b comes first and is larger, c is new, a is gone; of the numbers one is new.
constexpr const char* kAfter =
    "{name: k, kind: dense}, {name: m, kind: dense}, {name: b, kind: categorical, buckets: 61}, "
    "{name: c, kind: categorical, buckets: 5}, {name: n, kind: dense}";

TEST_F(ModelGrowthTest, AColumnKeepsItsPriorWhereverItStands) {
  const auto was = Plan(kBefore), is = Plan(kAfter);
  model::linear::State state;
  state.periods = 7;
  state.bias = -1.5;
  state.rate = 0.25;
  const auto tables = was->Rows().space.tables();
  for (size_t j = 0; j < tables.size(); ++j)
    state.priors.push_back({.sum = 10.0 + static_cast<double>(j), .weight = 2});
  // State is encoded for columns: a plan's own are made by the learner's rule.
  event::FeatureSchema schema;
  schema.dense = {{.name = "n"}, {.name = "m"}};
  schema.categorical = {{.name = "a", .buckets = 11}, {.name = "b", .buckets = 21}};
  const auto columns = train::LinearColumns(schema);
  ASSERT_EQ(columns.space().rows(), was->Rows().space.rows());
  const auto grown = Grow(*was, *is, std::make_shared<const std::string>(state.Encode(columns)));
  ASSERT_TRUE(grown) << grown.error().message;
  const auto now = is->Rows().space.tables();
  const auto decoded =
      model::linear::State::Decode(*grown->released, is->Rows().space.rows(), now.size());
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->periods, 7u);
  EXPECT_EQ(decoded->bias, -1.5);
  EXPECT_EQ(decoded->rate, 0.25);
  std::map<std::string, double> before, after;
  const store::RowLayout rows_before = was->Rows(), rows_after = is->Rows();
  for (size_t j = 0; j < rows_before.space.tables().size(); ++j)
    before[rows_before.space.tables()[j].name] = state.priors[j].sum;
  for (size_t j = 0; j < rows_after.space.tables().size(); ++j)
    after[rows_after.space.tables()[j].name] = decoded->priors[j].sum;
  for (const char* kept : {"b", "n", "m"}) EXPECT_EQ(after[kept], before[kept]) << kept;
  for (const char* fresh : {"c", "k"}) EXPECT_EQ(after[fresh], 0) << fresh;
}

TEST_F(ModelGrowthTest, TablesAreFoundByTheirNames) {
  const auto was = Plan(kBefore), is = Plan(kAfter);
  const auto grown = Grow(*was, *is);
  ASSERT_TRUE(grown) << grown.error().message;
  const store::RowLayout before = was->Rows(), after = is->Rows();
  ASSERT_EQ(grown->tables.size(), after.space.tables().size());
  for (size_t t = 0; t < grown->tables.size(); ++t) {
    const RowSpace::Table& table = after.space.tables()[t];
    const auto from = grown->tables[t].from;
    if (table.name == "c" || table.name == "k") {
      EXPECT_FALSE(from) << table.name;
    } else {
      ASSERT_TRUE(from) << table.name;
      EXPECT_EQ(before.space.tables()[*from].name, table.name);
    }
    EXPECT_EQ(grown->tables[t].spread, table.name == "b" ? 3u : 1u);
  }
  EXPECT_THAT(grown->lost, ElementsAre("feature 'a' is gone, with what was learnt of it"));
  EXPECT_THAT(grown->gained,
              testing::UnorderedElementsAre(
                  "feature 'b' has 61 rows where it had 21: each becomes 3, which begin as it was",
                  "feature 'c', of 5 rows, is new and begins at 0",
                  HasSubstr("number 'k', of 40 rows, is new")));
}

TEST_F(ModelGrowthTest, WhatCannotGoOnBeginsAnewAndSaysWhy) {
  const std::string model = "{kind: pctr, hidden: [4]}";
  const auto was =
      Plan("{name: n, kind: dense}, {name: a, kind: categorical, buckets: 11, dim: 4}", model);
  const auto lost = [&](const std::string& features) {
    const auto grown = Grow(*was, *Plan(features, model), nullptr, nullptr);
    EXPECT_TRUE(grown) << grown.error().message;
    return grown ? grown->lost : std::vector<std::string>();
  };
  EXPECT_THAT(lost("{name: n, kind: dense}, {name: a, kind: categorical, buckets: 11, dim: 8}"),
              ElementsAre());
  EXPECT_THAT(lost("{name: n, kind: dense}, {name: a, kind: categorical, buckets: 11, dim: 3}"),
              ElementsAre("feature 'a' keeps the first 3 numbers of each row and loses 1"));
  EXPECT_THAT(
      lost("{name: n, kind: dense}, {name: a, kind: categorical, buckets: 22, dim: 4}"),
      ElementsAre("feature 'a' begins anew: a table of 11 rows can become one of 21, 31 and "
                  "so on, not of 22"));
  EXPECT_THAT(lost("{name: n, kind: dense}, {name: a, kind: categorical, buckets: 6, dim: 4}"),
              ElementsAre(HasSubstr("not of 6")));
  EXPECT_THAT(lost("{name: n, kind: dense}, {name: a, kind: categorical, buckets: 21, dim: 4}"),
              IsEmpty());
}

TEST_F(ModelGrowthTest, ACrossGoesOnWithItsColumns) {
  const std::string crossed = "{kind: linear, crosses: [a*b]}";
  const std::string b = ", {name: b, kind: categorical, buckets: 21}";
  const auto was = Plan("{name: a, kind: categorical, buckets: 11}" + b, crossed);
  const auto same = Grow(*was, *Plan("{name: c, kind: categorical, buckets: 5}, {name: a, kind: "
                                     "categorical, buckets: 11}" +
                                         b,
                                     crossed));
  ASSERT_TRUE(same);
  EXPECT_THAT(same->lost, IsEmpty());
  const auto larger = Grow(*was, *Plan("{name: a, kind: categorical, buckets: 21}" + b, crossed));
  ASSERT_TRUE(larger);
  EXPECT_THAT(larger->lost,
              ElementsAre("cross 'a*b' begins anew: one of its columns has another number of "
                          "values"));
  // The same number of values, of columns that have changed places in it.
  const auto without = Grow(*was, *Plan("{name: a, kind: categorical, buckets: 11}" + b));
  ASSERT_TRUE(without);
  EXPECT_THAT(without->lost, ElementsAre("cross 'a*b' is gone, with what was learnt of it"));
}

TEST_F(ModelGrowthTest, AnotherModelIsRefused) {
  const std::string features =
      "{name: n, kind: dense}, {name: a, kind: categorical, buckets: 11, dim: 4}";
  const auto was = Plan(features, "{kind: pctr, hidden: [4]}");
  for (const char* model : {"{kind: pctr, hidden: [5]}", "{kind: pctr, hidden: [4], seed: 2}"}) {
    const auto refused = Grow(*was, *Plan(features, model));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
    EXPECT_THAT(refused.error().message, HasSubstr("makes another model"));
  }
}

TEST(ModelFormTest, IsReadAsItWasWritten) {
  const ModelForm form{.numbers = {{"price", event::DenseTransform::kIdentity},
                                   {"age", event::DenseTransform::kSignedLog1p}},
                       .crosses = {"a*b", ""},
                       .fixed = "layers"};
  const std::string bytes = form.Encode();
  const auto read = ModelForm::Decode(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->Encode(), bytes);
  EXPECT_EQ(read->numbers[1].name, "age");
  EXPECT_EQ(read->numbers[0].transform, event::DenseTransform::kIdentity);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ModelForm::Decode(bytes.substr(0, size))) << size;
  EXPECT_FALSE(ModelForm::Decode(bytes + "x"));
  EXPECT_EQ(ModelForm::Decode("").error().code, ErrorCode::kRefused);
}

class CatalogueGrowthTest : public testing::Test {
 protected:
  static event::ItemCatalogue Items(const std::string& lines) {
    auto read = event::ItemCatalogue::Parse(lines, "items");
    EXPECT_TRUE(read);
    return *std::move(read);
  }
  Result<CatalogueBefore> Before(const std::string& form, const std::string& now) const {
    return FindCatalogueBefore({.rows = rows_,
                                .fingerprint = fingerprint_,
                                .form = form,
                                .dense = nullptr,
                                .released = nullptr},
                               Items(now));
  }

  const store::RowLayout rows_;
  const Digest fingerprint_{};
};

TEST_F(CatalogueGrowthTest, ItemsAreFoundByTheirIds) {
  const auto was = Items("a::A::x\nb::B::y\nc::C::x\n");
  const auto before = Before(ItemsForm(was), "\nc::C::x\nnew\r\na::A::x\nb::Another title::y\n");
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_THAT(before->places, ElementsAre(2, 3, 0));
  EXPECT_FALSE(before->InOrder());
  EXPECT_EQ(before->catalogue.fingerprint(), was.fingerprint());
  EXPECT_EQ(before->catalogue.Title(1), "Another title");
  EXPECT_EQ(before->catalogue.Find("new"), event::kNoItem);
  const auto grown = WithItems(*before, Items("c\nnew\na\nb\n"));
  EXPECT_THAT(grown.gained,
              ElementsAre(HasSubstr("1 item of the catalogue is new, among the 3 that there were"),
                          HasSubstr("the 3 items that there were have other places")));
  EXPECT_THAT(grown.items, ElementsAre(2, 3, 0));
  const auto more = Before(ItemsForm(was), "a\nb\nc\nd\n");
  ASSERT_TRUE(more);
  EXPECT_TRUE(more->InOrder());
  EXPECT_THAT(WithItems(*more, Items("a\nb\nc\nd\n")).items, IsEmpty());
}

TEST_F(CatalogueGrowthTest, NoneMayGo) {
  const auto was = Items("a\nb\nc\nd\n");
  EXPECT_THAT(Before(ItemsForm(was), "a\nc\nd\ne\nf\n").error().message,
              HasSubstr("1 of the 4 items that the catalogue had is not in it any more"));
  EXPECT_THAT(Before(ItemsForm(was), "a\n").error().message, HasSubstr("3 of the 4 items"));
  EXPECT_THAT(Before("", "a\n").error().message, HasSubstr("no model of the next item"));
  EXPECT_THAT(Before("x", "a\n").error().message, HasSubstr("no model of the next item"));
  const std::string form = ItemsForm(was);
  std::string twice = form;  // two ids of one hash, as far as this can tell
  std::copy_n(twice.end() - 16, 8, twice.end() - 8);
  EXPECT_THAT(Before(twice, "a\nb\nc\nd\n").error().message, HasSubstr("cannot be told apart"));
  for (size_t size = 1; size < form.size(); ++size)
    EXPECT_FALSE(Before(form.substr(0, size), "a\nb\nc\nd\n")) << size;
}

// Counts go on when items are added, if they were made with the constants of now.
TEST_F(ModelGrowthTest, CountsGrowWithTheirCatalogue) {
  using model::transitions::Options;
  using model::transitions::PublicItems;
  using model::transitions::ReleasedModel;
  const auto plan = [&](const std::string& model, bool more) {
    const std::string file = dir_ / (more ? "more.dat" : "items.dat"), log = dir_ / "log.jsonl";
    test::WriteFile(log, "");
    test::WriteFile(file, more ? "one\ntwo\nthree\nfour\n" : "one\ntwo\nthree\n");
    auto config = config::Parse(
        fmt::format("source: {{kind: log, files: [\"{}\"], format: json}}\n"
                    "catalogue: {{file: {}}}\n"
                    "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                    "store: {{path: {}}}\n"
                    "memory: {{total_bytes: 900MiB}}\n"
                    "learners:\n"
                    "  - id: next\n    model: {}\n    mechanism: {{kind: counts}}\n"
                    "    participation: {{mode: once, batch: 1000, max_participations: 3}}\n"
                    "    history: {{items: 20}}\n"
                    "    privacy: {{unit: user, epsilon: 8, delta: 1.0e-6}}\n",
                    log, file, dir_ / "store", model),
        "c.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return assembly->learners.at(0).model;
  };
  WorkerPool workers({.workers = 1});
  const PublicItems three(3);
  Options options;
  options.forget = config::Transitions().forget, options.cells_most = config::Transitions().cells;
  const std::vector<float> parameters(model::ranking::kRankerParameters, 0.5f);
  for (const bool ranked : {false, true}) {
    const std::string kind =
        ranked ? "{kind: transitions, ranker: true, ranker_users: 300}" : "{kind: transitions}";
    const auto was = plan(kind, false), is = plan(kind, true);
    const auto grow = [&](Options made, const Digest& fingerprint) {
      if (ranked) made = train::CountsBesideRanker(made);
      const ReleasedModel counts(three, made, workers);
      const store::RowLayout rows = was->Rows();
      const std::string form = was->Form();
      return is->Grow(
          {.rows = rows,
           .fingerprint = fingerprint,
           .form = form,
           .dense = nullptr,
           .released = std::make_shared<const std::string>(
               ranked ? model::ranking::EncodeRanker(counts, parameters) : counts.Encode())});
    };
    const auto grown = grow(options, was->Fingerprint());
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_THAT(grown->gained, ElementsAre(HasSubstr("1 item of the catalogue is new")));
    const auto another = grow(options, is->Fingerprint());
    ASSERT_FALSE(another);
    EXPECT_EQ(another.error().code, ErrorCode::kRefused);
    EXPECT_THAT(another.error().message, HasSubstr("the model's settings are others"));
    Options other = options;
    other.lag_decay = 0.7;
    const auto constants = grow(other, was->Fingerprint());
    ASSERT_FALSE(constants);
    EXPECT_THAT(constants.error().message, HasSubstr("made with other constants"));
  }
}

}  // namespace
}  // namespace tacit::wiring

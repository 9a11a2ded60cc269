// A part of a linear learner's period that another process has summed: its bytes, its figures, and
// a learner that takes parts in place of examples.
#include "train/linear/linear_part.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>

#include "base/bytes.h"
#include "base/varint.h"
#include "linear_oracle.h"
#include "model/linear/row.h"
#include "support/fixed_noise.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_learner.h"
#include "train/linear/linear_part_summer.h"

namespace tacit::train {
namespace {

constexpr uint32_t kBins = 8;

// Crosses are large columns, which are not released whole.
LinearLearnerOptions Options() {
  return {.id = "sums",
          .index = LearnerIndex(0),
          .columns = SomeColumns(/*crossed=*/true),
          .update = {},
          .noise_multiplier = 0.5,
          .whole_column_most = 100,
          .threshold_deviations = 2,
          .bins = kBins};
}

// A learner with the rows that it moves.
struct Trained {
  explicit Trained(size_t threads) : workers({.workers = threads}) {}

  std::string Parameters() {
    std::string all = *learner.TakeReleased();
    for (uint64_t row = 0; row < options.columns->space().rows(); ++row) {
      float* floats = nullptr;
      EXPECT_TRUE(rows.Gather({&row, 1}, {&floats, 1}));
      all.append(reinterpret_cast<const char*>(floats), model::linear::kRowFloats * sizeof(float));
    }
    return all;
  }
  void Take(const stream::StepBatch& step) {
    const std::atomic<bool> go_on = false;
    const auto taken = learner.TakeStep(step, go_on, &report);
    EXPECT_TRUE(taken && *taken);
  }

  const LinearLearnerOptions options = Options();
  MemoryRows rows{LinearRowLayout(*options.columns)};
  WorkerPool workers;
  LinearLearner learner{options, std::make_unique<noise::FixedNoise>(3), rows, workers};
  StepReport report;
};

// A worker's rows: weight, move and period, and no more of the state.
MemoryRows RowsOf(Trained& trained) {
  MemoryRows rows(LinearRowLayout(*trained.options.columns));
  for (uint64_t row = 0; row < trained.options.columns->space().rows(); ++row) {
    float *from = nullptr, *to = nullptr;
    EXPECT_TRUE(trained.rows.Gather({&row, 1}, {&from, 1}));
    EXPECT_TRUE(rows.Gather({&row, 1}, {&to, 1}));
    for (const size_t place :
         {model::linear::kWeight, model::linear::kMove, model::linear::kPeriod})
      to[place] = from[place];
  }
  return rows;
}

std::vector<std::vector<Event>> CutAtRandom(std::vector<Event> events, std::mt19937_64& random) {
  std::vector<std::vector<Event>> pieces;
  while (!events.empty()) {
    const size_t size = std::min<size_t>(events.size(), 1 + random() % 900);
    pieces.emplace_back(events.end() - static_cast<ptrdiff_t>(size), events.end());
    events.resize(events.size() - size);
  }
  return pieces;
}

// Sums events up as a worker does, in pieces.
std::string PartOf(const std::vector<std::vector<Event>>& pieces, const std::string& released,
                   MemoryRows& rows, size_t threads) {
  WorkerPool workers({.workers = threads});
  const auto summer = MakeLinearPartSummer(Options(), rows, workers);
  EXPECT_TRUE(summer->Load(released));
  for (const auto& piece : pieces) EXPECT_TRUE(summer->Add(StepOf(piece)));
  return summer->Take();
}

Result<LinearPart> ReadPart(std::string_view bytes, const LinearQuery& query, uint32_t bins) {
  mechanism::RowSums whole(query.sums, query.tables);
  LinearPart part{{query.sums, query.tables}, {}};
  TACIT_RETURN_IF_ERROR(part.AddBytes(bytes, bins, &whole));
  part.sums.Add(mechanism::PartialSums(std::move(whole)));
  return part;
}

std::vector<Event> SomeEvents(size_t n, std::mt19937_64& random) {
  std::vector<Event> events = RandomEvents(n, random);
  for (Event& event : events) event.weight = random() % 6 == 0 ? 4 : 1;  // some are clipped
  return events;
}

// Workers with any number of threads, which read a slice in any pieces and any order, send the
// bytes of one thread.
TEST(LinearPart, AnyThreadsPiecesAndOrderMakeTheSameBytes) {
  std::mt19937_64 random(1);
  Trained trainer(1);
  trainer.Take(StepOf(SomeEvents(3000, random)));
  const std::string released = *trainer.learner.TakeReleased();
  MemoryRows rows = RowsOf(trainer);
  for (int round = 0; round < 10; ++round) {
    std::vector<Event> events = SomeEvents(random() % 4000, random);
    const std::string one = PartOf({events}, released, rows, 1);
    for (const size_t threads : {1, 2, 4}) {
      std::ranges::shuffle(events, random);
      EXPECT_TRUE(PartOf(CutAtRandom(events, random), released, rows, threads) == one)
          << events.size() << " events, " << threads << " threads";
    }
  }
}

// An event adds the same to the last bit alone and beside others, which may have sets, weights or
// users of several events.
TEST(LinearPart, AnEventAddsTheSameBesideAnyOthers) {
  std::mt19937_64 random(7);
  Trained trainer(1);
  for (int period = 0; period < 4; ++period) trainer.Take(StepOf(SomeEvents(3000, random)));
  const std::string released = *trainer.learner.TakeReleased();
  MemoryRows rows = RowsOf(trainer);
  std::vector<Event> events = SomeEvents(4000, random);
  for (Event& event : events)
    if (random() % 40 != 0) {
      event.s.erase(std::next(event.s.begin()), event.s.end());
      event.weight = 1;
    }
  std::vector<std::vector<Event>> single;
  for (const Event& event : events) single.push_back({event});
  EXPECT_TRUE(PartOf({events}, released, rows, 1) == PartOf(single, released, rows, 1));
}

// A summer begins a part anew: nothing of the one before is in its bytes, nor of one that was under
// way when the model changed.
TEST(LinearPart, NothingOfAnEarlierPartIsLeft) {
  std::mt19937_64 random(2);
  Trained trainer(1);
  trainer.Take(StepOf(SomeEvents(3000, random)));
  const std::string released = *trainer.learner.TakeReleased();
  MemoryRows rows = RowsOf(trainer);
  const std::vector<Event> events = SomeEvents(700, random), other = SomeEvents(900, random);
  WorkerPool workers({.workers = 3});
  const auto summer = MakeLinearPartSummer(Options(), rows, workers);
  const std::string alone = PartOf({events}, released, rows, 1);
  ASSERT_TRUE(summer->Load(released));
  ASSERT_TRUE(summer->Add(StepOf(other)));
  EXPECT_FALSE(summer->Take() == alone);
  ASSERT_TRUE(summer->Add(StepOf(events)));
  EXPECT_TRUE(summer->Take() == alone);
  ASSERT_TRUE(summer->Add(StepOf(other)));
  ASSERT_TRUE(summer->Load(released));
  ASSERT_TRUE(summer->Add(StepOf(events)));
  EXPECT_TRUE(summer->Take() == alone);
}

// A learner that has released nothing begins with no weight at all. Its summer does too, also
// behind another model.
TEST(LinearPart, ALearnerWithoutAReleaseIsSummedFor) {
  std::mt19937_64 random(8);
  const std::vector<Event> events = SomeEvents(700, random);
  Trained fresh(1), trained(1);
  MemoryRows none = RowsOf(fresh);
  const std::string due =
      PartOf({events}, fresh.learner.state().Encode(*fresh.options.columns), none, 1);
  EXPECT_TRUE(PartOf({events}, "", none, 1) == due);
  trained.Take(StepOf(SomeEvents(3000, random)));
  WorkerPool workers({.workers = 1});
  const auto summer = MakeLinearPartSummer(Options(), none, workers);
  ASSERT_TRUE(summer->Load(*trained.learner.TakeReleased()));
  ASSERT_TRUE(summer->Load(""));
  ASSERT_TRUE(summer->Add(StepOf(events)));
  EXPECT_TRUE(summer->Take() == due);
}

// A period of which a learner sees some pieces, and gets the others as parts, is the period that it
// would have seen whole.
TEST(LinearPart, ALearnerTakesPartsInPlaceOfExamples) {
  for (const size_t threads : {1, 3}) {
    std::mt19937_64 random(threads);
    Trained alone(1), helped(threads);
    for (int period = 0; period < 4; ++period) {
      const auto pieces = CutAtRandom(SomeEvents(4000, random), random);
      const std::string released = helped.learner.state().Encode(*helped.options.columns);
      MemoryRows rows = RowsOf(helped);
      stream::StepBatch last = StepOf(pieces.back());
      if (period == 3) last = {};  // a step of which workers have summed all
      last.examples.slots = 3;
      last.examples.dense_width = 2;
      uint64_t elsewhere = 0;
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (i + 1 == pieces.size() && period < 3) break;
        stream::StepBatch preview = StepOf(pieces[i]);
        preview.kind = stream::StepBatch::Kind::kPreview;
        ASSERT_TRUE(alone.learner.Preview(preview, &alone.report));
        if (period == 0 || (period < 3 && i % 2 == 0)) {
          ASSERT_TRUE(helped.learner.Preview(preview, &helped.report));
          continue;
        }
        const auto figures = helped.learner.AddPart(PartOf({pieces[i]}, released, rows, 2));
        ASSERT_TRUE(figures) << figures.error().message;
        EXPECT_EQ(figures->examples, pieces[i].size());
        elsewhere += pieces[i].size();
      }
      EXPECT_EQ(elsewhere > 0, period > 0);
      alone.Take(last);
      helped.Take(last);
      EXPECT_EQ(helped.report.examples, 4000u);
      EXPECT_EQ(helped.report.units_clipped, alone.report.units_clipped);
      EXPECT_GT(helped.report.units_clipped, 0u);
      EXPECT_EQ(helped.report.rows_touched, alone.report.rows_touched);
      EXPECT_EQ(helped.report.earlier_losses, alone.report.earlier_losses);
      EXPECT_NEAR(helped.report.earlier_loss_sum, alone.report.earlier_loss_sum, 4000 * 0x1p-17);
      EXPECT_TRUE(helped.Parameters() == alone.Parameters()) << period;
    }
  }
}

// The figures are what a loop over all predictions counts.
TEST(LinearPart, FiguresAreALoopOverPredictions) {
  std::mt19937_64 random(4);
  const LinearQuery query(Options());
  MemoryRows memory(LinearRowLayout(*query.columns));
  LinearRows rows(memory);
  std::normal_distribution<float> weight(0, 4);
  for (uint64_t row = 0; row < query.columns->space().rows(); ++row) {
    float* floats = nullptr;
    ASSERT_TRUE(memory.Gather({&row, 1}, {&floats, 1}));
    floats[model::linear::kWeight] = row == 3 ? NAN : row == 5 ? 3e38f : weight(random);
  }
  model::linear::State model;
  model.periods = 1;
  const stream::StepBatch step = StepOf(RandomEvents(3000, random));
  const size_t n = step.examples.size();
  std::vector<float> logits(n), losses(n);
  LinearSummer summer(query, rows, kBins);
  summer.Open({query.sums, query.tables});
  ASSERT_TRUE(summer.See(step, 0, n, model, /*add=*/false, {logits, losses}));
  ASSERT_TRUE(summer.See(step, 0, n, model, /*add=*/true, {logits, losses}));
  const PartFigures figures = summer.Close().figures;
  std::vector<uint64_t> bins(2 * kBins);
  uint64_t loss_steps = 0, predicted_steps = 0;
  size_t no_numbers = 0;
  for (size_t i = 0; i < n; ++i) {
    const double x = logits[i];
    const bool click = step.examples.label[i] > 0.5f;
    no_numbers += std::isnan(x);
    const double bin = std::isnan(x) ? 0 : std::floor((x + 8) / (16.0 / kBins));
    const auto place = static_cast<size_t>(std::clamp(bin, 0.0, kBins - 1.0));
    ++bins[place + (click ? kBins : 0)];
    const double loss = losses[i] < 100 ? static_cast<double>(losses[i]) : 100;
    loss_steps += static_cast<uint64_t>(std::floor(loss * 65536 + 0.5));
    const double p = 1 / (1 + std::exp(-x));
    if (!std::isnan(x)) predicted_steps += static_cast<uint64_t>(std::floor(p * 65536 + 0.5));
  }
  EXPECT_GT(no_numbers, 0u);
  EXPECT_EQ(figures.examples, n);
  EXPECT_EQ(figures.bins, bins);
  EXPECT_EQ(figures.losses, loss_steps);
  EXPECT_NEAR(static_cast<double>(figures.predicted), static_cast<double>(predicted_steps), 3);
}

PartFigures SomeFigures() {
  PartFigures figures{.examples = 5, .clipped = 1, .losses = 300, .predicted = 70'000};
  figures.bins.resize(2 * kBins);
  figures.bins[0] = 2;
  figures.bins[2 * kBins - 1] = 3;
  return figures;
}

TEST(LinearPart, BytesAreReadBack) {
  const LinearQuery query(Options());
  LinearPart part{mechanism::PartialSums(mechanism::RowSums(query.sums, query.tables)),
                  SomeFigures()};
  const std::string bytes = part.Encode();
  // By hand: 5, 1, 300, 70,000 and 8 as varints, sixteen counts, and then the sums.
  const std::string head("\x05\x01\xac\x02\xf0\xa2\x04\x08\x02", 9);
  EXPECT_EQ(bytes.substr(0, 9), head);
  EXPECT_EQ(bytes.substr(9, 15), std::string(14, '\0') + '\x03');
  EXPECT_EQ(bytes.substr(24), part.sums.Encode());
  const auto read = ReadPart(bytes, query, kBins);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->figures, part.figures);
  EXPECT_EQ(read->Encode(), bytes);
}

TEST(LinearPart, WrongBytesAreRefusedByFieldAndOffset) {
  const LinearQuery query(Options());
  const LinearPart part{mechanism::PartialSums(mechanism::RowSums(query.sums, query.tables)),
                        SomeFigures()};
  const std::string good = part.Encode();
  const auto refusal = [&](const std::string& bytes, uint32_t bins = kBins) {
    const auto read = ReadPart(bytes, query, bins);
    return read ? std::string("read") : read.error().message;
  };
  const auto changed = [&](size_t at, char to) {
    std::string bytes = good;
    bytes[at] = to;
    return bytes;
  };
  EXPECT_EQ(refusal(good), "read");
  EXPECT_EQ(refusal(""), "figures of a part, examples at byte 0: the bytes end");
  EXPECT_EQ(refusal(changed(1, 6)), "figures of a part, clipped at byte 1: 6; 5 is the most");
  EXPECT_EQ(refusal(changed(0, 1)),
            "figures of a part, predicted at byte 4: 70000; 65536 is the most");
  EXPECT_EQ(refusal(changed(0, 4)), "figures of a part, bins at byte 7: they have 5 of 4 examples");
  EXPECT_EQ(refusal(changed(8, 6)), "figures of a part, a bin at byte 8: 6; 5 is the most");
  EXPECT_EQ(refusal(good, 9), "figures of a part, bins at byte 7: 8; this learner has 9");
  EXPECT_EQ(refusal(good.substr(0, 20)), "figures of a part, a bin at byte 20: the bytes end");
  EXPECT_EQ(refusal(std::string("\x85\x00", 2) + good.substr(1)),
            "figures of a part, examples at byte 0: a number is not in its shortest form");
  EXPECT_EQ(
      refusal(good + "x"),
      fmt::format("behind 24 bytes of figures: sums of a part, byte {}: bytes follow the last "
                  "table",
                  good.size() - 24));
  for (size_t left = 0; left < good.size(); ++left)
    EXPECT_FALSE(ReadPart(good.substr(0, left), query, kBins)) << left;
}

// A part that the test may change behind its bytes: cells of its rows, further numbers, figures.
class PartInHand {
 public:
  explicit PartInHand(const std::vector<Event>& events, bool weighs = false)
      : query_(OptionsOf(weighs)) {
    Trained trainer(1);
    std::mt19937_64 random(9);
    trainer.Take(StepOf(SomeEvents(3000, random)));
    MemoryRows rows = RowsOf(trainer);
    const std::string bytes = PartOf({events}, *trainer.learner.TakeReleased(), rows, 2);
    auto part = ReadPart(bytes, query_, kBins);
    EXPECT_TRUE(part);
    figures = part->figures;
    const std::string sums = part->sums.Encode();
    mechanism::PartReader reader(sums, query_.sums, query_.tables);
    mechanism::PartRows all;
    numbers.resize(query_.sums.numbers);
    EXPECT_TRUE(reader.ReadHead(numbers));
    for (size_t table = 0; table < query_.tables.size(); ++table)
      EXPECT_TRUE(reader.ReadTable(&all));
    rows_ = std::move(all.rows);
    cells = std::move(all.cells);
    step_ = reader.step();
  }

  // The first place of a row of this column.
  size_t PlaceIn(size_t column) const {
    const auto row = std::ranges::lower_bound(rows_, query_.tables[column].first);
    return static_cast<size_t>(row - rows_.begin());
  }
  int64_t& sum(size_t place) { return cells[2 * place]; }
  int64_t& count(size_t place) { return cells[2 * place + 1]; }
  void Erase(size_t place) {
    rows_.erase(rows_.begin() + static_cast<ptrdiff_t>(place));
    const auto at = cells.begin() + static_cast<ptrdiff_t>(2 * place);
    cells.erase(at, at + 2);
  }
  // An event's count in a column, in steps.
  int64_t Unit(size_t column) const {
    return static_cast<int64_t>(query_.weights.count(column) / step_);
  }
  size_t rows() const { return rows_.size(); }
  // Sends the part as bytes, and says what the trainer finds.
  std::string Found() const {
    ByteWriter out;
    for (const uint64_t number :
         {figures.examples, figures.clipped, figures.losses, figures.predicted, uint64_t{kBins}})
      PutVarint(number, &out);
    for (const uint64_t bin : figures.bins) PutVarint(bin, &out);
    out.Put(step_);
    PutVarint(numbers.size(), &out);
    for (const int64_t number : numbers) PutVarint(ToZigzag(number), &out);
    PutVarint(query_.tables.size(), &out);
    size_t begin = 0;
    for (const mechanism::SumTable& table : query_.tables) {
      size_t end = begin;
      uint64_t unit = 0, next = table.first;
      for (; end < rows_.size() && rows_[end] < table.first + table.rows; ++end)
        unit = std::gcd(unit, static_cast<uint64_t>(std::abs(cells[2 * end + 1])));
      PutVarint(end - begin, &out);
      PutVarint(unit, &out);
      for (size_t i = begin; i < end; next = rows_[i++] + 1) PutVarint(rows_[i] - next, &out);
      for (size_t i = begin; i < end; ++i) PutVarint(ToZigzag(cells[2 * i]), &out);
      for (size_t i = begin; i < end; ++i)
        PutVarint(static_cast<uint64_t>(cells[2 * i + 1] / static_cast<int64_t>(unit)), &out);
      begin = end;
    }
    const auto events = LinearPart::EventsOf(out.bytes(), query_, kBins);
    if (!events) return events.error().message;
    EXPECT_EQ(*events, figures.examples);
    return "";
  }

  PartFigures figures;
  std::vector<int64_t> numbers, cells;

 private:
  static LinearLearnerOptions OptionsOf(bool weighs) {
    LinearLearnerOptions options = Options();
    options.weighs = weighs;
    return options;
  }

  const LinearQuery query_;
  std::vector<uint64_t> rows_;
  double step_ = 0;
};

TEST(LinearPartCheck, RightSumsPass) {
  for (const uint64_t seed : {1, 2, 3, 4})
    for (const bool weighs : {false, true}) {
      std::mt19937_64 random(seed);
      std::vector<Event> events = RandomEvents(1 + random() % 3000, random);
      if (weighs)
        for (Event& event : events) event.weight = static_cast<float>(random() % 11) / 10;
      EXPECT_EQ(PartInHand(events, weighs).Found(), "") << "seed " << seed;
    }
  EXPECT_EQ(PartInHand({}).Found(), "");
}

TEST(LinearPartCheck, WrongSumsAreFoundByColumnAndRow) {
  std::mt19937_64 random(6);
  const PartInHand good(RandomEvents(2000, random));
  const auto found = [&](const std::function<void(PartInHand*)>& change) {
    PartInHand part = good;
    change(&part);
    return part.Found();
  };
  constexpr size_t kC = 0, kSet = 1, kD = 2;
  using testing::HasSubstr;
  using testing::MatchesRegex;
  // A record twice, or left out, that the figures do not tell of.
  EXPECT_THAT(found([&](PartInHand* p) { p->count(p->PlaceIn(kC)) += p->Unit(kC); }),
              MatchesRegex("column 'c': counts of [0-9]+ steps, and its examples make .*"));
  EXPECT_THAT(found([&](PartInHand* p) { p->count(p->PlaceIn(kD)) -= p->Unit(kD); }),
              HasSubstr("column 'd': counts"));
  // A row lost.
  EXPECT_THAT(found([&](PartInHand* p) { p->Erase(p->PlaceIn(kD)); }),
              HasSubstr("column 'd': counts"));
  // Wild bits of a count and of a sum.
  EXPECT_THAT(found([&](PartInHand* p) { p->count(p->PlaceIn(kSet)) ^= int64_t{1} << 40; }),
              HasSubstr("column 's', row 0: a count of"));
  EXPECT_THAT(found([&](PartInHand* p) { p->count(p->PlaceIn(kD)) *= -1; }),
              HasSubstr("column 'd', row 0: a count of -"));
  for (const size_t column : {kC, kSet, kD})
    EXPECT_THAT(found([&](PartInHand* p) { p->sum(p->PlaceIn(column)) ^= int64_t{1} << 40; }),
                HasSubstr(", row 0: a sum of"));
  // Another scale of a column.
  EXPECT_THAT(found([&](PartInHand* p) {
                for (size_t i = p->PlaceIn(kC); i < p->PlaceIn(kSet); ++i) p->count(i) *= 2;
              }),
              HasSubstr("column 'c'"));
  // Further numbers, and clicks that the figures have otherwise.
  EXPECT_THAT(found([](PartInHand* p) { p->numbers[kAlong] = int64_t{1} << 40; }),
              HasSubstr("moves along residuals: a sum of"));
  EXPECT_THAT(found([](PartInHand* p) { p->numbers[kSquare] = -1; }),
              HasSubstr("squared moves: a sum of -1"));
  EXPECT_THAT(found([](PartInHand* p) { p->numbers[kClicks] /= 2; }),
              HasSubstr("clicks: a sum of"));
  EXPECT_THAT(found([](PartInHand* p) {
                ++p->figures.bins[0];  // a click among the misses
                --*std::max_element(p->figures.bins.begin() + kBins, p->figures.bins.end());
              }),
              HasSubstr("clicks: a sum of"));
}

// These bounds are of whole sums: an event whose vector has the norm 1.5 C hides among others, and
// so does a bit. Only a sum of the same records tells (ASumThatIsCheckedIsHeldAgainstItsRecords).
TEST(LinearPartCheck, AVectorThatIsTooLongIsNotFound) {
  std::mt19937_64 random(7);
  PartInHand part(RandomEvents(2000, random));
  for (const size_t column : {0, 1, 2, 3, 4}) {
    const size_t place = part.PlaceIn(column);
    part.sum(place) += part.sum(place) > 0 ? -2 * part.Unit(column) : 2 * part.Unit(column);
  }
  EXPECT_EQ(part.Found(), "");
  part.sum(part.PlaceIn(2)) ^= 1 << 9;
  EXPECT_EQ(part.Found(), "");
}

// A learner that sees the records of a part itself says whether the part is theirs, bit for bit,
// and learns the same period either way.
TEST(LinearPart, ASumThatIsCheckedIsHeldAgainstItsRecords) {
  for (const size_t threads : {1, 3}) {
    std::mt19937_64 random(threads);
    Trained alone(1), checking(threads);
    for (Trained* trained : {&alone, &checking}) {
      std::mt19937_64 same(8);
      trained->Take(StepOf(SomeEvents(3000, same)));
    }
    const std::string released = *checking.learner.TakeReleased();
    MemoryRows rows = RowsOf(checking);
    for (int round = 0; round < 6; ++round) {
      const std::vector<Event> others = SomeEvents(900, random), events = SomeEvents(700, random);
      std::string theirs = PartOf({events}, released, rows, 2);
      const bool wrong = round % 3 == 1, unknown = round % 3 == 2;
      if (wrong) theirs[theirs.size() / 2] ^= 4;
      if (unknown) theirs.clear();
      for (Trained* trained : {&alone, &checking}) {
        stream::StepBatch preview = StepOf(others);
        preview.kind = stream::StepBatch::Kind::kPreview;
        ASSERT_TRUE(trained->learner.Preview(preview, &trained->report));
        for (const auto& piece : CutAtRandom(events, random)) {
          stream::StepBatch again = StepOf(piece);
          again.kind = stream::StepBatch::Kind::kPreview;
          again.recount = trained == &checking;
          ASSERT_TRUE(trained->learner.Preview(again, &trained->report));
          EXPECT_EQ(trained->report.losses, piece.size());
        }
      }
      const auto same = checking.learner.EndRecount(theirs);
      ASSERT_TRUE(same);
      EXPECT_EQ(*same, !wrong);
    }
    // A part without any event is one too.
    EXPECT_EQ(checking.learner.EndRecount(PartOf({}, released, rows, 1)), true);
    stream::StepBatch last;
    last.examples.slots = 3;
    last.examples.dense_width = 2;
    alone.Take(last);
    checking.Take(last);
    EXPECT_EQ(checking.report.examples, 6u * 1600);
    EXPECT_EQ(checking.report.units_clipped, alone.report.units_clipped);
    EXPECT_NEAR(checking.report.earlier_loss_sum, alone.report.earlier_loss_sum, 9600 * 0x1p-17);
    EXPECT_TRUE(checking.Parameters() == alone.Parameters());
  }
}

// A refused part leaves a learner as it was.
TEST(LinearPart, ARefusedPartChangesNothing) {
  std::mt19937_64 random(5);
  Trained trained(1), other(1);
  const stream::StepBatch step = StepOf(SomeEvents(500, random));
  const auto refused = other.learner.AddPart("\x05\x06");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "learner 'sums': figures of a part, clipped at byte 1: 6; 5 is the most");
  // Wrong at its end alone: all that comes before is right.
  MemoryRows rows = RowsOf(other);
  const std::string released = other.learner.state().Encode(*other.options.columns);
  std::string part = PartOf({SomeEvents(300, random)}, released, rows, 1);
  part.pop_back();
  EXPECT_FALSE(other.learner.AddPart(part));
  trained.Take(step);
  other.Take(step);
  EXPECT_TRUE(trained.Parameters() == other.Parameters());
}

}  // namespace
}  // namespace tacit::train

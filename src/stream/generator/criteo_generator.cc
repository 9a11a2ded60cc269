#include "stream/generator/criteo_generator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <thread>
#include <tuple>
#include <utility>

#include "base/auc.h"
#include "base/check.h"
#include "stream/generator/generator_parts.h"

namespace tacit::stream {
namespace {

constexpr size_t kIntegers = 13, kCategories = 26;
constexpr size_t kQuantiles = 1 << 14;  // distinct draws of an integer column

constexpr std::array<uint32_t, kCategories> kVocabulary = {
    1472, 577,  82741, 18940, 305,  23,   1172, 633,   3,  9090, 5918,  64300, 3207,
    27,   1550, 44262, 10,    5485, 2161, 3,    56473, 17, 15,   27360, 104,   12934};

// exp(log_mean + log_sd * normal) - shift, rounded down: fitted by eye to the published log's
// quantiles.
struct IntegerShape {
  double missing, log_mean, log_sd, shift;
};
constexpr std::array<IntegerShape, kIntegers> kIntegerShape = {{{.45, 0.4, 1.3, 0},
                                                                {.00, 1.8, 2.2, 3},
                                                                {.20, 1.9, 1.5, 0},
                                                                {.20, 1.5, 1.2, 0},
                                                                {.05, 7.9, 2.3, 0},
                                                                {.25, 3.7, 1.7, 0},
                                                                {.05, 1.2, 1.6, 0},
                                                                {.00, 1.9, 1.2, 0},
                                                                {.05, 3.7, 1.6, 0},
                                                                {.45, -.5, 0.8, 0},
                                                                {.05, 0.4, 1.1, 0},
                                                                {.78, -.5, 1.0, 0},
                                                                {.20, 1.5, 1.2, 0}}};

// Popularity of the value of rank r: (r + flatness)^-exponent.
struct CategoryShape {
  double missing, exponent, flatness;
};
constexpr std::array<CategoryShape, kCategories> kCategoryShape = {
    {{.00, 1.7, 1}, {.00, 1.2, 2}, {.03, 1.1, 3}, {.03, 1.1, 2}, {.00, 2.0, 1}, {.13, 1.4, 1},
     {.00, 1.0, 9}, {.00, 2.0, 1}, {.00, 2.9, 1}, {.00, 1.1, 1}, {.00, 1.0, 9}, {.03, 1.1, 3},
     {.00, 1.0, 9}, {.00, 1.2, 1}, {.00, 1.0, 9}, {.03, 1.1, 3}, {.00, 1.4, 1}, {.00, 1.1, 4},
     {.45, 1.6, 1}, {.45, 0.9, 1}, {.03, 1.1, 3}, {.82, 1.2, 1}, {.00, 1.3, 1}, {.03, 1.1, 2},
     {.45, 1.2, 1}, {.45, 1.1, 2}}};

// Pairs of categorical columns that act together.
constexpr std::array<std::pair<uint8_t, uint8_t>, 5> kPairs = {
    {{5, 13}, {16, 22}, {4, 8}, {24, 21}, {7, 19}}};

// Variances of the logit's parts. The parts that little data can teach (integers, small
// vocabularies) have more than half; the head values of large vocabularies have most of the rest.
constexpr double kIntegerVariance = 0.52;
constexpr double kSmallVariance = 0.58;  // columns with fewer than kSmallVocabulary values
constexpr double kLargeVariance = 0.60;
constexpr double kPairVariance = 0.15;
constexpr uint32_t kSmallVocabulary = 1000;
constexpr double kClickRate = 0.25;

constexpr double kPopularitySwing = 0.5;  // of the logarithm
constexpr double kNewValueShare = 0.2;    // share of the values that do not exist on day 0
constexpr uint32_t kAlwaysThere = 5;      // most popular values that are there from the start
constexpr int64_t kBriefDays = 4;         // lifetime of a value that comes and goes
constexpr uint32_t kTailRank = 1000;      // rarer values have smaller effects
constexpr double kTailEffect = 0.6;

// The purpose of a block of random words.
enum class Stream : uint32_t { kRow, kValue, kLife, kInteger, kColumn, kPair };

double NormalQuantile(double p) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Shifts and scales the effects to mean 0 and variance `variance` under the weights, so that clicks
// are equally frequent and equally predictable on every day. Does not blow up a column that has
// nearly turned to a constant.
void Standardise(std::span<const double> weight, double variance, std::span<float> effect) {
  double total = 0, mean = 0, square = 0;
  for (size_t i = 0; i < effect.size(); ++i) {
    total += weight[i];
    mean += weight[i] * effect[i];
  }
  mean /= total;
  for (size_t i = 0; i < effect.size(); ++i) {
    const double centred = effect[i] - mean;
    square += weight[i] * centred * centred;
  }
  const double scale = std::sqrt(variance) / std::max(std::sqrt(square / total), 0.5);
  for (float& e : effect) e = static_cast<float>((e - mean) * scale);
}

// Maps a column's ids one to one to 32 bits, as 8 digits (the finaliser of MurmurHash3).
std::array<char, 8> HexName(uint32_t id, uint32_t key) {
  uint32_t x = id ^ key;
  x = (x ^ (x >> 16)) * 0x85EBCA6B;
  x = (x ^ (x >> 13)) * 0xC2B2AE35;
  x ^= x >> 16;
  std::array<char, 8> text;
  for (size_t i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[(x >> (28 - 4 * i)) & 15];
  return text;
}

// The angle by which a column's effects have turned by a day: a slow turn with a weekly wobble.
struct Turn {
  double radians_per_day = 0, wobble_phase = 0;
  double At(uint32_t day) const {
    return radians_per_day * day +
           0.15 * std::sin(2 * std::numbers::pi * (day / 7.0 + wobble_phase));
  }
};

Turn DrawTurn(uint32_t word, uint32_t phase, double least, double most) {
  return {(least + (most - least) * Uniform(word)) / 23, Uniform(phase)};
}

struct IntegerColumn {
  Turn turn;
  double variance = 0;
  std::vector<int64_t> value;  // kQuantiles of them, ascending
  std::vector<double> weight;  // of the quantiles and of "missing"
  std::vector<float> a, b;     // two directions that the effect turns between
};

struct CategoryColumn {
  struct Value {
    float a, b;        // as above
    float popularity;  // logarithm, on an average day
    float phase;
    uint32_t first_day, end_day;  // there on days [first_day, end_day)
  };
  Turn turn;
  double variance = 0, period_days = 0;
  std::vector<Value> value;               // the last one: missing
  std::vector<std::array<char, 8>> name;  // of all but the missing one
};

std::vector<double> NormalQuantiles() {
  std::vector<double> normal(kQuantiles);
  for (size_t i = 0; i < kQuantiles; ++i)
    normal[i] = NormalQuantile((static_cast<double>(i) + 0.5) / kQuantiles);
  return normal;
}

IntegerColumn MakeInteger(const Random& random, uint32_t index, std::span<const double> normals) {
  const IntegerShape& shape = kIntegerShape[index];
  IntegerColumn column;
  const auto words = random.Block(index, 0, 0);
  column.turn = DrawTurn(words[0], words[1], 0.3, 0.7);
  column.variance = 0.5 + Uniform(words[2]);
  for (const double normal : normals) {
    const double real = std::exp(shape.log_mean + shape.log_sd * normal) - shape.shift;
    column.value.push_back(static_cast<int64_t>(std::floor(real)));
    const double logarithm = std::copysign(std::log1p(std::abs(std::floor(real))), real);
    column.a.push_back(static_cast<float>(logarithm));
  }
  column.weight.assign(kQuantiles, (1 - shape.missing) / kQuantiles);
  column.weight.push_back(shape.missing);
  const auto [missing_a, missing_b] = Normals(words[3], random.Block(index, 1, 0)[0]);
  Standardise({column.weight.data(), kQuantiles}, 1, column.a);
  column.a.push_back(static_cast<float>(missing_a / 2));
  const float sign = missing_b < 0 ? -1.0f : 1.0f;
  for (const float a : column.a) column.b.push_back(sign * std::min(a * a - 1, 4.0f));
  for (float& a : column.a) a *= sign;
  return column;
}

// Draws the days of a value that comes and goes, so that the first day has as many as any other.
std::pair<uint32_t, uint32_t> BriefLife(uint32_t days, uint32_t word) {
  const int64_t begin =
      static_cast<int64_t>(Uniform(word) * (days + kBriefDays - 1)) - (kBriefDays - 1);
  return {static_cast<uint32_t>(std::max<int64_t>(begin, 0)),
          static_cast<uint32_t>(std::min<int64_t>(begin + kBriefDays, days))};
}

CategoryColumn MakeCategory(const CriteoGeneratorOptions& options, uint32_t index) {
  const uint64_t seed = options.seed;
  const uint32_t days = options.days;
  const CategoryShape& shape = kCategoryShape[index];
  const uint32_t vocabulary = kVocabulary[index];
  const Random values(seed, Stream::kValue), lives(seed, Stream::kLife);
  CategoryColumn column;
  const auto words = Random(seed, Stream::kColumn).Block(index, 0, 0);
  column.turn = DrawTurn(words[0], words[1], 0.4, 1.2);
  column.variance = 0.5 + Uniform(words[2]);
  column.period_days = 10 + 20 * Uniform(words[3]);
  const uint32_t key = Random(seed, Stream::kColumn).Block(index, 1, 0)[0];
  double total = 0;
  for (uint32_t id = 0; id <= vocabulary; ++id) {
    const auto effect = values.Block(index, id, 0);
    const auto life = lives.Block(index, id, 0);
    const auto [a, b] = Normals(effect[0], effect[1]);
    const double damp = id < kTailRank ? 1 : kTailEffect;
    const bool is_new = vocabulary > 100 && id >= kAlwaysThere && Uniform(life[0]) < kNewValueShare;
    // The rarest value never comes and goes, so that no day is without values.
    const bool is_brief =
        vocabulary > 100 && id + 1 < vocabulary && Uniform(life[3]) < options.churn;
    const double popularity = -shape.exponent * std::log(id + shape.flatness);
    column.value.push_back({static_cast<float>(damp * a), static_cast<float>(damp * b),
                            static_cast<float>(popularity), static_cast<float>(Uniform(life[1])),
                            is_new ? 1 + life[2] % std::max(1u, days - 1) : 0, days});
    if (is_brief)
      std::tie(column.value.back().first_day, column.value.back().end_day) =
          BriefLife(days, effect[2]);
    if (id == vocabulary) break;
    total += std::exp(popularity);
    column.name.push_back(HexName(id, key));
  }
  CategoryColumn::Value& missing = column.value.back();
  missing.first_day = 0;
  missing.end_day = days;
  missing.popularity =
      static_cast<float>(std::log(total) + std::log(shape.missing / (1 - shape.missing)));
  return column;
}

// Divides a variance among columns in proportion to the weights they hold.
template <class Column>
void ShareVariance(double variance, const std::vector<Column*>& columns) {
  double total = 0;
  for (const Column* column : columns) total += column->variance;
  for (Column* column : columns) column->variance *= variance / total;
}

std::vector<double> PopularityOn(const CategoryColumn& column, uint32_t day) {
  std::vector<double> weight(column.value.size());
  for (size_t i = 0; i < weight.size(); ++i) {
    const CategoryColumn::Value& value = column.value[i];
    if (day < value.first_day || day >= value.end_day) continue;
    const double swing = std::sin(2 * std::numbers::pi * (day / column.period_days + value.phase));
    weight[i] = std::exp(value.popularity + kPopularitySwing * swing);
  }
  return weight;
}

template <class GetA, class GetB>
std::vector<float> Turned(size_t n, double angle, GetA a, GetB b) {
  const auto along = static_cast<float>(std::cos(angle));
  const auto across = static_cast<float>(std::sin(angle));
  std::vector<float> effect(n);
  for (size_t i = 0; i < n; ++i) effect[i] = along * a(i) + across * b(i);
  return effect;
}

void AppendInteger(int64_t value, std::string* line) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  line->append(text, static_cast<size_t>(end - text));
}

}  // namespace

std::span<const uint32_t> CriteoVocabulary() { return kVocabulary; }

struct CriteoGenerator::Truth {
  std::vector<IntegerColumn> integer;
  std::vector<CategoryColumn> category;
  std::vector<std::vector<float>> pair;  // first value x second value
  double bias = 0;

  explicit Truth(const CriteoGeneratorOptions& options) {
    const uint64_t seed = options.seed;
    const Random random(seed, Stream::kInteger);
    const std::vector<double> normals = NormalQuantiles();
    for (uint32_t i = 0; i < kIntegers; ++i) integer.push_back(MakeInteger(random, i, normals));
    for (uint32_t i = 0; i < kCategories; ++i) category.push_back(MakeCategory(options, i));
    std::vector<IntegerColumn*> integers;
    std::vector<CategoryColumn*> small, large;
    for (IntegerColumn& column : integer) integers.push_back(&column);
    for (CategoryColumn& column : category)
      (column.name.size() < kSmallVocabulary ? small : large).push_back(&column);
    ShareVariance(kIntegerVariance, integers);
    ShareVariance(kSmallVariance, small);
    ShareVariance(kLargeVariance, large);
    for (uint32_t p = 0; p < kPairs.size(); ++p) pair.push_back(MakePair(seed, p));
    // The mean of a logistic function of a normal, to first order (MacKay 1992).
    const double variance = kIntegerVariance + kSmallVariance + kLargeVariance + kPairVariance;
    bias = std::log(kClickRate / (1 - kClickRate)) * std::sqrt(1 + std::numbers::pi * variance / 8);
  }

  std::vector<float> MakePair(uint64_t seed, uint32_t p) const {
    const Random random(seed, Stream::kPair);
    const size_t cells =
        category[kPairs[p].first].value.size() * category[kPairs[p].second].value.size();
    std::vector<float> effect(cells);
    for (uint32_t i = 0; i < cells; ++i) {
      const auto words = random.Block(p, i, 0);
      effect[i] = static_cast<float>(Normals(words[0], words[1]).first);
    }
    return effect;
  }
};

struct CriteoGenerator::Tables {
  uint32_t day = 0;
  std::vector<AliasTable> popularity;
  std::vector<std::vector<float>> integer, category, pair;  // effects

  Tables(const Truth& truth, uint32_t of_day) : day(of_day) {
    for (const IntegerColumn& column : truth.integer) {
      integer.push_back(Turned(
          column.a.size(), column.turn.At(day), [&](size_t i) { return column.a[i]; },
          [&](size_t i) { return column.b[i]; }));
      Standardise(column.weight, column.variance, integer.back());
    }
    std::vector<std::vector<double>> weights;
    for (const CategoryColumn& column : truth.category) {
      weights.push_back(PopularityOn(column, day));
      popularity.emplace_back(weights.back());
      category.push_back(Turned(
          column.value.size(), column.turn.At(day), [&](size_t i) { return column.value[i].a; },
          [&](size_t i) { return column.value[i].b; }));
      Standardise(weights.back(), column.variance, category.back());
    }
    for (size_t p = 0; p < kPairs.size(); ++p) {
      const auto& first = weights[kPairs[p].first];
      const auto& second = weights[kPairs[p].second];
      std::vector<double> weight;
      for (const double w : first)
        for (const double v : second) weight.push_back(w * v);
      pair.push_back(truth.pair[p]);
      Standardise(weight, kPairVariance / kPairs.size(), pair.back());
    }
  }
};

// The draws of a row: indexes into the columns' tables, and the coin of its click.
struct CriteoGenerator::Row {
  std::array<uint32_t, kIntegers> integer;
  std::array<uint32_t, kCategories> category;
  uint32_t coin = 0;

  double ClickProbability(const Tables& tables, double bias) const {
    double logit = bias;
    for (size_t i = 0; i < kIntegers; ++i) logit += tables.integer[i][integer[i]];
    for (size_t i = 0; i < kCategories; ++i) logit += tables.category[i][category[i]];
    for (size_t p = 0; p < kPairs.size(); ++p) {
      const auto [first, second] = kPairs[p];
      const size_t width = tables.category[second].size();
      logit += tables.pair[p][category[first] * width + category[second]];
    }
    return 1 / (1 + std::exp(-logit));
  }

  void Append(const Truth& truth, bool click, std::string* lines) const {
    lines->push_back(click ? '1' : '0');
    for (size_t i = 0; i < kIntegers; ++i) {
      lines->push_back('\t');
      if (integer[i] < kQuantiles) AppendInteger(truth.integer[i].value[integer[i]], lines);
    }
    for (size_t i = 0; i < kCategories; ++i) {
      lines->push_back('\t');
      const auto& name = truth.category[i].name;
      if (category[i] < name.size()) lines->append(name[category[i]].data(), 8);
    }
    lines->push_back('\n');
  }
};

CriteoGenerator::CriteoGenerator(CriteoGeneratorOptions options)
    : options_(options), truth_(std::make_unique<Truth>(options)) {
  TACIT_CHECK(options.days > 0 && options.rows_per_day > 0, "an empty log");
  TACIT_CHECK(options.churn >= 0 && options.churn <= 1, "a share");
}

CriteoGenerator::~CriteoGenerator() = default;

std::shared_ptr<const CriteoGenerator::Tables> CriteoGenerator::TablesOf(uint32_t day) const {
  TACIT_CHECK(day < options_.days, "a day that is not in the log");
  const size_t kept = std::max(4u, std::thread::hardware_concurrency() + 1);  // one a thread
  {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(recent_.begin(), recent_.end(),
                                    [&](const auto& tables) { return tables->day == day; });
    if (found != recent_.end()) {
      std::rotate(found, found + 1, recent_.end());
      return recent_.back();
    }
  }
  auto made = std::make_shared<const Tables>(*truth_, day);
  const MutexLock lock(mutex_);
  if (recent_.size() >= kept) recent_.erase(recent_.begin());
  recent_.push_back(made);
  return made;
}

CriteoGenerator::Row CriteoGenerator::Draw(const Tables& tables, uint64_t row) const {
  const Random random(options_.seed, Stream::kRow);
  std::array<uint32_t, kIntegers + kCategories + 1> word;
  static_assert(sizeof(word) % 16 == 0);
  for (uint32_t i = 0; i < word.size(); i += 4) {
    // The counter holds 48 bits of the row, 16 of the block within the row, and the day.
    const auto block = random.Block(static_cast<uint32_t>(row),
                                    static_cast<uint32_t>(row >> 32) << 16 | i / 4, tables.day);
    std::copy(block.begin(), block.end(), word.begin() + i);
  }
  Row drawn;
  for (size_t i = 0; i < kIntegers; ++i) {
    const bool missing = (word[i] >> 14) * 0x1p-18 < kIntegerShape[i].missing;
    drawn.integer[i] = missing ? kQuantiles : word[i] % kQuantiles;
  }
  for (size_t i = 0; i < kCategories; ++i)
    drawn.category[i] = tables.popularity[i].Draw(word[kIntegers + i]);
  drawn.coin = word.back();
  return drawn;
}

void CriteoGenerator::Generate(uint32_t day, uint64_t first_row, uint64_t n, std::string* lines,
                               std::vector<float>* true_probability) const {
  const std::shared_ptr<const Tables> held = TablesOf(day);
  const Tables& tables = *held;
  for (uint64_t row = first_row; row < first_row + n; ++row) {
    const Row drawn = Draw(tables, row);
    const double probability = drawn.ClickProbability(tables, truth_->bias);
    if (lines != nullptr) drawn.Append(*truth_, Uniform(drawn.coin) < probability, lines);
    if (true_probability != nullptr) true_probability->push_back(static_cast<float>(probability));
  }
}

void CriteoGenerator::Predict(uint32_t model_day, uint32_t day, uint64_t first_row, uint64_t n,
                              std::vector<float>* probability) const {
  const std::shared_ptr<const Tables> model = TablesOf(model_day);
  const std::shared_ptr<const Tables> held = TablesOf(day);
  const Tables& tables = *held;
  for (uint64_t row = first_row; row < first_row + n; ++row)
    probability->push_back(
        static_cast<float>(Draw(tables, row).ClickProbability(*model, truth_->bias)));
}

double CriteoGenerator::BestAuc(uint32_t day, uint64_t n) const {
  const std::shared_ptr<const Tables> held = TablesOf(day);
  const Tables& tables = *held;
  std::vector<float> probability, label;
  for (uint64_t row = 0; row < n; ++row) {
    const Row drawn = Draw(tables, row);
    const double p = drawn.ClickProbability(tables, truth_->bias);
    probability.push_back(static_cast<float>(p));
    label.push_back(Uniform(drawn.coin) < p ? 1.0f : 0.0f);
  }
  return ExactAuc(probability, label);
}

}  // namespace tacit::stream

#include "inspect/label_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "event/shape_rules.h"
#include "inspect/names.h"
#include "inspect/rules.h"
#include "inspect/time_finder.h"

namespace tacit::inspect {
namespace {

constexpr double kMostRecords = 0.9;     // a label that is there in fewer would lose the others
constexpr double kLabelsLackMost = 0.5;  // above it a column is not even a rival
constexpr size_t kValuesShown = 12;
constexpr uint64_t kRatingsMost = 11;  // 0 to 10, or half stars: a mean of ratings has more

class LabelFinder {
 public:
  LabelFinder(const Sample& sample, const Evidence& evidence, const Named& named,
              std::vector<uint8_t>* taken, Roles* roles)
      : sample_(sample), evidence_(evidence), named_(named), taken_(taken), roles_(roles) {
    for (size_t c = 0; evidence.TellsWords() && c < sample.columns.size(); ++c) PassOverNone(c);
  }

  void Find() {
    roles_->label_denied = named_.no_label;
    if (named_.no_label) return;
    std::optional<size_t> best;
    Grounds grounds;
    if (sample_.shape.format == Format::kCriteoTsv) {
      if (IsZeroOrOne(0)) best = 0;
    } else if (!named_.label.empty()) {
      best = sample_.ColumnAt(named_.label);
      const bool has_rule = best && !Of(*best).time_unit &&
                            (!named_.label_values.empty() || MayHaveRule(*best) || IsVeiled(*best));
      if (best && !has_rule) return Refuse(*best);
    } else {
      best = Guess(&grounds);
    }
    if (!best) return;
    LabelRole label{.column = *best, .grounds = std::move(grounds)};
    SetRule(&label);
    if (!named_.label.empty() && HasOneLabel(label)) return Refuse(*best);
    roles_->label = std::move(label);
    (*taken_)[*best] = 1;
    if (evidence_.TellsWords() && Of(*best).missing > 1 - kMostRecords)
      roles_->warnings.push_back(
          fmt::format("{} of the records have no {}, the label: they are not "
                      "learnt from",
                      PercentText(Of(*best).missing), config::QuotedYaml(At(*best).place)));
    TellOfTextsForNone(*best);
  }

 private:
  using Numbers = std::vector<std::pair<double, uint64_t>>;  // ascending, with their records

  // A column without the few texts that stand for none in it.
  struct Cleaned {
    TextsForNone none;
    Column column;
    Profile profile;
  };

  const Column& At(size_t c) const {
    const auto cleaned = cleaned_.find(c);
    return cleaned == cleaned_.end() ? sample_.columns[c] : cleaned->second.column;
  }
  const Profile& Of(size_t c) const {
    const auto cleaned = cleaned_.find(c);
    return cleaned == cleaned_.end() ? roles_->profiles[c] : cleaned->second.profile;
  }

  // A text that stands for none is a label where records have only one value beside it, or where
  // too many have it.
  void PassOverNone(size_t c) {
    const Column& column = sample_.columns[c];
    TextsForNone none = TextsForNoneOf(column);
    if (none.records == 0 || HasQuotes(c)) return;
    Column without = Without(none, column);
    Profile profile = ProfileOf(without, sample_.rows);
    if (profile.distinct < 2) return;
    if (profile.missing > 1 - kMostRecords) return;
    cleaned_.emplace(c, Cleaned{std::move(none), std::move(without), profile});
  }

  void TellOfTextsForNone(size_t c) {
    const auto cleaned = cleaned_.find(c);
    if (cleaned == cleaned_.end()) return;
    const TextsForNone& none = cleaned->second.none;
    for (const auto& [code, text] : none.texts)
      if (!roles_->ListAsMissing(text)) return;  // a person says that it is a label
    roles_->warnings.push_back(fmt::format(
        "{} {} {} in place of the label: the proposal lists it as missing, so that such records "
        "have no label",
        Counted(none.records, "record"), WordFor(none.records, "has", "have"), none.Quoted()));
  }

  // "it is 0 in all 10,000 records", or the values that a column has, by their forms.
  std::string ValuesOf(size_t c) const {
    const Column& column = sample_.columns[c];
    const Profile& profile = roles_->profiles[c];
    const std::string missing =
        profile.present == sample_.rows
            ? ""
            : fmt::format(", and is missing in {}",
                          Counted(sample_.rows - profile.present, "record"));
    if (profile.time_unit) return "its values are times";
    if (profile.present == 0) return "no record has it";
    if (profile.distinct == 1 && !column.texts.empty())
      return fmt::format("it is {} in {}{}", config::QuotedYaml(column.texts.begin()->second),
                         Counted(profile.present, "record"), missing);
    const auto forms = [](std::string_view name, uint64_t count) {
      return count == 0 ? "" : fmt::format(", {}", Counted(count, name));
    };
    return fmt::format("it has {}{}{}{}{}{}{}", Counted(profile.distinct, "different value"),
                       forms("number", column.numbers()), forms("text", column.words),
                       forms("flag", column.flags), forms("list", column.lists),
                       forms("object", column.nested), missing);
  }
  void Refuse(size_t c) {
    roles_->refused = fmt::format(
        "{} cannot be the label: {}; a label has records of either kind",
        config::QuotedYaml(sample_.columns[c].place),
        evidence_.TellsWords() ? ValuesOf(c) : "noised counts show no two values of it");
  }
  // The likeliest column; the others that can be a label might be meant too. Where none is called
  // as labels are, those that are and can be none are told of.
  std::optional<size_t> Guess(Grounds* grounds) {
    std::vector<std::pair<int, size_t>> able;  // with their ranks
    std::vector<size_t> lacking;               // those that too many records lack
    for (size_t c = 0; c < sample_.columns.size(); ++c) {
      const auto rank = LabelRank(c);
      if (rank && Of(c).missing <= 1 - kMostRecords)
        able.emplace_back(*rank, c);
      else if (rank)
        lacking.push_back(c);
    }
    std::ranges::sort(able);
    const bool named = !able.empty() && IsLabelName(At(able[0].second));
    for (size_t c = 0; !named && evidence_.TellsWords() && c < sample_.columns.size(); ++c)
      if ((*taken_)[c] == 0 && IsLabelName(sample_.columns[c]) &&
          std::ranges::find(able, c, [](const auto& rank) { return rank.second; }) == able.end())
        roles_->warnings.push_back(fmt::format(
            "{} is called as labels are, and is not taken for one: {}{}",
            config::QuotedYaml(sample_.columns[c].place), ValuesOf(c),
            Of(c).distinct > 1 && MayHaveRule(c) ? ". With --label it is one all the same" : ""));
    if (able.empty()) return TellOfWords(lacking);
    *grounds = {.guessed = true, .reason = named ? "by its name" : "by its values"};
    for (size_t i = 1; i < able.size(); ++i) grounds->rivals.push_back(At(able[i].second).place);
    for (const size_t c : lacking) grounds->rivals.push_back(At(c).place);
    return able[0].second;
  }
  // Nothing says which of these fields is the label.
  std::optional<size_t> TellOfWords(std::vector<size_t> able) {
    for (size_t c = 0; evidence_.TellsWords() && c < sample_.columns.size(); ++c)
      if ((*taken_)[c] == 0 && HasWords(c) && Of(c).distinct > 1 && Of(c).distinct <= kValuesShown)
        able.push_back(c);
    std::string fields;
    for (const size_t c : able)
      fields += (fields.empty() ? "" : ", ") + config::QuotedYaml(At(c).place);
    if (!able.empty())
      roles_->warnings.push_back(fmt::format(
          "no field is known to be the label. These have few values: {}; --label names one",
          fields));
    return std::nullopt;
  }
  // True if by this rule all records that have a label have the same. A raw sample keeps few words.
  bool HasOneLabel(const LabelRole& label) const {
    if (!evidence_.TellsWords() || Of(label.column).distinct > kTextsMost) return false;
    bool has[2] = {false, false};
    for (uint64_t row = 0; row < sample_.rows && !(has[0] && has[1]); ++row)
      if (const auto is_one = LabelOfRow(sample_, label, row)) has[*is_one ? 1 : 0] = true;
    return !(has[0] && has[1]);
  }

  bool IsNumeric(size_t c) const { return At(c).numbers() > 0 && At(c).numbers() == Of(c).present; }
  bool IsZeroOrOne(size_t c) const { return Of(c).zero_or_one; }

  // A label's rank: a smaller one is likelier. Nothing if it cannot be one. Ranks below 10 have a
  // label's name and few values; ranks below 20 two values, or an event's name, after 0 and 1.
  std::optional<int> LabelRank(size_t c) const {
    const Column& column = At(c);
    const Profile& profile = Of(c);
    if ((*taken_)[c] != 0 || profile.missing > kLabelsLackMost || profile.distinct < 2 ||
        column.lists + column.nested + column.times + column.datetimes > 0 ||
        SeemsTime(column, profile))
      return std::nullopt;
    if (roles_->plain_json && column.place == "/label") return 0;
    const bool named = IsLabelName(column);
    if (IsZeroOrOne(c)) return named ? 1 : 12;
    const bool few = profile.distinct <= kTextsMost && profile.distinct == column.texts.size();
    if (evidence_.TellsWords() && few && HasWords(c)) {
      if (profile.distinct == 2) return named ? 2 : OppositeLabels(column) ? 13 : 16;
      if (named || IsEventName(column)) return 14;
    }
    if (HasQuotes(c) || !IsNumeric(c) || !evidence_.KnowsNumbers(c)) return std::nullopt;
    // The larger of -1 and 1 is a success, and either of 1 and 2 may be one.
    if (profile.distinct == 2) return named && profile.least <= 0 ? 4 : 15;
    // A scale: names of shelves look like one, so that what has fewest values comes first.
    if (named) return profile.distinct <= kRatingsMost ? 5 : 20;
    if (AreNames(profile.distinct)) return 20 + static_cast<int>(profile.distinct);
    return std::nullopt;
  }

  bool HasQuotes(size_t c) const {
    return sample_.shape.format == Format::kJson && At(c).quoted > 0;
  }
  bool HasWords(size_t c) const { return At(c).words == Of(c).present || HasQuotes(c); }

  // True if SetRule finds one. A person may name any field: one of a single number, or of lists.
  bool MayHaveRule(size_t c) const {
    if (IsZeroOrOne(c)) return true;
    if (HasWords(c)) return evidence_.TellsWords() && Of(c).distinct == At(c).texts.size();
    return (evidence_.TellsWords() || IsNumeric(c)) && evidence_.KnowsNumbers(c) &&
           evidence_.Numbers(c).size() >= 2;
  }

  // True if it may be a label of 0 and 1 that noise does not show.
  bool IsVeiled(size_t c) const {
    const Column& column = At(c);
    return !evidence_.TellsWords() &&
           (Of(c).hidden || column.numbers() + column.flags == Of(c).present);
  }

  void SetRule(LabelRole* label) {
    if (!named_.label_values.empty()) {
      label->values = named_.label_values;
      label->reason = "its words are given";
    } else if (IsZeroOrOne(label->column)) {
      label->reason = "it is 0 or 1";
      if (HasQuotes(label->column)) SetQuoted(label);
    } else if (!MayHaveRule(label->column)) {
      label->reason = "it is given, and taken for 0 or 1";
      roles_->warnings.push_back(
          fmt::format("the noise hides the values of {}: as the label it is taken for 0 or 1; more "
                      "records or a larger epsilon tell them",
                      config::QuotedYaml(At(label->column).place)));
    } else if (const auto opposite = OppositeLabels(At(label->column))) {
      label->values = *opposite;
      label->reason = "it has 2 values";
    } else if (HasWords(label->column) || evidence_.Numbers(label->column).size() == 2) {
      SetOpen(label);
    } else {
      const Numbers numbers = evidence_.Numbers(label->column);
      label->at_least = RatingThreshold(TellOfNoRatings(label->column, numbers));
      std::vector<std::pair<uint64_t, std::string>> counts;
      for (const auto& [number, count] : numbers)
        counts.emplace_back(count, fmt::format("{}", number));
      label->reason = fmt::format(
          "it is a scale, and GUESSED: it is 1 from {} on, which divides the records most evenly; "
          "change label_at_least in the proposal if it is another number; its values are {}",
          *label->at_least, CountsText(counts));
    }
  }

  // A number that lies farther from the others than those are wide, and 0 in a scale that begins
  // with 1, often stand where there is no answer. Returns the numbers between which nothing is so
  // wide.
  std::span<const std::pair<double, uint64_t>> TellOfNoRatings(size_t c, const Numbers& numbers) {
    const std::span<const std::pair<double, uint64_t>> all = numbers;
    size_t gap = 1;  // the widest one lies before this number
    for (size_t i = 2; i < all.size(); ++i)
      if (all[i].first - all[i - 1].first > all[gap].first - all[gap - 1].first) gap = i;
    const auto low = all.first(gap), high = all.subspan(gap);
    const auto width = [](const auto& part) { return part.back().first - part.front().first; };
    if (all.size() > 2 && high.front().first - low.back().first > width(low) + width(high)) {
      const auto [few, rest] =
          low.size() < high.size() ? std::pair(low, high) : std::pair(high, low);
      uint64_t records = 0;
      for (const auto& [number, count] : few) records += count;
      TellOfNoRating(c, records,
                     fmt::format("{}{}, far from the others,", few.front().first,
                                 few.size() > 1 ? fmt::format(" to {}", few.back().first) : ""));
      return rest.size() > 1 ? rest : all;
    }
    uint64_t records = 0;
    for (const auto& [number, count] : all) records += number <= 0 ? count : 0;
    if (records > 0 && all.back().first >= 1) TellOfNoRating(c, records, "0 or less");
    return all;
  }
  void TellOfNoRating(size_t c, uint64_t records, std::string_view number) {
    roles_->warnings.push_back(fmt::format(
        "{}{} {} {} as {}, beside other numbers: does it mean \"no answer\"? Then list it in "
        "source.{}.missing, so that such records have no label",
        evidence_.TellsWords() ? "" : "some ", Counted(records, "record"),
        WordFor(records, "has", "have"), number, config::QuotedYaml(At(c).place),
        sample_.format_name()));
  }

  // A person has to say which values are 1. For a trial it is the rarest.
  void SetOpen(LabelRole* label) const {
    const Column& column = At(label->column);
    std::vector<std::pair<uint64_t, std::string>> counts;
    if (evidence_.TellsWords()) {
      std::map<uint32_t, uint64_t> of_code;
      for (const uint32_t code : column.code)
        if (code != 0) ++of_code[code];
      for (const auto& [code, count] : of_code) counts.emplace_back(count, column.TextOf(code));
    } else {
      for (const auto& [number, count] : evidence_.Numbers(label->column))
        counts.emplace_back(count, fmt::format("{}", number));
    }
    std::ranges::sort(counts, std::greater());
    label->values_open = true;
    for (const auto& [count, text] : counts)
      label->values.emplace_back(text, &text == &counts.back().second ? "1" : "0");
    std::ranges::sort(label->values);
    label->reason = "its values are " + CountsText(counts);
  }

  // "\"view\" in 2,400 records, \"buy\" in 90".
  static std::string CountsText(std::span<const std::pair<uint64_t, std::string>> counts) {
    std::string list;
    const size_t shown = std::min(kValuesShown, counts.size());
    for (size_t i = 0; i < shown; ++i)
      list +=
          fmt::format("{}{} in {}", i > 0 ? ", " : "", config::QuotedYaml(counts[i].second),
                      i > 0 ? WithThousands(counts[i].first) : Counted(counts[i].first, "record"));
    return list + (counts.size() > shown ? fmt::format(" and {} more", counts.size() - shown) : "");
  }

  // The codec reads a label in quotes as a word.
  void SetQuoted(LabelRole* label) const {
    for (const auto& [code, text] : At(label->column).texts)
      label->values.emplace_back(text, event::ReadNumber(text) == 1 ? "1" : "0");
    if (label->values.empty()) label->values = {{"0", "0"}, {"1", "1"}};  // counts with noise
    std::ranges::sort(label->values);
  }

  const Sample& sample_;
  const Evidence& evidence_;
  const Named& named_;
  std::vector<uint8_t>* const taken_;
  Roles* const roles_;
  std::map<size_t, Cleaned> cleaned_;  // by column
};

}  // namespace

void FindLabel(const Sample& sample, const Evidence& evidence, const Named& named,
               std::vector<uint8_t>* taken, Roles* roles) {
  LabelFinder(sample, evidence, named, taken, roles).Find();
}

std::optional<bool> LabelOfRow(const Sample& sample, const LabelRole& label, uint64_t row) {
  const Column& column = sample.columns[label.column];
  if (column.code[row] == 0) return std::nullopt;
  if (!label.values.empty()) {
    const std::string text = column.TextOf(column.code[row]);
    const auto value = std::ranges::find(label.values, text, [](const auto& v) { return v.first; });
    if (value == label.values.end()) return std::nullopt;
    return value->second == "1";
  }
  const double number = column.number.empty() ? NAN : column.number[row];
  if (std::isnan(number)) return std::nullopt;
  if (label.at_least) return number >= *label.at_least;
  if (number != 0 && number != 1) return std::nullopt;
  return number == 1;
}

}  // namespace tacit::inspect

#include "inspect/label_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "event/shape_rules.h"
#include "inspect/names.h"
#include "inspect/rules.h"

namespace tacit::inspect {
namespace {

constexpr double kMostRecords = 0.9;  // a label that is there in fewer would lose the others

class LabelFinder {
 public:
  LabelFinder(const Sample& sample, const Evidence& evidence, const Named& named,
              std::vector<uint8_t>* taken, Roles* roles)
      : sample_(sample), evidence_(evidence), named_(named), taken_(taken), roles_(roles) {}

  void Find() {
    roles_->label_denied = named_.no_label;
    if (named_.no_label) return;
    std::optional<size_t> best;
    if (sample_.shape.format == Format::kCriteoTsv) {
      if (IsZeroOrOne(0)) best = 0;
    } else if (!named_.label.empty()) {
      best = sample_.ColumnAt(named_.label);
      if (best && named_.label_values.empty() && !MayHaveRule(*best) && !IsVeiled(*best))
        best.reset();
    } else if (roles_->plain_json) {
      best = sample_.ColumnAt("/label");
    } else {
      for (size_t c = 0; c < sample_.columns.size(); ++c)
        if (LabelRank(c) && (!best || *LabelRank(c) < *LabelRank(*best))) best = c;
    }
    if (!best) return;
    LabelRole label{.column = *best};
    const bool fixed =
        sample_.shape.format == Format::kCriteoTsv || roles_->plain_json || !named_.label.empty();
    for (size_t c = 0; !fixed && c < sample_.columns.size(); ++c)
      if (c != *best && LabelRank(c) && LabelClass(*LabelRank(c)) == LabelClass(*LabelRank(*best)))
        label.others.push_back(At(c).place);
    label.guessed = !fixed && (LabelClass(*LabelRank(*best)) > 0 || !label.others.empty());
    SetRule(&label);
    roles_->label = std::move(label);
    (*taken_)[*best] = 1;
  }

 private:
  const Column& At(size_t c) const { return sample_.columns[c]; }
  const Profile& Of(size_t c) const { return roles_->profiles[c]; }
  bool IsNumeric(size_t c) const { return At(c).numbers() > 0 && At(c).numbers() == Of(c).present; }
  bool IsZeroOrOne(size_t c) const { return Of(c).zero_or_one; }

  // A label's rank: a smaller one is likelier. Nothing if it cannot be one. Ranks below 10 have a
  // label's name, ranks below 20 two values or words of events. Words that do not tell a success
  // come after 0 and 1.
  std::optional<int> LabelRank(size_t c) const {
    const Column& column = At(c);
    const Profile& profile = Of(c);
    const bool json = sample_.shape.format == Format::kJson;
    if ((*taken_)[c] != 0 || profile.missing > 1 - kMostRecords || profile.distinct < 2 ||
        column.lists + column.nested + column.times + column.datetimes > 0)
      return std::nullopt;
    const bool named = IsLabelName(column), quotes = json && column.quoted > 0;
    if (IsZeroOrOne(c) && !quotes) return named ? 1 : 12;
    if (named && !TextsForNoLabel(c).empty()) return 1;
    const bool few = profile.distinct <= kTextsMost && profile.distinct == column.texts.size();
    const bool words = evidence_.TellsWords() && few && (column.words == profile.present || quotes);
    const bool success = words && TellsSuccess(column);
    if (words && profile.distinct == 2) return named ? 2 : success ? 13 : 16;
    if (words && !quotes && named) return 3;
    if (words && !quotes && IsEventName(column)) return success ? 11 : 14;
    if (quotes || !IsNumeric(c) || !evidence_.KnowsNumbers(c)) return std::nullopt;
    if (profile.distinct == 2) return named ? 4 : 15;
    // A scale: names of shelves look like one, so that what has fewest values comes first.
    if (AreNames(profile.distinct) || named)
      return named ? 5 : 20 + static_cast<int>(profile.distinct);
    return std::nullopt;
  }
  // The columns of a label's name, of two values, or of a scale are taken for each other.
  static int LabelClass(int rank) { return std::min(2, rank / 10); }

  bool HasQuotes(size_t c) const {
    return sample_.shape.format == Format::kJson && At(c).quoted > 0;
  }
  bool HasWords(size_t c) const { return At(c).words == Of(c).present || HasQuotes(c); }

  // The texts that stand for none in place of labels of 0 and 1; empty if it is no such column.
  std::vector<std::string> TextsForNoLabel(size_t c) const {
    const Column& column = At(c);
    const Profile& profile = Of(c);
    const double without =
        profile.missing * static_cast<double>(sample_.rows) + static_cast<double>(column.words);
    if (!evidence_.TellsWords() || HasQuotes(c) || column.words == 0 ||
        column.words + column.numbers() != profile.present ||
        profile.distinct != column.texts.size() ||
        without > (1 - kMostRecords) * static_cast<double>(sample_.rows))
      return {};
    const auto numbers = evidence_.Numbers(c);
    if (numbers.size() != 2 || numbers[0].first != 0 || numbers[1].first != 1) return {};
    std::vector<std::string> texts;
    for (const auto& [code, text] : column.texts) {
      if (event::ReadNumber(text)) continue;
      if (!StandsForNone(text)) return {};
      texts.push_back(text);
    }
    return texts;
  }

  // True if SetRule finds one. A person may name any field: one of a single number, or of lists.
  bool MayHaveRule(size_t c) const {
    if (IsZeroOrOne(c)) return true;
    if (HasWords(c)) return evidence_.TellsWords();
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
    const Profile& profile = Of(label->column);
    const bool quotes = HasQuotes(label->column);
    if (!named_.label_values.empty()) {
      label->values = named_.label_values;
      label->reason = "its words are given";
    } else if (IsZeroOrOne(label->column) && !quotes) {
      label->reason = "it is 0 or 1";
    } else if (auto texts = TextsForNoLabel(label->column); !texts.empty()) {
      label->reason = "it is 0 or 1";
      std::string quoted;
      for (const std::string& text : texts)
        quoted += (quoted.empty() ? "" : ", ") + config::QuotedYaml(text);
      roles_->warnings.push_back(fmt::format(
          "{} records have {} in place of the label: the proposal lists it as missing, so that "
          "they have no label",
          WithThousands(At(label->column).words), quoted));
      roles_->missing = std::move(texts);
    } else if (!MayHaveRule(label->column)) {
      label->reason = "it is given, and taken for 0 or 1";
      roles_->warnings.push_back(
          fmt::format("the noise hides the values of {}: as the label it is taken for 0 or 1; more "
                      "records or a larger epsilon tell them",
                      config::QuotedYaml(At(label->column).place)));
    } else if (HasWords(label->column)) {
      label->values = evidence_.LabelWords(label->column);
      label->values_open = !TellsSuccess(At(label->column));
      label->reason = fmt::format("it has {} values", profile.distinct);
    } else {
      label->at_least = RatingThreshold(evidence_.Numbers(label->column));
      label->reason = profile.distinct == 2 ? "it has two numbers, and the larger is 1"
                                            : "it is a scale, and this number divides the records "
                                              "most evenly";
    }
  }

  const Sample& sample_;
  const Evidence& evidence_;
  const Named& named_;
  std::vector<uint8_t>* const taken_;
  Roles* const roles_;
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

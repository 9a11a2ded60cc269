#include "inspect/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "event/shape_rules.h"
#include "inspect/label_finder.h"
#include "inspect/names.h"
#include "inspect/rules.h"
#include "inspect/time_finder.h"

namespace tacit::inspect {
namespace {

using Kind = config::Feature::Kind;

// Shares by which a column is told to be one thing or another.
constexpr double kNearlyAll = 0.95;  // of records have a value of their own: an id or text
constexpr double kEachItsOwn =
    0.999;  // an id of the record; values that share a hash are counted once
constexpr double kHardlyEver = 0.001;  // there in fewer records than that: of no use
constexpr double kClose = 0.32;        // a user's records lie twice as close as chance has them
constexpr double kCounting = 0.9;      // neighbours whose numbers do not fall, of a counter
constexpr uint64_t kItemsLeast = 11;   // by name alone: ten are recommended
constexpr uint64_t kUsersLeast = 20;   // of a column of texts that may be the user

class RoleFinder {
 public:
  RoleFinder(const Sample& sample, std::vector<Profile> profiles, const Evidence& evidence,
             const Named& named, bool may_be_plain)
      : sample_(sample),
        evidence_(evidence),
        named_(named),
        may_be_plain_(may_be_plain),
        taken_(sample.columns.size(), 0),
        foretold_(sample.columns.size()) {
    roles_.profiles = std::move(profiles);
  }

  Roles Find() {
    const bool criteo = sample_.shape.format == Format::kCriteoTsv;
    roles_.plain_json = may_be_plain_ && LooksPlain() && !named_.no_label;
    if (!criteo) Reserve();
    if (!criteo) FindTime(sample_, evidence_, named_, &taken_, &roles_);
    FindLabel(sample_, evidence_, named_, &taken_, &roles_);
    if (!criteo) {
      FindUser();
      FindItem();
      FindEventId();
      if (roles_.user) TellOfNoUsers(*roles_.user);
      if (roles_.user) LookForHeavyUsers(*roles_.user);
    }
    for (size_t c = 0; c < sample_.columns.size(); ++c)
      if (taken_[c] == 0) criteo ? AddCriteoFeature(c) : Judge(c);
    TellOfHidden();
    if (roles_.item) JudgeItem(*roles_.item);
    DropNested();
    TellOfNearLeaks();
    NameFeatures();
    // Parts that the plain form names are guesses where the records are of another form.
    if (roles_.plain_json && (!StaysPlain() || !roles_.missing.empty()))
      return RoleFinder(sample_, std::move(roles_.profiles), evidence_, named_, false).Find();
    return std::move(roles_);
  }

 private:
  const Column& At(size_t c) const { return sample_.columns[c]; }
  const Profile& Of(size_t c) const { return roles_.profiles[c]; }
  bool IsNumeric(size_t c) const { return At(c).numbers() > 0 && At(c).numbers() == Of(c).present; }

  // Records of the plain form have their features below one key, the label beside it, and no key of
  // another name.
  bool LooksPlain() const {
    if (sample_.shape.format != Format::kJson) return false;
    const auto label = sample_.ColumnAt("/label");
    const bool below = std::ranges::any_of(
        sample_.columns, [](const Column& c) { return c.place.starts_with("/features/"); });
    const bool others = std::ranges::any_of(sample_.columns, [](const Column& c) {
      static constexpr std::string_view kPlaces[] = {"/label", "/user", "/item", "/event_id",
                                                     "/timestamp_ms"};
      return !c.place.starts_with("/features/") &&
             std::ranges::find(kPlaces, c.place) == std::end(kPlaces);
    });
    return label && below && !others && IsZeroOrOne(*label);
  }

  bool IsZeroOrOne(size_t c) const { return Of(c).zero_or_one; }

  // A column that a person has named for one part has no other, and none without a name has any.
  void Reserve() {
    for (const std::string& place : {named_.label, named_.user, named_.item, named_.time})
      if (const auto c = place.empty() ? std::nullopt : sample_.ColumnAt(place)) taken_[*c] = 1;
    for (size_t c = 0; c < sample_.columns.size(); ++c) {
      if (!At(c).place.empty()) continue;
      taken_[c] = 1;
      LeaveOut(c, "it has no name");
    }
  }

  // A person, or the plain form, says which column it is.
  bool IsSaid(const std::string& named, std::string_view plain, std::optional<size_t>* part,
              Grounds* grounds) {
    if (named.empty() && !roles_.plain_json) return false;
    *part = sample_.ColumnAt(named.empty() ? plain : named);
    if (*part) taken_[**part] = 1;
    if (*part && !named.empty()) grounds->reason = "it is given";
    if (*part && named.empty()) *grounds = {.guessed = true, .reason = "by its name"};
    return true;
  }

  void FindUser() {
    if (IsSaid(named_.user, "/user", &roles_.user, &roles_.user_grounds)) {
      if (!roles_.user || roles_.user_grounds.guessed) AddUserRivals();
      return;
    }
    // By name the finest is taken: a company has users.
    std::optional<size_t> best;
    const auto rank = [&](size_t c) { return std::pair(!EachHasItsOwn(c), Of(c).distinct); };
    for (size_t c = 0; c < sample_.columns.size(); ++c)
      if (MayBeId(c) && IsUserName(At(c)) && (!best || rank(c) > rank(*best))) best = c;
    std::string reason = "by its name";
    // A column that follows the order of the file has one run a value. Where that order is the
    // time's, it is a day or a batch.
    const bool by_name = best.has_value();
    if (!by_name) best = ClosestId(/*of_one_run=*/false);
    if (!by_name && best)
      reason = fmt::format("a value's records lie close together: {:.2f}; chance makes .63",
                           Of(*best).closeness);
    const bool by_runs = !best && !(roles_.time && Of(roles_.time->column).ordered == 1);
    if (by_runs) best = ClosestId(/*of_one_run=*/true);
    if (by_runs) reason = "the file is grouped by its values";
    if (best) roles_.user_grounds = {.guessed = true, .reason = std::move(reason)};
    if (best) taken_[*best] = 1;
    roles_.user = best;
    AddUserRivals();
  }
  // Other ids that may be the user, also where none is found.
  void AddUserRivals() {
    for (size_t c = 0; c < sample_.columns.size(); ++c)
      if (MayBeUser(c)) roles_.user_grounds.rivals.push_back(At(c).place);
  }

  // The id whose values have their records closest together.
  std::optional<size_t> ClosestId(bool of_one_run) const {
    std::optional<size_t> best;
    for (size_t c = 0; c < sample_.columns.size(); ++c) {
      const bool returns =
          static_cast<double>(Of(c).runs) > 1.05 * static_cast<double>(Of(c).distinct);
      if (returns != of_one_run && ComesBack(c) && Of(c).closeness <= kClose &&
          (!best || Of(c).closeness < Of(*best).closeness))
        best = c;
    }
    return best;
  }
  // True if all records have one of its many values, each of which comes twice on the average.
  bool ComesBack(size_t c) const {
    return MayBeId(c) && Of(c).missing == 0 && !AreNames(Of(c).distinct) &&
           Of(c).distinct * 2 <= Of(c).present;
  }
  // True if a column might be the user: by its name, or as an id whose many values return.
  bool MayBeUser(size_t c) const {
    if (!MayBeId(c) || IsUserName(At(c))) return MayBeId(c);
    const bool many = IsNumeric(c) ? !AreNames(Of(c).distinct) : Of(c).distinct >= kUsersLeast;
    return many && Of(c).distinct * 2 <= Of(c).present && !IsItemName(At(c));
  }

  // Ids are whole numbers or texts.
  bool MayBeId(size_t c) const {
    const Column& column = At(c);
    // Among ids of hexadecimal digits are some like 1e5.
    const bool fractions = column.fractions > column.zeros && column.words <= column.numbers();
    return taken_[c] == 0 && Of(c).present > 0 && !fractions && column.flags == 0 &&
           column.lists == 0 && column.nested == 0 && column.times + column.datetimes == 0 &&
           !IsTimeName(column) && !IsClockName(column) && !SeemsTime(column, Of(c));
  }

  void FindItem() {
    if (IsSaid(named_.item, "/item", &roles_.item, &roles_.item_grounds) || !roles_.user) return;
    // By name, then by values; the one with the most values.
    std::optional<size_t> best;
    std::vector<size_t> able;
    const auto left = std::ranges::count(taken_, uint8_t{0});
    const auto by_name = [&](size_t c) {
      return IsItemName(At(c)) && Of(c).distinct >= kItemsLeast;
    };
    const auto rank = [&](size_t c) { return std::pair(by_name(c), Of(c).distinct); };
    for (size_t c = 0; c < sample_.columns.size(); ++c) {
      if (!MayBeId(c) || !(by_name(c) || IsMetOnce(c, left))) continue;
      able.push_back(c);
      if (!best || rank(c) > rank(*best)) best = c;
    }
    if (!best) return;
    roles_.item_grounds = {
        .guessed = true,
        .reason = by_name(*best)
                      ? "by its name"
                      : "of the ids that a user meets about once it has the most values"};
    for (const size_t c : able)
      if (c != *best) roles_.item_grounds.rivals.push_back(At(c).place);
    roles_.item = best;
    taken_[*best] = 1;
  }
  // Users meet an amount about once, too: a number is an item where nothing else is left.
  bool IsMetOnce(size_t c, ptrdiff_t left) const {
    return !EachHasItsOwn(*roles_.user) && ComesBack(c) && !(IsNumeric(c) && left > 1) &&
           evidence_.MetOnce(*roles_.user, c);
  }

  void TellOfHidden() {
    std::string fields;
    for (size_t c = 0; c < sample_.columns.size(); ++c)
      if (Of(c).hidden) fields += (fields.empty() ? "" : ", ") + config::QuotedYaml(At(c).place);
    if (!fields.empty())
      roles_.warnings.push_back(fmt::format(
          "the noise hides these fields: {}: more records or a larger epsilon", fields));
  }

  void TellOfNoUsers(size_t c) {
    // Noise alone shows some records without one.
    constexpr double kBeyondNoise = 0.2;
    if (Of(c).missing > (evidence_.TellsWords() ? kHeavyShare : kBeyondNoise))
      roles_.warnings.push_back(
          fmt::format("{} of the records have no {}: with unit user none of them is learnt from",
                      PercentText(Of(c).missing), config::QuotedYaml(At(c).place)));
  }

  // A text that stands for no user counts as one person, and so does a robot.
  void LookForHeavyUsers(size_t c) {
    const Column& column = At(c);
    if (column.code.empty()) {  // counts with noise know no user
      const double share = Of(c).top_least * (1 - Of(c).missing);
      if (share > kHeavyShare) TellOfHeavy("at least ", share, "");
      return;
    }
    std::map<uint32_t, uint64_t> records;
    for (const uint32_t code : column.code)
      if (code != 0) ++records[code];
    std::vector<std::pair<double, uint32_t>> heavy;
    std::vector<std::string> none;
    double none_share = 0;
    for (const auto& [code, count] : records) {
      const double share = static_cast<double>(count) / static_cast<double>(sample_.rows);
      const std::string text = column.TextOf(code);
      if (!text.empty() && StandsForNone(text)) {
        none.push_back(text);
        none_share += share;
      } else if (share > kHeavyShare) {
        heavy.emplace_back(share, code);
      }
    }
    if (none_share > kHeavyShare) TellOfNone(column, std::move(none), none_share);
    std::ranges::sort(heavy, std::greater());
    for (const auto& [share, code] : heavy) {
      const auto first = std::ranges::find(column.code, code);
      const std::string place = sample_.PlaceOf(static_cast<uint64_t>(first - column.code.begin()));
      TellOfHeavy("", share, ", the first at " + place);
    }
  }
  void TellOfHeavy(std::string_view bound, double share, std::string_view place) {
    roles_.warnings.push_back(fmt::format(
        "one user has {}{} of the records{}: with unit user it is one person, clipped as "
        "one, with one allowance",
        bound, PercentText(share), place));
  }
  // A number may be a label or a category too, so that a person has to list it.
  void TellOfNone(const Column& column, std::vector<std::string> texts, double share) {
    std::ranges::sort(texts);
    std::string all, unlisted;
    for (const std::string& text : texts) {
      all += (all.empty() ? "" : ", ") + config::QuotedYaml(text);
      if (!roles_.ListAsMissing(text))
        unlisted += (unlisted.empty() ? "" : ", ") + config::QuotedYaml(text);
    }
    roles_.warnings.push_back(fmt::format(
        "{} of the records have the {} {}, who {} to be none: {}", PercentText(share),
        WordFor(texts.size(), "user", "users"), all, WordFor(texts.size(), "seems", "seem"),
        unlisted.empty()
            ? fmt::format("the proposal lists {} as missing, so that these records have no user, "
                          "and none is learnt from with unit user",
                          WordFor(texts.size(), "it", "them"))
            : fmt::format("as it is, {} is one person, clipped as one, with one allowance; leave "
                          "{} empty in such records, or list it in source.{}.missing",
                          texts.size() == 1 ? "it" : unlisted, config::QuotedYaml(column.place),
                          sample_.format_name())));
  }

  bool EachHasItsOwn(size_t c) const {
    constexpr uint64_t kRowsLeast = 100;
    return sample_.rows >= kRowsLeast &&
           static_cast<double>(Of(c).distinct) > kEachItsOwn * static_cast<double>(sample_.rows);
  }

  void FindEventId() {
    for (size_t c = 0; c < sample_.columns.size() && !roles_.event_id; ++c) {
      const bool own = roles_.plain_json ? At(c).place == "/event_id"
                                         : MayBeId(c) && EachHasItsOwn(c) &&
                                               (IsEventIdName(At(c)) || HasIds(At(c)));
      if (!own) continue;
      roles_.event_id = c;
      taken_[c] = 1;
    }
  }

  // Words of a review, a title or an address are no id, though each has its own.
  static bool HasIds(const Column& column) {
    return column.words > 0 && std::ranges::none_of(column.texts, [](const auto& text) {
             return text.second.find(' ') != std::string::npos;
           });
  }

  void Add(size_t c, Kind kind, std::string reason) {
    roles_.features.push_back({.column = c, .kind = kind, .reason = std::move(reason)});
  }
  void LeaveOut(size_t c, std::string_view reason) { roles_.left_out.emplace_back(c, reason); }

  // All of Criteo's columns are features: a line is told by their number.
  void AddCriteoFeature(size_t c) {
    const bool dense = c <= sample_.shape.dense;
    Add(c, dense ? Kind::kDense : Kind::kCategorical, dense ? "a whole number" : "texts");
  }

  void Judge(size_t c) {
    const Column& column = At(c);
    const Profile& profile = Of(c);
    const auto rows = static_cast<double>(sample_.rows);
    if (!IsUtf8(column.name) || column.name.find('\0') != std::string::npos ||
        column.place.size() > 500)
      return LeaveOut(c, "no configuration can name it");
    if (profile.hidden) return LeaveOut(c, "the noise hides it");
    if (column.nested > 0) return LeaveOut(c, "it holds objects, or lists of them");
    if (static_cast<double>(profile.present) < std::max(1.0, kHardlyEver * rows))
      return LeaveOut(c, "hardly any record has it");
    if (profile.distinct == 1 && profile.present == sample_.rows)
      return LeaveOut(
          c, evidence_.TellsWords() ? "it has one value" : "it shows one value beyond the noise");
    if (LeavesOutLeak(c)) return;
    if (column.lists > 0) return Add(c, Kind::kMultiHot, "a list");
    const bool unique =
        static_cast<double>(profile.distinct) > kNearlyAll * static_cast<double>(profile.present);
    if (SeemsTime(column, profile))
      return LeaveOut(c, LeaveTimeOut(sample_, evidence_, c, &roles_));
    if (IsNumeric(c)) return JudgeNumber(c, unique);
    TellOfTexts(c);
    if (unique && profile.present > kTextsMost)
      return LeaveOut(c, "nearly every record has a value of its own");
    if (sample_.shape.format == Format::kCsv && sample_.shape.separator != '|' &&
        static_cast<double>(column.barred) > 0.05 * static_cast<double>(profile.present) &&
        profile.elements < profile.distinct)
      return Add(c, Kind::kMultiHot, "texts with bars between values that return");
    Add(c, Kind::kCategorical, column.words > 0 ? "texts" : "flags");
  }

  // A text that stands for none would be a name like the others. A number cannot be read from any
  // text, so that amounts with texts among them are names too.
  void TellOfTexts(size_t c) {
    const Column& column = At(c);
    if (!evidence_.TellsWords() || column.words == 0) return;
    if (HasWrittenNumbers(column))
      roles_.warnings.push_back(
          fmt::format("{} has numbers with commas or other signs, which are read as texts: without "
                      "them (12.50, "
                      "1234) they are amounts",
                      config::QuotedYaml(column.place)));
    const TextsForNone none = TextsForNoneOf(column);
    bool listed = true;
    for (const auto& [code, text] : none.texts) listed &= roles_.ListAsMissing(text);
    const uint64_t others = column.words - none.records;
    const bool amounts = others < column.numbers() && c != roles_.item && !IsIdName(column) &&
                         !AreNames(Of(c).distinct - none.texts.size());
    std::string texts;
    if (none.records > 0)
      texts = fmt::format("{} in {}", none.Quoted(), Counted(none.records, "record"));
    if (amounts && others > 0)
      texts += fmt::format("{}{} in {}", texts.empty() ? "" : ", ",
                           texts.empty() ? "texts" : "other texts", Counted(others, "record"));
    if (texts.empty()) return;
    const bool one = none.texts.size() == 1;
    const std::string done =
        listed ? fmt::format("the proposal lists {} as missing", one ? "it" : "them")
               : "what is a label too is not listed as missing";
    roles_.warnings.push_back(
        config::QuotedYaml(column.place) +
        (amounts
             ? fmt::format(" has numbers, and {}: a number cannot be read from a text, so that "
                           "the column is one of texts. Without a value in such records it is "
                           "an amount{}{}",
                           texts, none.records > 0 ? "; " : "", none.records > 0 ? done : "")
             : fmt::format(" has {}, which stand{} for none: {}", texts, one ? "s" : "", done)));
  }

  // An item has a weight of its own too, unless only labels of 1 have one. A user has none: it
  // would tell of the user.
  void JudgeItem(size_t c) {
    if (LeavesOutLeak(c)) return;
    TellOfTexts(c);
    Add(c, Kind::kCategorical, "the item itself");
  }

  // True if a column looks like what is known only with the label: it is no feature.
  bool LeavesOutLeak(size_t c) {
    if (roles_.label) foretold_[c] = evidence_.ForetoldAlone(*roles_.label, c);
    roles_.too_few_to_find_leaks |= foretold_[c] && !foretold_[c]->has_auc;
    const std::string leak = WhyLeak(c);
    if (leak.empty()) return false;
    roles_.warnings.push_back(fmt::format("{} is left out{}: {} If not, name it in schema.features",
                                          config::QuotedYaml(At(c).place),
                                          roles_.item == c ? " as a feature" : "", leak));
    LeaveOut(c, leak);
    return true;
  }

  // Says why a column looks like what is known only with the label; "" if it does not.
  std::string WhyLeak(size_t c) const {
    const std::optional<Foretold>& foretold = foretold_[c];
    if (!foretold || !foretold->has_auc) return "";
    if (foretold->by_presence >= kForetellsAlone)
      return fmt::format("it is filled in where the label is {}{}: is it known only afterwards?",
                         foretold->filled_is_one ? "" : "not ", foretold->label);
    if (foretold->telling && (foretold->is_always_one || foretold->telling->share > kForetellsMost))
      return TellingText(c) + ": is it known only afterwards?";
    if (foretold->by_value < kForetellsAlone) return "";
    return fmt::format("it alone foretells the label (AUC {:.3f}): is it known only afterwards?",
                       foretold->by_value);
  }

  // "220 of the 220 records where "state" is "captured" have label 1".
  std::string TellingText(size_t c) const {
    const Foretold& foretold = *foretold_[c];
    return fmt::format("{} of the {} where {} {} have label {}",
                       WithThousands(static_cast<uint64_t>(foretold.telling->ones)),
                       Counted(static_cast<uint64_t>(foretold.telling->records), "record"),
                       config::QuotedYaml(At(c).place), foretold.telling->where, foretold.label);
  }

  // A feature that foretells the label nearly alone, or by one value, stays.
  void TellOfNearLeaks() {
    for (const FeatureRole& feature : roles_.features) {
      const Foretold foretold = foretold_[feature.column].value_or(Foretold());
      const std::string name = config::QuotedYaml(At(feature.column).place);
      const auto tell = [&](const std::string& what) {
        roles_.warnings.push_back(fmt::format(
            "{}: is it known only afterwards? Then take it out of schema.features", what));
      };
      const bool by_presence = foretold.by_presence >= kForetellsByPresence;
      const bool by_value = foretold.by_value >= kForetellsByValue;
      if (foretold.telling)
        tell(TellingText(feature.column));
      else if (by_presence || by_value)
        tell(fmt::format("{}{}{} foretells the label (AUC {:.2f})", by_presence ? "whether " : "",
                         name, by_presence ? " is filled in" : " alone",
                         by_presence ? foretold.by_presence : foretold.by_value));
    }
  }

  void JudgeNumber(size_t c, bool unique) {
    const Column& column = At(c);
    if (column.fractions > 0) return Add(c, Kind::kDense, "numbers");
    if (unique && Of(c).ordered >= kCounting && sample_.rows > kTextsMost)
      return LeaveOut(c, "it counts the records");
    if (AreNames(Of(c).distinct))
      return Add(c, Kind::kCategorical, "whole numbers, few enough to be names");
    const auto losses = roles_.label ? evidence_.Losses(*roles_.label, c) : std::nullopt;
    const bool decided = losses && std::abs(losses->first - losses->second) > kChanceOfNames;
    if (!decided && IsIdName(column)) return Add(c, Kind::kCategorical, "whole numbers, called id");
    if (!unique && losses && losses->first < losses->second)
      return Add(c, Kind::kCategorical,
                 fmt::format("whole numbers that foretell the label better as names ({:.4f} nats) "
                             "than as amounts ({:.4f})",
                             losses->first, losses->second));
    Add(c, Kind::kDense, "whole numbers");
  }

  // A place inside of another one's value cannot be read. A record that has a value where others
  // have an object is read without what lies inside; so the outer feature is left out.
  void DropNested() {
    if (sample_.shape.format != Format::kJson) return;
    std::vector<size_t> parts;
    if (roles_.label) parts.push_back(roles_.label->column);
    if (roles_.time) parts.push_back(roles_.time->column);
    for (const auto& part : {roles_.user, roles_.item, roles_.event_id})
      if (part) parts.push_back(*part);
    const size_t own = parts.size();
    for (const FeatureRole& feature : roles_.features) parts.push_back(feature.column);
    const auto inside = [&](size_t inner, size_t outer) {
      return At(inner).place.starts_with(At(outer).place + '/');
    };
    std::vector<FeatureRole> kept;
    for (FeatureRole& feature : roles_.features) {
      const size_t c = feature.column;
      bool met = std::ranges::any_of(parts, [&](size_t part) { return inside(part, c); });
      for (size_t i = 0; i < own; ++i) met |= inside(c, parts[i]);
      if (met)
        LeaveOut(c, "some records have an object there, and some a value");
      else
        kept.push_back(std::move(feature));
    }
    roles_.features = std::move(kept);
  }

  void NameFeatures() {
    std::map<std::string, size_t> uses;
    for (const FeatureRole& feature : roles_.features) ++uses[At(feature.column).name];
    std::set<std::string> names;
    for (FeatureRole& feature : roles_.features) {
      const Column& column = At(feature.column);
      std::string name = column.name;
      if (name.empty() || uses[name] > 1) {
        name = column.place.substr(column.place.starts_with('/') ? 1 : 0);
        std::ranges::replace(name, '/', '.');
        if (name.empty()) name = "unnamed";
      }
      for (int i = 2; names.contains(name); ++i)
        name = fmt::format("{}_{}", column.name.empty() ? "unnamed" : column.name, i);
      names.insert(name);
      feature.name = std::move(name);
    }
  }

  // The plain form takes numbers without quotes, and texts and whole numbers as categories.
  bool StaysPlain() const {
    for (const FeatureRole& feature : roles_.features) {
      const Column& column = At(feature.column);
      const bool dense = feature.kind == Kind::kDense;
      if (dense && (column.quoted > 0 || column.flags > 0)) return false;
      if (!dense && column.fractions + column.flags > 0) return false;
      // A key of the plain form that lies deeper is none.
      if (column.place.find('/', std::string_view("/features/").size()) != std::string::npos)
        return false;
    }
    const auto lies_at = [&](const std::optional<size_t>& part, std::string_view place) {
      return !part || At(*part).place == place;
    };
    const bool timed = !roles_.time || (At(roles_.time->column).place == "/timestamp_ms" &&
                                        roles_.time->unit == event::TimeUnit::kMilliseconds);
    const auto label = roles_.label ? std::optional(roles_.label->column) : std::nullopt;
    return timed && lies_at(label, "/label") && lies_at(roles_.user, "/user") &&
           lies_at(roles_.item, "/item") && lies_at(roles_.event_id, "/event_id");
  }

  const Sample& sample_;
  const Evidence& evidence_;
  const Named& named_;
  const bool may_be_plain_;
  std::vector<uint8_t> taken_;                     // by column
  std::vector<std::optional<Foretold>> foretold_;  // by column
  Roles roles_;
};

}  // namespace

bool Roles::ListAsMissing(const std::string& text) {
  const auto is_text = [&](const auto& value) { return value.first == text; };
  if (event::ReadNumber(text) || (label && std::ranges::any_of(label->values, is_text)))
    return false;
  if (std::ranges::find(missing, text) == missing.end()) missing.push_back(text);
  return true;
}

std::vector<NamedPart> NamedParts(const Roles& roles) {
  std::vector<NamedPart> parts;
  if (roles.label) parts.push_back({"label", roles.label->column, &roles.label->grounds});
  if (roles.user) parts.push_back({"user", *roles.user, &roles.user_grounds});
  if (roles.item) parts.push_back({"item", *roles.item, &roles.item_grounds});
  if (roles.time) parts.push_back({"time", roles.time->column, &roles.time->grounds});
  return parts;
}

Roles FindRoles(const Sample& sample, std::vector<Profile> profiles, const Evidence& evidence,
                const Named& named) {
  return RoleFinder(sample, std::move(profiles), evidence, named, true).Find();
}

Roles FindRoles(const Sample& sample, const Named& named) {
  std::vector<Profile> profiles;
  for (const Column& column : sample.columns) profiles.push_back(ProfileOf(column, sample.rows));
  return FindRoles(sample, std::move(profiles), *RawEvidence(sample), named);
}

}  // namespace tacit::inspect

// The form that a store notes of a model. The notation is base/bytes.h's.
//     form := "tacit.form":string version:u32 numbers:u32 (name:string transform:u8)*numbers
//             crosses:u32 name:string*crosses fixed:string
//     version := 1
// `transform` is 0 for a number as it is, 1 for its signed logarithm.
#include "wiring/plans/model_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/text.h"

namespace tacit::wiring {
namespace {

constexpr std::string_view kName = "tacit.form";
constexpr uint32_t kVersion = 1;

const event::DenseFeature* NumberNamed(const ModelForm& form, std::string_view name) {
  const auto found = std::ranges::find(form.numbers, name, &event::DenseFeature::name);
  return found == form.numbers.end() ? nullptr : &*found;
}

bool IsCross(const ModelForm& form, std::string_view name) {
  return std::ranges::find(form.crosses, name) != form.crosses.end();
}

std::optional<uint32_t> TableNamed(const RowSpace& space, std::string_view name) {
  const auto tables = space.tables();
  const auto found = std::ranges::find(tables, name, &RowSpace::Table::name);
  if (found == tables.end()) return std::nullopt;
  return static_cast<uint32_t>(found - tables.begin());
}

// "feature 'C3'", "number 'I1'", "cross 'A*B'".
std::string Called(const ModelForm& form, std::string_view name) {
  const std::string_view kind = NumberNamed(form, name) != nullptr ? "number"
                                : IsCross(form, name)              ? "cross"
                                                                   : "feature";
  return fmt::format("{} '{}'", kind, name);
}

// The tables of two models, compared.
class Tables {
 public:
  Tables(const ModelInputs& was, const ModelInputs& is) : was_(was), is_(is) {}

  store::GrownModel Compare() {
    const auto tables = is_.rows.space.tables();
    // Crosses come after the columns that they are of.
    for (uint32_t t = 0; t < tables.size(); ++t) grown_.tables.push_back(Find(t));
    for (const RowSpace::Table& table : was_.rows.space.tables())
      if (!TableNamed(is_.rows.space, table.name))
        grown_.lost.push_back(Called(was_.form, table.name) +
                              " is gone, with what was learnt of it");
    return std::move(grown_);
  }

 private:
  using Table = store::GrownModel::Table;

  Table Find(uint32_t t) {
    const RowSpace::Table& is = is_.rows.space.tables()[t];
    const auto from = TableNamed(was_.rows.space, is.name);
    if (!from) {
      grown_.gained.push_back(fmt::format("{}, of {}, is new and begins at 0",
                                          Called(is_.form, is.name), Counted(is.rows, "row")));
      return {};
    }
    const RowSpace::Table& was = was_.rows.space.tables()[*from];
    if (const std::string why = WhyNot(t, *from); !why.empty()) {
      grown_.lost.push_back(fmt::format("{} begins anew: {}", Called(is_.form, is.name), why));
      return {};
    }
    Table table{.from = from};
    if (was.rows != is.rows) {
      table.spread = static_cast<uint32_t>((is.rows - 1) / (was.rows - 1));
      grown_.gained.push_back(
          fmt::format("{} has {} where it had {}: each becomes {}, which begin as it was",
                      Called(is_.form, is.name), Counted(is.rows, "row"), WithThousands(was.rows),
                      table.spread));
    }
    if (was.dim != is.dim) {
      table.rewrite = is_.mover(was.dim, is.dim);
      TellWidth(was, is, was_.rows.initial_scale[*from] > 0);
    }
    return table;
  }

  void TellWidth(const RowSpace::Table& was, const RowSpace::Table& is, bool drawn) {
    if (is.dim > was.dim) {
      grown_.gained.push_back(fmt::format(
          "{} has rows of {} where they had {}: the new ones begin {}, and predictions are as "
          "before",
          Called(is_.form, is.name), Counted(is.dim, "number"), was.dim,
          drawn ? "as in a row that was never written, without weight in the network" : "at 0"));
    } else {
      grown_.lost.push_back(fmt::format("{} keeps the first {} of each row and loses {}",
                                        Called(is_.form, is.name), Counted(is.dim, "number"),
                                        was.dim - is.dim));
    }
  }

  // The reason for which the table's rows are of no use to the model; empty if they are.
  std::string WhyNot(uint32_t t, uint32_t from) const {
    const RowSpace::Table &is = is_.rows.space.tables()[t], &was = was_.rows.space.tables()[from];
    const event::DenseFeature* const number = NumberNamed(is_.form, is.name);
    const event::DenseFeature* const number_before = NumberNamed(was_.form, was.name);
    if ((number == nullptr) != (number_before == nullptr))
      return fmt::format("it was {}", number == nullptr ? "a number" : "a category");
    if (number != nullptr && number->transform != number_before->transform)
      return "another function is taken of the number";
    // The form fixes the optimiser, and the width what that keeps beside a row.
    if (is.dim != was.dim && !is_.mover)
      return fmt::format("its rows have {} and had {}", Counted(is.dim, "number"), was.dim);
    if (is.dim == was.dim && is_.rows.state_floats[t] != was_.rows.state_floats[from])
      return "its optimiser keeps other numbers beside a row";
    if (IsCross(is_.form, is.name)) return WhyNotCross(is, was);
    if (is.rows == was.rows || (number == nullptr && Multiple(is.rows, was.rows))) return "";
    return fmt::format("a table of {} can become one of {}, {} and so on, not of {}",
                       Counted(was.rows, "row"), WithThousands(2 * was.rows - 1),
                       WithThousands(3 * was.rows - 2), WithThousands(is.rows));
  }

  // Its values are numbered by those of its columns.
  std::string WhyNotCross(const RowSpace::Table& is, const RowSpace::Table& was) const {
    if (!IsCross(was_.form, was.name)) return "it was no cross";
    if (is.rows != was.rows) return "one of its columns has another number of values";
    const size_t star = is.name.find('*');
    for (const std::string& part : {is.name.substr(0, star), is.name.substr(star + 1)}) {
      const auto table = TableNamed(is_.rows.space, part);
      if (!table || *table >= grown_.tables.size() || !grown_.tables[*table].from ||
          grown_.tables[*table].spread > 1)
        return fmt::format("its column '{}' is not what it was", part);
    }
    return "";
  }

  static bool Multiple(uint64_t rows, uint64_t before) {
    return before > 1 && rows > before && (rows - 1) % (before - 1) == 0 &&
           (rows - 1) / (before - 1) <= UINT32_MAX;
  }

  const ModelInputs &was_, &is_;
  store::GrownModel grown_;
};

}  // namespace

std::string ModelForm::Encode() const {
  ByteWriter writer;
  writer.PutString(kName).Put(kVersion).Put(static_cast<uint32_t>(numbers.size()));
  for (const event::DenseFeature& number : numbers)
    writer.PutString(number.name)
        .Put(static_cast<uint8_t>(number.transform == event::DenseTransform::kSignedLog1p));
  writer.Put(static_cast<uint32_t>(crosses.size()));
  for (const std::string& name : crosses) writer.PutString(name);
  writer.PutString(fixed);
  return std::move(writer).Take();
}

Result<ModelForm> ModelForm::Decode(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.GetString() != kName || reader.Get<uint32_t>() != kVersion)
    return Fail(ErrorCode::kRefused, "it was a model of another kind, or of another version");
  ModelForm form;
  const auto numbers = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < numbers && reader.ok(); ++i) {
    std::string name(reader.GetString());
    const bool logarithm = reader.Get<uint8_t>() != 0;
    form.numbers.push_back({std::move(name), logarithm ? event::DenseTransform::kSignedLog1p
                                                       : event::DenseTransform::kIdentity});
  }
  const auto crosses = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < crosses && reader.ok(); ++i)
    form.crosses.emplace_back(reader.GetString());
  form.fixed = reader.GetString();
  if (!reader.at_end())
    return Fail(ErrorCode::kCorruption, "the note of the model's inputs is damaged");
  return form;
}

Result<store::GrownModel> GrowTables(const ModelInputs& was, const ModelInputs& is) {
  if (was.form.fixed != is.form.fixed)
    return Fail(ErrorCode::kRefused, fmt::format("it had {} and would have {}, which makes another "
                                                 "model: train it under another id",
                                                 was.form.fixed, is.form.fixed));
  return Tables(was, is).Compare();
}

}  // namespace tacit::wiring

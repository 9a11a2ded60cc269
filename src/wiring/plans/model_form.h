#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "store/model_growth.h"

// Models that grow (store/model_growth.h): what a store must note of a model, and what becomes of
// its features when the configuration changes.
namespace tacit::wiring {

// The part of a model's inputs that its tables do not tell. A value.
struct ModelForm {
  std::vector<event::DenseFeature> numbers;  // in their order
  std::vector<std::string> crosses;          // names of tables whose values are pairs: "A*B"
  std::string fixed;                         // what cannot change, in words

  // The stored form (model_form.cc).
  std::string Encode() const;
  // kRefused: the form of another kind of model, or none. kCorruption: damaged bytes.
  static Result<ModelForm> Decode(std::string_view bytes);
};

// A model's tables and inputs.
struct ModelInputs {
  const store::RowLayout& rows;
  const ModelForm& form;
  // Makes what turns rows of `before` numbers into rows of `now`; if null, rows have one number.
  std::function<store::RewriteRow(uint32_t before, uint32_t now)> mover = {};
};

// Finds what becomes of each table, by its name. A feature that is new or cannot be continued
// begins at 0; a table may have a multiple of the rows that it had, the one for missing values
// aside, and rows of more or fewer numbers. New numbers of a row begin as those of a row that was
// never written, because most rows of a table never were. Fills in `tables`, `gained` and `lost`.
// Numbers and crosses that have tables are known by the forms. kRefused: what cannot change has
// changed.
Result<store::GrownModel> GrowTables(const ModelInputs& was, const ModelInputs& is);

}  // namespace tacit::wiring

#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "model/linear/columns.h"
#include "store/types/delta.h"

// The columns that a linear learner makes of a schema.
namespace tacit::train {

// The crosses named "A*B", of two features of the schema. Returns kInvalidArgument, with the name
// and the reason, for one that cannot be.
Result<std::vector<model::linear::CrossColumn>> LinearCrosses(const event::FeatureSchema& schema,
                                                              std::span<const std::string> names);

// The columns of a schema: its categories with the rows of the network's tables, its numbers, and
// crosses.
model::linear::Columns LinearColumns(const event::FeatureSchema& schema,
                                     std::vector<model::linear::CrossColumn> crosses = {});

// The layout of a linear learner's rows in the store: all weights begin at 0.
store::RowLayout LinearRowLayout(const model::linear::Columns& columns);

}  // namespace tacit::train

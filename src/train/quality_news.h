#pragma once

#include <string>

#include "train/progress.h"

// Warnings for the operator of a learner's predictions, over a day or another stretch, `when`.
namespace tacit::train {

// Warns of predictions that a constant would have made better, or where the most popular items
// would have been the better answer. Returns true if it has.
bool TellBelowBaseline(const std::string& learner, const std::string& when,
                       const QualityPoint& predicted);
// Warns where hardly any prediction was wrong.
void TellTooGood(const std::string& learner, const std::string& when,
                 const PredictedFigures& predicted);

}  // namespace tacit::train

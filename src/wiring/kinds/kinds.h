#pragma once

#include "wiring/plans/model_plan.h"

// The rows of the table of learner kinds, one a file.
namespace tacit::wiring {

LearnerKind ClickKind();
LearnerKind SequenceKind();
LearnerKind TransitionsKind();
LearnerKind LinearKind();

}  // namespace tacit::wiring

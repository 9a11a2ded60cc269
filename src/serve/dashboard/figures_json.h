#pragma once

#include <string>

#include "serve/routes/figures.h"

namespace tacit::serve {

// Appends the figures that carry no noise, as a JSON object.
void AppendFigures(const OperatorFigures& figures, std::string* out);

}  // namespace tacit::serve

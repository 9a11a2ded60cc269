#pragma once

#include <boost/json.hpp>

#include "privacy/spending.h"

namespace tacit::app {

// A spending as google/differential-privacy's dp_accounting 0.6.0 knows it: JSON objects whose keys
// are the fields of DpEvent.to_named_tuple, so that DpEvent.from_named_tuple makes the event again.
//   the Gaussian queries surely taken part in -> GaussianDpEvent (one, of their joint noise)
//   a sampled setting -> SelfComposedDpEvent(PoissonSampledDpEvent(GaussianDpEvent), count)
//   rho -> ZCDpEvent;  unbounded -> NonPrivateDpEvent;  nothing -> NoOpDpEvent
// together in one ComposedDpEvent where there are more than one.
boost::json::object DpEventJson(const privacy::Spending& spending);

}  // namespace tacit::app

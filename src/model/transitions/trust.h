#pragma once

#include <span>
#include <vector>

namespace tacit::model::transitions {

// Returns how far each released sum of a table is to be believed, where `expected` is what the
// prior says without it: the share of (sum - expected) that is the buckets' own and not noise of
// this deviation. Buckets that expect nothing have 0; without noise all others have 1.
//
// It is the mean of a hierarchical model, each number of which is weighed by how likely it makes
// all sums together: a bucket differs from what was expected with a chance of .03 to 1, and then by
// expected times a normal number of deviation .1 to 12.8. Of these deviations a twice as large one
// is half as likely beforehand. So a table in which nothing stands out of the noise is left alone,
// and one in which a few buckets do keeps them. Made of released numbers alone.
std::vector<double> BucketTrusts(std::span<const float> sums, std::span<const double> expected,
                                 double deviation);

}  // namespace tacit::model::transitions

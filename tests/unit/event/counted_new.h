#pragma once

#include <cstddef>

namespace tacit::test {

// The number of times this thread has asked operator new for memory, in a program that is linked
// with this.
size_t Allocations();

}  // namespace tacit::test

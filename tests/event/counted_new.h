#pragma once

#include <cstddef>

namespace tacit::test {

// How often this thread has asked operator new for memory, in a program that is linked with this.
size_t Allocations();

}  // namespace tacit::test

#pragma once

#include <functional>

namespace tacit::console {

// Gives each of the file descriptors 0 to 2 that the parent closed to a file in which that stream
// fails. Otherwise the next file that is opened gets the number, and what is printed lands in the
// store. A write past a limit on file sizes fails from now on, as on a full disk. Call it first in
// main.
void HoldStandardStreams();

// Runs the body of a program whose output is its answer, and returns the body's exit code; or, if
// standard output or standard error took less than was printed (a full disk), kExitFailed with a
// message. So does an exception that the body lets out. Ends what is printed: nothing may be
// printed afterwards.
int RunWithOutput(const char* program, const std::function<int()>& body);

}  // namespace tacit::console

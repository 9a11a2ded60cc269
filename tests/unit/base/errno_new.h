#pragma once

namespace tacit::test {

// With `does`, memory that this thread is given from now on leaves an errno behind, as malloc does
// where it meets a limit and finds memory elsewhere.
void LetNewLeaveErrno(bool does);

}  // namespace tacit::test

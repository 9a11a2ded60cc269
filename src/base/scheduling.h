#pragma once

// How the system's scheduler treats the calling thread.
namespace tacit {

// Puts the thread under SCHED_IDLE: it runs when no other thread wants the core. Returns false when
// the system refuses.
bool SetIdlePriority();

// Asks for short turns: once it is woken, the thread need not wait until another of the same
// priority has had a turn of milliseconds. It gets no more of the processor for that. For threads
// that sleep most of the time and are waited for. Returns false where the system refuses; kernels
// before 6.12 accept it without any effect.
bool AskForShortTurns();

}  // namespace tacit

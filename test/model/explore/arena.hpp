// What operator new gives while a virtual thread runs.
//
// explore.A1. Addresses depend only on what the thread itself has allocated before, never on the schedule, so comparing pointers is
//     reproducible and equal states stay equal. By code: each thread has a heap of its own, which only grows.
// explore.A2. Memory is not handed out twice in one execution: a late access meets the end of the object (explore.M4), and ABA
//     arises only from the pools of the code under test, as in the product.               model/use_after_free, model/double_free
// explore.A3. All of it vanishes with the execution; what was not freed by its end is a leak.    model/leak
#pragma once

#include <cstddef>

namespace explore::arena {

void reset();
void* allocate(int thread, std::size_t bytes, std::size_t alignment);
bool owns(const void* p);
bool owns_stack(const void* p);
// The block's size, or 0 with `why` set: freed before, or not a block.
std::size_t release(void* p, const char*& why);
// The number of blocks alive; one of them.
std::size_t alive(const void*& example, std::size_t& bytes);
// The stack of a virtual thread, with a guard page below.
char* stack(int thread);
inline constexpr std::size_t stack_size = 256 * 1024;

}  // namespace explore::arena

// SPDX-License-Identifier: BSD-3-Clause
// Stacks, and the switch between them.
#include "express/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace ulc::express {
namespace {

struct Fiber {
    ucontext_t context{};
    void (*run)(void*) = nullptr;
    void* argument = nullptr;
    void* map = MAP_FAILED;  ///< guard page and stack
    std::size_t map_bytes = 0;
    const void* stack = nullptr;  ///< lowest byte
    std::size_t stack_bytes = 0;
    void* shadow = nullptr;  ///< handle of a sanitizer
};

Fiber* left = nullptr;      ///< the fiber of the last jump
Fiber* starting = nullptr;  ///< a fiber that has not run yet; makecontext() passes no pointers

// ---------------------------------------------------------------- sanitizers

#ifdef __SANITIZE_ADDRESS__
void before_jump(Fiber& from, Fiber& to, bool last) {
    __sanitizer_start_switch_fiber(last ? nullptr : &from.shadow, to.stack, to.stack_bytes);
}
/// Runs in the fiber that was jumped to. `shadow`: of the one that it left. Learns the bounds of
/// the first stack.
void after_jump(void* shadow) {
    __sanitizer_finish_switch_fiber(shadow, &left->stack, &left->stack_bytes);
}
#elif defined(__SANITIZE_THREAD__)
void before_jump(Fiber& /*from*/, Fiber& to, bool /*last*/) {
    __tsan_switch_to_fiber(to.shadow, 0);
}
void after_jump(void* /*shadow*/) {}
#else
void before_jump(Fiber& /*from*/, Fiber& /*to*/, bool /*last*/) {}
void after_jump(void* /*shadow*/) {}
#endif

// ---------------------------------------------------------------- the switch

void begin() {
    after_jump(nullptr);
    Fiber& self = *starting;
    self.run(self.argument);
}

void drop(void* /*self*/, void* context) {
    auto* const fiber = static_cast<Fiber*>(context);
#ifdef __SANITIZE_THREAD__
    if (fiber->run != nullptr) __tsan_destroy_fiber(fiber->shadow);
#endif
    if (fiber->map != MAP_FAILED) munmap(fiber->map, fiber->map_bytes);
    delete fiber;
}

bool give_stack(Fiber& fiber) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    fiber.map_bytes = page + kStackBytes;
    fiber.map = mmap(nullptr, fiber.map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (fiber.map == MAP_FAILED || mprotect(fiber.map, page, PROT_NONE) != 0) return false;
    fiber.stack = static_cast<char*>(fiber.map) + page;
    fiber.stack_bytes = kStackBytes;
    return true;
}

void* make(void* self, void (*run)(void*), void* argument) {
    auto* const fiber = new (std::nothrow) Fiber;
    if (fiber == nullptr) return nullptr;
    fiber->run = run;
    fiber->argument = argument;
    if (run == nullptr) {
#ifdef __SANITIZE_THREAD__
        fiber->shadow = __tsan_get_current_fiber();
#endif
        return fiber;
    }
#ifdef __SANITIZE_THREAD__
    fiber->shadow = __tsan_create_fiber(0);
#endif
    if (getcontext(&fiber->context) != 0 || !give_stack(*fiber)) {
        drop(self, fiber);
        return nullptr;
    }
    fiber->context.uc_stack.ss_sp = const_cast<void*>(fiber->stack);
    fiber->context.uc_stack.ss_size = fiber->stack_bytes;
    makecontext(&fiber->context, begin, 0);
    return fiber;
}

void jump(void* /*self*/, void* from, void* to, bool last) {
    auto& here = *static_cast<Fiber*>(from);
    auto& there = *static_cast<Fiber*>(to);
    left = &here;
    starting = &there;
    before_jump(here, there, last);
    swapcontext(&here.context, &there.context);
    after_jump(here.shadow);
}

}  // namespace

Switch fiber_switch() noexcept { return {nullptr, make, jump, drop}; }

}  // namespace ulc::express

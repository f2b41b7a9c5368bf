// SPDX-License-Identifier: BSD-3-Clause
// The processor's hint that a loop waits for memory to change.
#pragma once

namespace ulc {

/// Lets the other thread of this core run, and saves power, for some tens of cycles. No effect on
/// processors without such an instruction.
inline void pause_core() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace ulc

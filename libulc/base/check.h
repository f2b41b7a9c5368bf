// SPDX-License-Identifier: BSD-3-Clause
// Executable invariants, on in release too. Only for what our own code guarantees: bytes from the
// wire, a client or a device are validated and counted instead, never checked here.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace ulc {

[[noreturn, gnu::cold]] inline void check_failed(const char* what, const char* file,
                                                 int line) noexcept {
    std::fprintf(stderr, "ulc: invariant broken: %s (%s:%d); this is a bug, please report it\n",
                 what, file, line);
    std::abort();
}

}  // namespace ulc

#define ULC_CHECK(condition)                                     \
    do {                                                         \
        if (__builtin_expect(!(condition), 0)) {                 \
            ::ulc::check_failed(#condition, __FILE__, __LINE__); \
        }                                                        \
    } while (false)

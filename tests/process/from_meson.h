// SPDX-License-Identifier: BSD-3-Clause
// Reads the variables in which meson names the programs of its build. A test that is started by
// hand without them ends before its first case, with a sentence.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace ulc::test {

/// Returns the value of a variable that `meson test` sets. Ends the program if it is missing.
inline const char* from_meson(const char* variable) noexcept {
    const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): one thread
    if (value != nullptr && *value != '\0') return value;
    constexpr std::string_view kPrefix = "process_";  // process_kill is the test kill
    const char* test = program_invocation_short_name;
    if (std::string_view(test).starts_with(kPrefix)) test += kPrefix.size();
    std::fprintf(stderr, "%s is not set; run: meson test -C build/release %s\n", variable, test);
    std::_Exit(1);
}

}  // namespace ulc::test

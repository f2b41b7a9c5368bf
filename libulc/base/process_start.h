// SPDX-License-Identifier: BSD-3-Clause
// When a process started. With its number this names one process; a number alone passes to another
// one when its process has ended.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ulc {

/// Returns field 22 of /proc/PID/stat: clock ticks after boot. 0: no process of that number is
/// visible here.
[[nodiscard]] inline std::uint64_t process_start_ticks(std::uint32_t pid) noexcept {
    constexpr int kState = 3;  // the field behind the name
    constexpr int kStarted = 22;
    char text[1024] = "";
    std::snprintf(text, sizeof text, "/proc/%u/stat", unsigned{pid});
    std::FILE* file = std::fopen(text, "re");
    if (file == nullptr) return 0;
    const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    text[length] = '\0';
    const char* at = std::strrchr(text, ')');  // the name may hold anything
    for (int field = kState; at != nullptr && field <= kStarted; ++field)
        at = std::strchr(at + 1, ' ');
    return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

}  // namespace ulc

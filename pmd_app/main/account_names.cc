// SPDX-License-Identifier: BSD-3-Clause
#include "main/account_names.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <charconv>
#include <vector>

namespace ulc::daemon {
namespace {

constexpr std::size_t kEntryBytes = 1024;         // of the name service, to begin with
constexpr std::size_t kEntryBytesMax = 1U << 20;  // a group of very many members

template <typename Id>
std::optional<Id> number_of(const std::string& text) {
    Id id{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, id);
    // The last number means "no user" to the kernel.
    if (error != std::errc{} || stop != end || id == static_cast<Id>(-1)) return std::nullopt;
    return id;
}

/// Calls look_up(entry, buffer, bytes, found) with a larger buffer until the entry fits.
template <typename Entry, typename LookUp>
bool find_entry(Entry& entry, const LookUp& look_up) {
    for (std::size_t bytes = kEntryBytes; bytes <= kEntryBytesMax; bytes *= 2) {
        std::vector<char> buffer(bytes);
        Entry* found = nullptr;
        if (look_up(&entry, buffer.data(), bytes, &found) != ERANGE) return found != nullptr;
    }
    return false;
}

}  // namespace

std::optional<uid_t> user_id(const std::string& text) {
    if (const auto number = number_of<uid_t>(text)) return number;
    passwd entry{};
    const bool found =
        find_entry(entry, [&](auto... rest) { return getpwnam_r(text.c_str(), rest...); });
    return found ? std::optional(entry.pw_uid) : std::nullopt;
}

std::optional<gid_t> group_id(const std::string& text) {
    if (const auto number = number_of<gid_t>(text)) return number;
    group entry{};
    const bool found =
        find_entry(entry, [&](auto... rest) { return getgrnam_r(text.c_str(), rest...); });
    return found ? std::optional(entry.gr_gid) : std::nullopt;
}

}  // namespace ulc::daemon

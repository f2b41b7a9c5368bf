// SPDX-License-Identifier: BSD-3-Clause
// Users and groups as a configuration names them: by name or by number.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace ulc::daemon {

/// Returns the user of that name or number; nullopt if no user has the name. A number needs no
/// user.
[[nodiscard]] std::optional<uid_t> user_id(const std::string& text);
/// Returns the group of that name or number; nullopt if no group has the name.
[[nodiscard]] std::optional<gid_t> group_id(const std::string& text);

}  // namespace ulc::daemon

// SPDX-License-Identifier: BSD-3-Clause
// This file finds the project's other programs and libraries: in the folder of this program, in its
// build tree, or in PATH.
#pragma once

#include <string>
#include <vector>

namespace ulc::tools {

/// Folder of the running program, without a trailing slash.
[[nodiscard]] std::string own_folder();

/// Returns the full path of an executable of this project, empty if there is none. Order:
/// `variable` of the environment, the folder of this program (an installation), `build_folder` of
/// the build tree of this program, PATH.
[[nodiscard]] std::string find_program(const std::string& name, const std::string& build_folder,
                                       const char* variable);

/// Finds a program as execvp() does: a name with a slash is a path, another is looked for in PATH.
/// Empty if nothing executable is there.
[[nodiscard]] std::string find_in_path(const std::string& name);

/// Returns why find_in_path() finds nothing, and what to do; empty: it finds the program.
[[nodiscard]] std::string why_no_program(const std::string& name);

/// Returns the full path of a shared library of this project, empty if there is none. Order: build
/// tree, ../lib from the folder of this program, the folders of the loader.
[[nodiscard]] std::string find_library(const std::string& file, const std::string& build_folder);

/// "HOME=…" → value, or "".
[[nodiscard]] std::string environment_of(const char* name);

}  // namespace ulc::tools

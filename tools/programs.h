// Where the project's other programs and libraries are: beside this one, in its build folder, or in PATH.
#pragma once

#include <string>
#include <vector>

namespace ulc::tools {

/// Folder of the running program, without a trailing slash.
[[nodiscard]] std::string own_folder();

/// Full path of an executable of this project, empty if there is none. Looked for, in this order: `variable` of the
/// environment, beside us (an installation), `build_folder` of the build tree that we were built in, PATH.
[[nodiscard]] std::string find_program(const std::string& name, const std::string& build_folder,
                                       const char* variable);

/// As execvp() would: a name with a slash is a path, another is looked for in PATH. Empty if nothing executable is there.
[[nodiscard]] std::string find_in_path(const std::string& name);

/// Full path of a shared library of this project, empty if none: build tree, ../lib beside us, the loader's folders.
[[nodiscard]] std::string find_library(const std::string& file, const std::string& build_folder);

/// "HOME=…" → value, or "".
[[nodiscard]] std::string environment_of(const char* name);

}  // namespace ulc::tools

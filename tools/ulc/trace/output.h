// SPDX-License-Identifier: BSD-3-Clause
// This file writes what was made of a trace: captures and timelines hold payloads of all users of
// an engine, so the file that they go to is readable by its owner alone. Used by `ulc trace` and
// `ulc dump`.
#pragma once

#include <cstdio>
#include <string>

namespace ulc::tools {

/// The file that a command writes, or standard output.
class Output {
public:
    Output() = default;
    ~Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    /// Makes the file with mode 0600, or empties one of this user and takes the rights of others
    /// from it; "-": standard output. Follows no symbolic link, except those of this process's
    /// descriptors (/dev/stdout, /dev/fd/N). False: `error` names the fault and what to do.
    [[nodiscard]] bool open(const std::string& path, std::string* error);
    /// Returns false, with an error, if not everything is written: a full disk, a closed pipe.
    [[nodiscard]] bool write(const std::string& text, std::string* error);

private:
    [[nodiscard]] std::string failure(const std::string& reason) const;
    std::FILE* file_ = nullptr;
    std::string path_;
};

}  // namespace ulc::tools

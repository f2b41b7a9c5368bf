// SPDX-License-Identifier: BSD-3-Clause
// The report of `ulc doctor --report FILE`: what a bug report needs, as text, without secrets.
#pragma once

#include <string>

#include "tools/ulc/doctor/doctor.h"

namespace ulc::tools {

/// Returns "ok", "warn" or "fail".
[[nodiscard]] const char* word_of(Level level);

/// Returns the findings as lines for a terminal.
[[nodiscard]] std::string text_of(const Findings& findings);

/// Returns the text with each secret of ULC replaced by "(removed)": secrets of memif, hexadecimal
/// numbers of 128 bits and more (nonces, keys), and the last three octets of MAC addresses.
[[nodiscard]] std::string without_secrets(std::string text);

/// Returns the report: program, machine, findings, network devices, environment, configuration,
/// counters of the engine at `engine` and the end of the engines' log. root: "" or, for tests, a
/// folder with sys/, proc/ and etc/; with a root the log is left out.
[[nodiscard]] std::string report_text(const std::string& root, const std::string& engine,
                                      const Findings& findings);

/// Writes a new file that its owner alone may read. Returns "" or a sentence that says what failed
/// and what to do.
[[nodiscard]] std::string write_report(const std::string& path, const std::string& text);

}  // namespace ulc::tools

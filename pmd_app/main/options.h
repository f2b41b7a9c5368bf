// SPDX-License-Identifier: BSD-3-Clause
// Options of an engine, from options.def: command line and TOML configuration to checked values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "main/attach/attach_server.h"
#include "main/node.h"
#include "main/params/params.h"

namespace ulc::daemon {

namespace option_type {
using u32 = std::uint32_t;
using nanos = Nanos;
using text = std::string;
using list = std::vector<std::string>;
using flag = bool;
}  // namespace option_type

struct Options {
#define ULC_OPTION(flag, field, type, default_value, unit, minimum, maximum, help) \
    option_type::type field{};
#include "main/options.def"
#undef ULC_OPTION
    EngineParams params;  ///< as param_texts sets them
};

/// One --device: a port, which is a separate net.
struct NetOption {
    std::string name;    ///< its name for clients; the place in the list unless the user chose one
    std::string device;  ///< as in dpdk/device.h
};
/// Parses "lab:0000:03:00.0" → lab, 0000:03:00.0. A name starts with a letter, continues with
/// letters, digits, '.', '_' and '-', and ends at the first colon; a PCI address is never one.
[[nodiscard]] std::vector<NetOption> nets_of(const std::vector<std::string>& devices);

/// Parses the command line of ulc-engine, and the file that --config names. Returns false if the
/// program must end with `status` (0 after --help or --version, 2 after an error, which has been
/// printed with the advice).
bool parse_daemon_options(int argc, const char* const* argv, Options& out, int& status);

/// Parses `devices`, separated by ';', and a string of options as on the command line. Errors:
/// kInvalid; `why` names the option and the advice.
Err parse_embedded_options(const char* devices, const char* options, Options& out,
                           std::string& why);

/// Checks relations between options. Returns an empty string if all are correct, else one sentence
/// with the advice.
[[nodiscard]] std::string check_relations(const Options& options);

[[nodiscard]] NodeOptions node_options_of(const Options& options);
[[nodiscard]] AttachOptions attach_options_of(const Options& options);
[[nodiscard]] abi::RegionSizes region_sizes_of(const Options& options);

/// Returns the table as Markdown, for docs.
[[nodiscard]] std::string options_as_markdown();

}  // namespace ulc::daemon

// Options of an engine, from options.def: command line and TOML configuration to checked values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "main/attach/attach_server.h"
#include "main/node.h"

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
};

/// One --device: a port, which is a net of its own.
struct NetOption {
    std::string name;    ///< what clients say; the place in the list unless the user chose one
    std::string device;  ///< as of dpdk/device.h
};
/// "lab:0000:03:00.0" → lab, 0000:03:00.0. A name starts with a letter, goes on with letters, digits, '.', '_' and '-', and
/// ends at the first colon; a PCI address is never one.
[[nodiscard]] std::vector<NetOption> nets_of(const std::vector<std::string>& devices);

/// The command line of ulc-engine, and the file that --config names. False: the program ends now with `status` (0 after
/// --help or --version, 2 after an error, which has been printed with what to do).
bool parse_daemon_options(int argc, const char* const* argv, Options& out, int& status);

/// `devices`, separated by ';', and a string of options as on the command line. Errors: kInvalid; why says which option and what to do.
Err parse_embedded_options(const char* devices, const char* options, Options& out,
                           std::string& why);

/// Relations between options. Empty: all well; else one sentence with what to do.
[[nodiscard]] std::string check_relations(const Options& options);

[[nodiscard]] NodeOptions node_options_of(const Options& options);
[[nodiscard]] AttachOptions attach_options_of(const Options& options);
[[nodiscard]] abi::RegionSizes region_sizes_of(const Options& options);

/// The table as Markdown, for docs.
[[nodiscard]] std::string options_as_markdown();

}  // namespace ulc::daemon

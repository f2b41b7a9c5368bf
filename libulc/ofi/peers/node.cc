// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/peers/node.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "abi/attach.h"
#include "launcher/launcher.h"
#include "ofi/hash.h"

namespace ulc::ofi {
namespace {

/// Distinguishes this machine from others, and from itself after a restart.
std::string boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
}

/// Returns the node of this process in a cluster on one machine, as libulc chooses it.
std::uint64_t number_of_node() {
    const char* text = std::getenv("ULC_NODES");  // NOLINT(concurrency-mt-unsafe): read only
    const std::uint64_t nodes = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
    const auto rank = launcher::rank_in_environment();
    return nodes != 0 && rank ? *rank % nodes : 0;
}

}  // namespace

std::string engine_name(std::uint64_t node) {
    const char* given = std::getenv("ULC_ENGINE");  // NOLINT(concurrency-mt-unsafe): read only
    std::string name = given == nullptr || *given == '\0' ? abi::kDefaultSocketPath : given;
    const std::string number = std::to_string(node);
    for (std::size_t at = name.find("%n"); at != std::string::npos; at = name.find("%n", at))
        name.replace(at, 2, number);
    if (name.starts_with("embedded:")) return name;
    if (const std::size_t net = name.find('#'); net != std::string::npos) name.resize(net);
    return name;
}

std::uint64_t node_of_process() {
    const std::string name = engine_name(number_of_node());
    struct stat socket {};
    if (name.starts_with("embedded:") || ::stat(name.c_str(), &socket) != 0) return 0;
    const std::string text =
        boot_id() + " " + std::to_string(socket.st_dev) + " " + std::to_string(socket.st_ino);
    return hash_of(text.data(), text.size());
}

}  // namespace ulc::ofi

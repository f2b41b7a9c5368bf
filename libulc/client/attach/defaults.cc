// SPDX-License-Identifier: BSD-3-Clause
#include "client/attach/defaults.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "client/error_text.h"
#include "client/ulc.h"
#include "launcher/launcher.h"

namespace ulc::client {
namespace {

constexpr char kNodeMark[] = "%n";
constexpr std::uint64_t kNodesMax = 65534;
constexpr std::int64_t kLauncherSecondsMax = 60;

/// Reads 32 hexadecimal digits as 16 bytes.
bool parse_nonce(const char* text, unsigned char* out) {
    if (std::strlen(text) != 32) return false;
    for (int i = 0; i < 16; ++i) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        char* end = nullptr;
        out[i] = static_cast<unsigned char>(std::strtoul(digits, &end, 16));
        if (end != digits + 2) return false;
    }
    return true;
}

bool ask_launcher(JoinPlace& place, Nanos timeout) {
    launcher::Place found;
    std::string reason;
    const auto seconds = std::clamp<std::int64_t>(timeout / kSecond, 1, kLauncherSecondsMax);
    switch (launcher::find_place(found, static_cast<unsigned>(seconds), launcher::Asker::kProgram,
                                 reason)) {
        case launcher::Outcome::kFound:
            break;
        case launcher::Outcome::kFailed:
            set_last_error("%s", reason.c_str());
            return false;
        case launcher::Outcome::kNoLauncher:
            set_last_error(
                "job, rank or size is missing; start with `ulc run`, mpirun, mpiexec or srun, or "
                "set ULC_JOB, ULC_RANK and ULC_SIZE");
            return false;
    }
    const bool all_its = place.rank == ULC_RANK_ANY && place.size == 0;
    if (place.job.empty()) place.job = found.job;
    if (place.rank == ULC_RANK_ANY) place.rank = found.rank;
    if (place.size == 0) place.size = found.size;
    if (all_its && !place.has_nonce && found.nonce) {
        std::memcpy(place.nonce, found.nonce->data(), sizeof place.nonce);
        place.has_nonce = true;
    }
    return true;
}

}  // namespace

const char* env(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
    return value != nullptr && *value != '\0' ? value : nullptr;
}

bool env_number(const char* name, std::uint64_t most, std::uint64_t& out) {
    const char* value = env(name);
    if (value == nullptr) return false;
    char* end = nullptr;
    const unsigned long long number = std::strtoull(value, &end, 10);
    if (*end != '\0' || number > most) return false;
    out = number;
    return true;
}

bool complete_place(JoinPlace& place, Nanos timeout) {
    std::uint64_t number = 0;
    if (const char* job = env("ULC_JOB"); place.job.empty() && job != nullptr) place.job = job;
    if (place.rank == ULC_RANK_ANY && env_number("ULC_RANK", ULC_RANK_ANY - 1U, number))
        place.rank = static_cast<std::uint16_t>(number);
    if (place.size == 0 && env_number("ULC_SIZE", ULC_RANK_ANY - 1U, number))
        place.size = static_cast<std::uint16_t>(number);
    if (const char* given = env("ULC_NONCE"); given != nullptr) {
        if (!parse_nonce(given, place.nonce)) {
            set_last_error("ULC_NONCE is not 32 hexadecimal digits");
            return false;
        }
        place.has_nonce = true;
    }
    const bool complete = !place.job.empty() && place.rank != ULC_RANK_ANY && place.size != 0;
    return complete || ask_launcher(place, timeout);
}

bool choose_node(std::string& engine) {
    std::size_t at = engine.find(kNodeMark);
    std::uint64_t nodes = 0;
    if (at == std::string::npos || !env_number("ULC_NODES", kNodesMax, nodes) || nodes == 0)
        return true;
    const auto rank = launcher::rank_in_environment();
    if (!rank) {
        set_last_error(
            "%s is one engine a node, and this process has no rank to choose by; start it with "
            "mpirun, mpiexec or srun, or set ULC_RANK",
            engine.c_str());
        return false;
    }
    // An engine inside a process is a node: two processes cannot be the same one.
    if (engine.starts_with("embedded:") && *rank >= nodes) {
        set_last_error(
            "rank %u has no node: each process is one, and there are %llu; use ulc cluster "
            "--embedded --nodes %u or more",
            *rank, static_cast<unsigned long long>(nodes), *rank + 1);
        return false;
    }
    const std::string node = std::to_string(*rank % nodes);
    for (; at != std::string::npos; at = engine.find(kNodeMark, at + node.size()))
        engine.replace(at, std::strlen(kNodeMark), node);
    return true;
}

}  // namespace ulc::client

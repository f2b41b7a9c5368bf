// SPDX-License-Identifier: BSD-3-Clause
#include "client/attach/defaults.h"

#include <fcntl.h>
#include <unistd.h>

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
constexpr std::uint64_t kSizeMax = ULC_RANK_ANY - 1U;
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

/// Reads a variable if it is set. Returns false if it has another value than `least` … `most`.
bool take_number(const char* name, std::uint64_t least, std::uint64_t most, std::uint16_t& out) {
    std::uint64_t number = 0;
    if (env(name) == nullptr) return true;
    if (!env_number(name, most, number) || number < least) {
        set_last_error("%s=%s is no number from %llu to %llu; set it to one, or unset it", name,
                       env(name), static_cast<unsigned long long>(least),
                       static_cast<unsigned long long>(most));
        return false;
    }
    out = static_cast<std::uint16_t>(number);
    return true;
}

bool ask_launcher(JoinPlace& place, Nanos timeout) {
    launcher::Place found;
    found.addresses = place.own_addresses;
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
    place.rank_0_addresses = found.addresses;
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

Nanos patience_of_debugging() noexcept {
    constexpr Nanos kDebugging = 600 * kSecond;
    if (const char* wanted = env("ULC_DEBUG"); wanted != nullptr)
        return std::strcmp(wanted, "0") == 0 ? 0 : kDebugging;
    // The field is a number near the start of the file: "TracerPid:\t0".
    char text[2048] = {};
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t octets = read(file, text, sizeof text - 1);
    close(file);
    const char* tracer = octets > 0 ? std::strstr(text, "TracerPid:") : nullptr;
    return tracer != nullptr && std::strtoul(tracer + 10, nullptr, 10) != 0 ? kDebugging : 0;
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
    if (const char* job = env("ULC_JOB"); place.job.empty() && job != nullptr) place.job = job;
    if (place.rank == ULC_RANK_ANY && !take_number("ULC_RANK", 0, kSizeMax - 1, place.rank))
        return false;
    if (place.size == 0 && !take_number("ULC_SIZE", 1, kSizeMax, place.size)) return false;
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
    std::uint16_t nodes = 0;
    if (at == std::string::npos) return true;
    if (!take_number("ULC_NODES", 1, kNodesMax, nodes)) return false;
    if (nodes == 0) return true;
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
            "rank %u has no node: each process is one, and there are %u; use ulc cluster "
            "--embedded --nodes %u or more",
            *rank, nodes, *rank + 1);
        return false;
    }
    const std::string node = std::to_string(*rank % nodes);
    for (; at != std::string::npos; at = engine.find(kNodeMark, at + node.size()))
        engine.replace(at, std::strlen(kNodeMark), node);
    return true;
}

}  // namespace ulc::client

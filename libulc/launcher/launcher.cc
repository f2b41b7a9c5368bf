// SPDX-License-Identifier: BSD-3-Clause
#include "launcher/launcher.h"

#include <dlfcn.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/fnv.h"
#include "launcher/ways.h"

namespace ulc::launcher {
namespace {

constexpr unsigned kRankMax = 65533;
constexpr unsigned kSizeMax = 65534;

std::string hash_text(const std::string& text) {
    std::uint64_t hash = kFnvBasis;
    for (const char letter : text)
        hash = fnv1a(hash, static_cast<unsigned char>(letter));
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    return digits;
}

Outcome by_hydra(Place& place, unsigned timeout_seconds, Asker asker, std::string& reason) {
    if (::dlsym(RTLD_DEFAULT, "PMPI_Init") == nullptr)
        return by_pmi1(place, timeout_seconds, PmiOwner::kThisLibrary, reason);
    if (asker == Asker::kStartOfMpi) return by_pmi1(place, timeout_seconds, PmiOwner::kMpi, reason);
    reason =
        "the connection to mpiexec belongs to the MPI of this program; set ULC_JOB, ULC_RANK and "
        "ULC_SIZE";
    return Outcome::kFailed;
}

Outcome ask(Place& place, unsigned timeout_seconds, Asker asker, std::string& reason) {
    if (variable("PMIX_NAMESPACE") != nullptr && variable("PMIX_RANK") != nullptr)
        return by_pmix(place, timeout_seconds, reason);
    // Hydra alone sets the last one; Slurm's PMI_FD speaks another protocol.
    if (variable("PMI_RANK") != nullptr && variable("PMI_FD") != nullptr &&
        variable("MPI_LOCALNRANKS") != nullptr)
        return by_hydra(place, timeout_seconds, asker, reason);
    if (variable("SLURM_PROCID") != nullptr && variable("SLURM_STEP_ID") != nullptr)
        return by_slurm(place, reason);
    return Outcome::kNoLauncher;
}

}  // namespace

const char* variable(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
    return value != nullptr && *value != '\0' ? value : nullptr;
}

std::optional<unsigned> number_in(const char* name, unsigned most) {
    const char* value = variable(name);
    if (value == nullptr || *value < '0' || *value > '9') return std::nullopt;
    char* end = nullptr;
    const unsigned long long number = std::strtoull(value, &end, 10);
    if (*end != '\0' || number > most) return std::nullopt;
    return static_cast<unsigned>(number);
}

std::string job_name(const char* prefix, const std::string& id) {
    std::string name = std::string(prefix) + "-" + id;
    const bool plain = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127; });
    if (plain && name.size() <= kJobNameMax) return name;
    return std::string(prefix) + "-" + hash_text(id);
}

std::optional<Nonce> random_nonce() {
    Nonce nonce{};
    if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
        return std::nullopt;
    return nonce;
}

std::string text_of(const Nonce& nonce) {
    std::string text;
    for (const unsigned char byte : nonce) {
        text += "0123456789abcdef"[byte >> 4U];
        text += "0123456789abcdef"[byte & 15U];
    }
    return text;
}

std::string published(const Nonce& nonce, const std::string& addresses) {
    return text_of(nonce) + (addresses.empty() ? "" : "," + addresses);
}

bool read_published(const std::string& text, Place& place) {
    const std::size_t comma = std::min(text.find(','), text.size());
    place.nonce = nonce_of(text.substr(0, comma));
    place.addresses = text.substr(std::min(comma + 1, text.size()));
    return place.nonce.has_value();
}

std::optional<Nonce> nonce_of(const std::string& text) {
    Nonce nonce{};
    if (text.size() != 2 * nonce.size()) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char letter = text[i];
        unsigned digit = 0;
        if (letter >= '0' && letter <= '9') {
            digit = static_cast<unsigned>(letter - '0');
        } else if (letter >= 'a' && letter <= 'f') {
            digit = static_cast<unsigned>(letter - 'a') + 10;
        } else {
            return std::nullopt;
        }
        nonce[i / 2] = static_cast<unsigned char>((unsigned{nonce[i / 2]} << 4U) | digit);
    }
    return nonce;
}

std::optional<unsigned> rank_in_environment() {
    for (const char* name :
         {"ULC_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
        if (const auto rank = number_in(name, kRankMax)) return rank;
    }
    return std::nullopt;
}

Outcome by_slurm(Place& place, std::string& reason) {
    const auto rank = number_in("SLURM_PROCID", kRankMax);
    auto size = number_in("SLURM_STEP_NUM_TASKS", kSizeMax);
    if (!size) size = number_in("SLURM_NTASKS", kSizeMax);
    const char* job = variable("SLURM_JOB_ID");
    if (!rank || !size || job == nullptr || *rank >= *size) {
        reason =
            "Slurm set SLURM_PROCID, but SLURM_JOB_ID or SLURM_STEP_NUM_TASKS does not fit it; "
            "start the program with srun";
        return Outcome::kFailed;
    }
    place.job = job_name("slurm", std::string(job) + "." + variable("SLURM_STEP_ID"));
    place.rank = static_cast<std::uint16_t>(*rank);
    place.size = static_cast<std::uint16_t>(*size);
    place.nonce.reset();
    place.addresses.clear();
    return Outcome::kFound;
}

Outcome find_place(Place& place, unsigned timeout_seconds, Asker asker, std::string& reason) {
    // A launcher may be asked once in a process: Hydra closes its connection, and PMIx keeps what
    // it was given.
    static std::mutex guard;
    static std::optional<Place> found;
    const std::lock_guard<std::mutex> hold(guard);
    if (!found) {
        Place asked;
        asked.addresses = place.addresses;
        const Outcome outcome = ask(asked, timeout_seconds, asker, reason);
        if (outcome != Outcome::kFound) return outcome;
        found = asked;
    }
    place = *found;
    return Outcome::kFound;
}

}  // namespace ulc::launcher

// SPDX-License-Identifier: BSD-3-Clause
// The ways to a place, one a launcher; each is tried where the environment shows its launcher.
// Used by launcher.cc and its test.
#pragma once

#include <string>

#include "launcher/launcher.h"

namespace ulc::launcher {

/// Most letters of a job's name (ulc_join()).
inline constexpr std::size_t kJobNameMax = 64;

/// Returns the variable's value; nullptr if it is not set or empty.
[[nodiscard]] const char* variable(const char* name);
/// Returns the variable as a number within [0, most]; nullopt if it is not one.
[[nodiscard]] std::optional<unsigned> number_in(const char* name, unsigned most);

/// Returns "prefix-id"; an id that is too long or has other letters than a job's name may have is
/// replaced by its hash.
[[nodiscard]] std::string job_name(const char* prefix, const std::string& id);

/// Returns a random nonce; nullopt if the kernel gave no random bytes.
[[nodiscard]] std::optional<Nonce> random_nonce();
[[nodiscard]] std::string text_of(const Nonce& nonce);
[[nodiscard]] std::optional<Nonce> nonce_of(const std::string& text);
/// Returns the word of rank 0 for all others: nonce and addresses.
[[nodiscard]] std::string published(const Nonce& nonce, const std::string& addresses);
/// Reads that word. False: it has no nonce.
[[nodiscard]] bool read_published(const std::string& text, Place& place);

/// True if this build can talk to a PMIx server.
[[nodiscard]] bool pmix_is_built_in();
[[nodiscard]] Outcome by_pmix(Place& place, unsigned timeout_seconds, std::string& reason);
/// The owner of the connection to Hydra.
enum class PmiOwner : std::uint8_t {
    kThisLibrary,
    kMpi,  ///< we are a guest between two of its questions: no greeting, no good-bye
};
[[nodiscard]] Outcome by_pmi1(Place& place, unsigned timeout_seconds, PmiOwner owner,
                              std::string& reason);
[[nodiscard]] Outcome by_slurm(Place& place, std::string& reason);

}  // namespace ulc::launcher

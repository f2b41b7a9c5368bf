// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/peers/job.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "launcher/launcher.h"
#include "ofi/hash.h"
#include "ofi/peers/strangers.h"

namespace ulc::ofi {
namespace {

constexpr char kMagic[4] = {'U', 'L', 'C', 'J'};
constexpr std::uint16_t kVersion = 3;
constexpr unsigned kLauncherSecondsMax = 30;
constexpr unsigned long kSizeMax = 65534;
/// Letters left by ".ofi." and a number in the 64 that a job's name may have.
constexpr std::size_t kNameMax = 48;

const char* variable(const char* name) noexcept {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
    return value != nullptr && *value != '\0' ? value : nullptr;
}

std::optional<std::uint16_t> number_in(const char* name) noexcept {
    const char* text = variable(name);
    if (text == nullptr) return std::nullopt;
    char* end = nullptr;
    const unsigned long value = std::strtoul(text, &end, 10);
    if (*end != '\0' || value > kSizeMax) return std::nullopt;
    return static_cast<std::uint16_t>(value);
}

std::optional<launcher::Nonce> nonce_in(const char* text) noexcept {
    launcher::Nonce nonce{};
    if (std::strlen(text) != 2 * nonce.size()) return std::nullopt;
    for (std::size_t i = 0; i < nonce.size(); ++i) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        char* end = nullptr;
        nonce[i] = static_cast<unsigned char>(std::strtoul(digits, &end, 16));
        if (end != digits + 2) return std::nullopt;
    }
    return nonce;
}

std::optional<Job> find(std::string& reason) {
    launcher::Place place;
    const char* name = variable("ULC_JOB");
    for (const char* number : {"ULC_RANK", "ULC_SIZE"}) {
        if (variable(number) == nullptr || number_in(number)) continue;
        reason = std::string(number) + "=" + variable(number) + " is no number up to " +
                 std::to_string(kSizeMax) + "; set it to one, or unset it";
        return std::nullopt;
    }
    const auto rank = number_in("ULC_RANK");
    const auto size = number_in("ULC_SIZE");
    if (name != nullptr && rank && size) {
        place.job = name;
        place.rank = *rank;
        place.size = *size;
        if (const char* nonce = variable("ULC_NONCE"); nonce != nullptr) {
            place.nonce = nonce_in(nonce);
            if (!place.nonce) {
                reason = "ULC_NONCE is not 32 hexadecimal digits";
                return std::nullopt;
            }
        }
    } else if (launcher::find_place(place, kLauncherSecondsMax, launcher::Asker::kStartOfMpi,
                                    reason) != launcher::Outcome::kFound) {
        if (reason.empty())
            reason = "no launcher shows a job; start with mpirun, srun or `ulc run`";
        return std::nullopt;
    }
    if (place.rank >= place.size) {
        reason = "rank " + std::to_string(place.rank) + " does not exist in a job of " +
                 std::to_string(place.size) + "; correct ULC_RANK or ULC_SIZE";
        return std::nullopt;
    }
    return Job(place.job, place.rank, place.size, place.nonce);
}

}  // namespace

Job::Job(std::string name, std::uint16_t rank, std::uint16_t size,
         const std::optional<std::array<unsigned char, 16>>& nonce)
    : name_(std::move(name)), rank_(rank), size_(size), nonce_(nonce) {
    name_hash_ = hash_of(name_.data(), name_.size());
    // A fold of 32 bits shows nothing of use of the 128 bits of a nonce.
    const std::uint64_t life = nonce ? hash_of(nonce->data(), nonce->size()) : 0;
    life_ = static_cast<std::uint32_t>(life ^ (life >> 32U));
}

const Job* Job::of_process(std::string* reason) {
    static std::mutex guard;
    static std::optional<Job> found;
    const std::lock_guard hold(guard);
    std::string why;
    if (!found) found = find(why);
    if (!found && reason != nullptr) *reason = why;
    return found ? &*found : nullptr;
}

bool Job::is_shown() noexcept {
    if (variable("ULC_JOB") != nullptr)
        return variable("ULC_RANK") != nullptr && variable("ULC_SIZE") != nullptr;
    return launcher::rank_in_environment().has_value();
}

std::uint16_t Job::ranks_here() const noexcept {
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
        if (const auto ranks = number_in(name)) return *ranks;
    return size_;
}

std::string Job::name_for(std::uint32_t endpoint) const {
    char hashed[17] = "";
    std::snprintf(hashed, sizeof hashed, "%016llx", static_cast<unsigned long long>(name_hash_));
    return (name_.size() <= kNameMax ? name_ : hashed) + ".ofi." + std::to_string(endpoint);
}

Address Job::address_of(std::uint16_t rank, std::uint32_t endpoint) const noexcept {
    AddressFields fields{};
    std::memcpy(fields.magic, kMagic, sizeof kMagic);
    fields.version = kVersion;
    fields.rank = rank;
    fields.endpoint = endpoint;
    fields.job = name_hash_;
    fields.life = life_;
    Address address;
    std::memcpy(address.data(), &fields, sizeof fields);
    return address;
}

const char* Job::objection(const Address& address) const noexcept {
    const AddressFields fields = fields_of(address);
    if (std::memcmp(fields.magic, kMagic, sizeof kMagic) != 0) return "it is no address of ULC";
    if (fields.version != kVersion) return "it is of another version of the provider";
    if (fields.job != name_hash_) {
        const bool has_link = std::any_of(fields.link, fields.link + sizeof fields.link,
                                          [](unsigned char byte) { return byte != 0; });
        return has_link ? nullptr : kNoLinks;
    }
    if (fields.life != life_) return "its endpoint was in an earlier job of the same name";
    if (fields.rank >= size_) return "its rank is not in the job";
    return nullptr;
}

bool Job::has_member(const Address& address, std::uint32_t endpoint) const noexcept {
    const AddressFields fields = fields_of(address);
    return fields.job == name_hash_ && fields.life == life_ && fields.endpoint == endpoint;
}

Address Job::identity_of(Address address) noexcept {
    std::fill(address.begin() + offsetof(AddressFields, meeting_ip), address.end(), 0);
    return address;
}

AddressFields Job::fields_of(const Address& address) noexcept {
    AddressFields fields;
    std::memcpy(&fields, address.data(), sizeof fields);
    return fields;
}

}  // namespace ulc::ofi

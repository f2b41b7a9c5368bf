// SPDX-License-Identifier: BSD-3-Clause
// The place as a PMIx server knows it: Open MPI's mpirun, prte, and srun with its PMIx plugin.
//
// libpmix is loaded when a process asks, so that libulc does not link it. The connection is closed
// before we return: a process that ends with an open one makes mpirun report a failure. Where an
// MPI is loaded it is closed at exit instead, because MPI_Init() fails on a connection that was
// closed and opened again.
#include "launcher/ways.h"

#ifdef ULC_HAVE_PMIX

#include <dlfcn.h>
#include <pmix.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

namespace ulc::launcher {
namespace {

constexpr char kNonceKey[] = "ulc.nonce";
constexpr auto kAskAgain = std::chrono::milliseconds(1);
constexpr char kLibrary[] = "libpmix.so.2";  ///< the ABI of PMIx 3 to 5

/// The functions of libpmix that are called here.
struct Library {
    decltype(&::PMIx_Init) init = nullptr;
    decltype(&::PMIx_Get) get = nullptr;
    decltype(&::PMIx_Put) put = nullptr;
    decltype(&::PMIx_Commit) commit = nullptr;
    decltype(&::PMIx_Finalize) finalize = nullptr;
    decltype(&::PMIx_Error_string) error_text = nullptr;

    [[nodiscard]] bool load(std::string& reason) {
        // Never closed: its progress thread may run in code that would be unmapped.
        void* handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle == nullptr) {
            reason = std::string(kLibrary) + " cannot be loaded (" + ::dlerror() +
                     "); install libpmix2, or set ULC_JOB, ULC_RANK and ULC_SIZE";
            return false;
        }
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
                ::dlsym(handle, name));
            if (function == nullptr) reason = std::string(kLibrary) + " has no " + name;
            return function != nullptr;
        };
        return find(init, "PMIx_Init") && find(get, "PMIx_Get") && find(put, "PMIx_Put") &&
               find(commit, "PMIx_Commit") && find(finalize, "PMIx_Finalize") &&
               find(error_text, "PMIx_Error_string");
    }
};

struct Free {
    void operator()(pmix_value_t* value) const {
        if (value->type == PMIX_STRING) std::free(value->data.string);
        std::free(value);
    }
};
using Value = std::unique_ptr<pmix_value_t, Free>;

/// One connection to the server.
class Session {
public:
    explicit Session(const Library& library) : pmix_(library) {}
    ~Session() {
        if (!open_) return;
        static decltype(&::PMIx_Finalize) finalize = pmix_.finalize;
        if (::dlsym(RTLD_DEFAULT, "PMPI_Init") == nullptr ||
            std::atexit([] { static_cast<void>(finalize(nullptr, 0)); }) != 0)
            static_cast<void>(finalize(nullptr, 0));
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] bool connect(std::string& reason) {
        const pmix_status_t status = pmix_.init(&self_, nullptr, 0);
        open_ = status == PMIX_SUCCESS;
        return open_ || fail(reason, "PMIx_Init", status);
    }

    [[nodiscard]] bool job_size(std::uint32_t& size, std::string& reason) {
        pmix_proc_t all = self_;
        all.rank = PMIX_RANK_WILDCARD;
        pmix_value_t* raw = nullptr;
        const pmix_status_t status = pmix_.get(&all, PMIX_JOB_SIZE, nullptr, 0, &raw);
        const Value value(raw);
        if (status != PMIX_SUCCESS || value == nullptr || value->type != PMIX_UINT32)
            return fail(reason, "asking for the size of the job", status);
        size = value->data.uint32;
        return true;
    }

    [[nodiscard]] bool publish(std::string text, std::string& reason) {
        pmix_value_t value{};
        value.type = PMIX_STRING;
        value.data.string = text.data();
        pmix_status_t status = pmix_.put(PMIX_GLOBAL, kNonceKey, &value);
        if (status == PMIX_SUCCESS) status = pmix_.commit();
        return status == PMIX_SUCCESS || fail(reason, "publishing the nonce", status);
    }

    /// Gets the nonce of rank 0, and its addresses.
    [[nodiscard]] bool ask_rank_0(Place& place, unsigned timeout_seconds, std::string& reason) {
        pmix_proc_t first = self_;
        first.rank = 0;
        pmix_info_t limit{};
        std::strncpy(limit.key, PMIX_TIMEOUT, sizeof limit.key - 1);
        limit.value.type = PMIX_INT;
        limit.value.data.integer = static_cast<int>(timeout_seconds);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
        pmix_value_t* raw = nullptr;
        pmix_status_t status = pmix_.get(&first, kNonceKey, &limit, 1, &raw);
        // The server waits for a rank that is connected; one that is not yet has nothing, it says.
        while (status == PMIX_ERR_NOT_FOUND && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(kAskAgain);
            status = pmix_.get(&first, kNonceKey, &limit, 1, &raw);
        }
        const Value value(raw);
        if (status != PMIX_SUCCESS || value == nullptr || value->type != PMIX_STRING)
            return fail(reason, "asking for the nonce of rank 0", status);
        return read_published(value->data.string, place) ||
               fail(reason, "reading the nonce of rank 0", PMIX_ERR_BAD_PARAM);
    }

    [[nodiscard]] const pmix_proc_t& self() const { return self_; }

private:
    [[nodiscard]] bool fail(std::string& reason, const char* what, pmix_status_t status) const {
        reason = std::string("PMIx: ") + what + " failed: " + pmix_.error_text(status) +
                 "; set ULC_JOB, ULC_RANK and ULC_SIZE to do without";
        return false;
    }

    const Library& pmix_;
    pmix_proc_t self_{};
    bool open_ = false;
};

}  // namespace

bool pmix_is_built_in() { return true; }

Outcome by_pmix(Place& place, unsigned timeout_seconds, std::string& reason) {
    Library library;
    if (!library.load(reason)) return Outcome::kFailed;
    Session session(library);
    std::uint32_t size = 0;
    if (!session.connect(reason) || !session.job_size(size, reason)) return Outcome::kFailed;
    const pmix_proc_t& self = session.self();
    if (size == 0 || size > 65534 || self.rank >= size) {
        reason = "PMIx: rank " + std::to_string(self.rank) + " of " + std::to_string(size) +
                 " is outside of what a job can have (65534 ranks)";
        return Outcome::kFailed;
    }
    if (self.rank == 0) {
        const auto made = random_nonce();
        if (!made) {
            reason = "no random bytes for a nonce";
            return Outcome::kFailed;
        }
        place.nonce = *made;
        if (size > 1 && !session.publish(published(*made, place.addresses), reason))
            return Outcome::kFailed;
    } else if (!session.ask_rank_0(place, timeout_seconds, reason)) {
        return Outcome::kFailed;
    }
    place.job = job_name("pmix", {self.nspace, ::strnlen(self.nspace, PMIX_MAX_NSLEN)});
    place.rank = static_cast<std::uint16_t>(self.rank);
    place.size = static_cast<std::uint16_t>(size);
    return Outcome::kFound;
}

}  // namespace ulc::launcher

#else

namespace ulc::launcher {

bool pmix_is_built_in() { return false; }

Outcome by_pmix(Place& /*place*/, unsigned /*timeout_seconds*/, std::string& reason) {
    reason =
        "this libulc was built without PMIx; build it with libpmix-dev, or set ULC_JOB, ULC_RANK "
        "and ULC_SIZE";
    return Outcome::kFailed;
}

}  // namespace ulc::launcher

#endif

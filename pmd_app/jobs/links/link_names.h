// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that are found by their names: those published here, and lookups of others. Used by
// Links and LinkFrames.
//
//   look_up() ─▶ WHERE to all, repeated ─▶ HERE proves the key ─▶ FoundEndpoint
//            └─▶ an endpoint of this engine ────────────────────▶ FoundEndpoint
//
// WHERE names a hash of the key, and HERE an endpoint: neither permits a link without the key.
// Invariant: a lookup is counted as due while its WHERE is to be sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "jobs/links/link_types.h"
#include "jobs/liveness.h"

namespace ulc::jobs {

/// The end of a lookup: where the endpoint is, or why it was not found.
struct FoundEndpoint {
    Handle caller = 0;
    std::uint32_t cookie = 0;
    Nanos deadline = kNever;  ///< deadline of the call
    Result<wire::LinkAddress> address;
};

class LinkNames {
public:
    /// An endpoint here that is found by its name.
    struct Published {
        Handle endpoint = 0;
        wire::LinkKey key;
    };

    /// config and counters outlive this.
    LinkNames(const LinksConfig& config, Counters& counters);

    /// Publishes an endpoint under its key. False: another one has that key.
    [[nodiscard]] bool publish(Handle endpoint, const wire::LinkKey& key);
    [[nodiscard]] bool is_published(const wire::LinkKey& key) const noexcept {
        return published_as(wire::lookup_of(key)) != nullptr;
    }
    /// Returns the endpoint here with that hash of its key; nullptr: none.
    [[nodiscard]] const Published* published_as(wire::LinkId name) const noexcept;
    [[nodiscard]] std::size_t published() const noexcept { return published_.size(); }
    /// The endpoint ends: it is found no more, and its lookups end without a result.
    void withdraw(Handle endpoint, const wire::LinkKey& key, bool published);

    /// Returns kOk if the endpoint may look the name up, else kInvalid, kVersion or kLimit.
    [[nodiscard]] Err may_look_up(Handle caller, const wire::LinkName& name) const;
    /// Begins a lookup, which look_again() goes on with. id: HERE repeats it.
    void look_up(Handle caller, const wire::LinkName& name, wire::LinkId id, std::uint32_t cookie,
                 Nanos deadline, Nanos now);
    /// Goes on with lookups whose time has come. Returns those that end.
    [[nodiscard]] std::vector<FoundEndpoint> look_again(Nanos now);
    /// Takes the answer to a lookup, which ends. One that is late, doubled or not proved ends none.
    [[nodiscard]] std::optional<FoundEndpoint> on_here(const wire::LinkView& view,
                                                       const Mac& source);
    /// Returns the earliest time at which a lookup goes on; kNever: there is none.
    [[nodiscard]] Nanos next_time() const noexcept;

    [[nodiscard]] bool has_tx() const noexcept { return due_ > 0; }
    /// Writes the WHERE of a lookup. Requires has_tx().
    [[nodiscard]] std::size_t put_where(std::byte* body, Mac& to);

    /// Returns whether has(endpoint), which says if it is open, is true for each lookup.
    template <typename Has>
    [[nodiscard]] bool are_of_open_endpoints(const Has& has) const {
        for (const Lookup& lookup : lookups_)
            if (!has(lookup.caller)) return false;
        return true;
    }
    void check_invariants() const;
    /// The published endpoints are none of its state: they publish themselves again.
    void fields(state::Archive& archive);

private:
    /// A call of which the place is not known yet.
    struct Lookup {
        Handle caller = 0;
        std::uint32_t cookie = 0;
        wire::LinkKey key;    ///< key of the endpoint that is looked for
        wire::LinkId id = 0;  ///< HERE repeats it
        bool due = false;     ///< WHERE is to be sent
        Nanos at = kNever;
        Nanos wait = 0;
        Nanos deadline = kNever;
        void fields(state::Archive& archive);
    };

    void ask(Lookup& lookup, Nanos now);
    FoundEndpoint end_lookup(std::size_t at, const Result<wire::LinkAddress>& address);
    [[nodiscard]] std::size_t count_due() const noexcept;

    const LinksConfig& config_;
    Counters& counters_;
    std::unordered_map<wire::LinkId, Published> published_;  ///< by lookup_of() their keys
    std::vector<Lookup> lookups_;
    std::size_t due_ = 0;
    RateLimit limit_;  ///< rate of WHERE, of all endpoints
};

}  // namespace ulc::jobs

// SPDX-License-Identifier: BSD-3-Clause
// LINK frames in and out (links.h): what each kind does to an end in each state, answers to frames,
// and frames between two endpoints of this engine, which need no wire. Used by Links.
//
// Answers have a rate, and their queue is bounded: the sender repeats its frame.
#pragma once

#include <cstddef>
#include <vector>

#include "base/counters.h"
#include "base/growing_ring.h"
#include "base/units.h"
#include "jobs/links/link_names.h"
#include "jobs/links/link_states.h"
#include "jobs/links/link_table.h"
#include "jobs/links/link_types.h"
#include "jobs/liveness.h"

namespace ulc::jobs {

class LinkFrames {
public:
    /// All of them outlive this.
    LinkFrames(const LinksConfig& config, LinkTable& table, LinkStates& ends, LinkNames& names,
               Liveness& liveness, Counters& counters);

    /// Takes a LINK frame that passed parse_link().
    void on_frame(const wire::LinkView& view, const Mac& source, Nanos now);
    /// Takes what endpoints of this engine say to each other.
    void settle_local(Nanos now);
    /// Tells the sender of a frame that it has no link to that slot, at a limited rate.
    void unknown_slot(Handle endpoint, Rank slot, const Mac& source, Nanos now);

    /// Writes the next body, at most wire::kLinkOctetsMax; 0: none is due. Answers go first, then
    /// lookups, then what ends say.
    [[nodiscard]] std::size_t next_tx(std::byte* body, Mac& to);
    [[nodiscard]] bool has_tx() const noexcept {
        return ends_.has_due(false) || has_answer() || names_.has_tx();
    }
    [[nodiscard]] bool has_answer() const noexcept { return !answers_.empty(); }

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    struct Answer {
        Mac to;
        wire::LinkBody body;
        void fields(state::Archive& archive);
    };

    // in; `ref` names the end of which the frame is
    void take(const wire::LinkView& view, const Mac& source, Nanos now);
    void on_request(const wire::LinkView& view, const Mac& source, Nanos now);
    void on_accept(const wire::LinkView& view, const Mac& source, LinkEndpoint& endpoint,
                   const LinkRef& ref, Nanos now);
    void on_confirm(const wire::LinkView& view, const Mac& source, LinkEndpoint& endpoint,
                    const LinkRef& ref, Nanos now);
    void on_unlink(const wire::LinkView& view, LinkEndpoint& endpoint, const LinkRef& ref,
                   Nanos now);
    void on_unlinked(const wire::LinkView& view, LinkEndpoint& endpoint, const LinkRef& ref,
                     Nanos now);
    void on_hint(const wire::LinkView& view, const Mac& source, Nanos now);
    void on_where(const wire::LinkView& view, const Mac& source, Nanos now);

    // out
    /// Returns a body with what all kinds have.
    [[nodiscard]] wire::LinkBody body_of(wire::LinkKind kind) const noexcept;
    [[nodiscard]] wire::LinkBody body_of(const LinkEnd& end, const LinkRef& ref,
                                         wire::LinkKind kind) const noexcept;
    /// Returns whether an answer is within the rate. False: it was counted.
    [[nodiscard]] bool may_answer(Nanos now) noexcept;
    void answer(const wire::LinkView& view, const Mac& to, wire::LinkKind kind, Err reason,
                Nanos now);
    void queue_answer(const Answer& answer);
    /// Writes what the next end says. local: to a peer of this engine.
    [[nodiscard]] std::size_t put_due(bool local, std::byte* body, Mac& to);

    const LinksConfig& config_;
    LinkTable& table_;
    LinkStates& ends_;
    LinkNames& names_;
    Liveness& liveness_;
    Counters& counters_;
    GrowingRing<wire::LinkBody> local_answers_;  ///< to endpoints of this engine
    std::vector<Answer> answers_;                ///< at most kLinkAnswersMax
    RateLimit answers_limit_;
};

}  // namespace ulc::jobs

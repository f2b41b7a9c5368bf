// SPDX-License-Identifier: BSD-3-Clause
// Dispatch of JOB, NODE and LINK frames that came (jobs.h).
#include "jobs/jobs.h"
#include "jobs/jobs_impl.h"

namespace ulc::jobs {

void Jobs::on_frame(const wire::FrameView& frame, Nanos now) {
    if (frame.source == impl_->node.config().mac) {
        impl_->counters.add(Counter::drop_own_echo);
        wire::JobBodyView own;
        if (frame.type == wire::FrameType::kJob && wire::parse_job(frame.body, frame.length, own) &&
            !own.old) {
            impl_->settle(impl_->claims.on_twin(own, now), now);
            decide_next_look();
        }
        return;
    }
    if (frame.type == wire::FrameType::kNode) {
        wire::NodeView view;
        if (!wire::parse_node(frame.body, frame.length, view)) {
            impl_->counters.add(Counter::drop_job);
            return;
        }
        return on_node(view, frame.source, now);
    } else if (frame.type == wire::FrameType::kLink) {
        wire::LinkView view;
        if (!wire::parse_link(frame.body, frame.length, view)) {
            impl_->counters.add(Counter::drop_link);
            return;
        }
        liveness_.heard(liveness_.find(frame.source), now);
        links_.on_frame(view, frame.source, now);
        return decide_next_look();
    } else {
        wire::JobBodyView view;
        if (frame.type != wire::FrameType::kJob ||
            !wire::parse_job(frame.body, frame.length, view)) {
            impl_->counters.add(Counter::drop_job);
            return;
        }
        if (view.old) {
            impl_->settle(impl_->claims.refuse_old(view, frame.source, now), now);
        } else if (impl_->table.is_authentic(view, frame.source)) {
            liveness_.heard(liveness_.find(frame.source), now);
            if (view.kind == wire::JobKind::kJoin)
                addresses_.on_join(frame.source, view.join->incarnation, now);
            impl_->on_job_frame(view, frame.source, now);
            impl_->settle(impl_->table.records_of(view), now);
        }
    }
    decide_next_look();
}

void Jobs::on_node(const wire::NodeView& view, const Mac& source, Nanos now) {
    NodeVerdict verdict;
    switch (view.kind) {
        case wire::NodeKind::kLinks:
        case wire::NodeKind::kLinksRequest:
        case wire::NodeKind::kLinksReply:
            on_links(view, source, now);
            return decide_next_look();
        case wire::NodeKind::kEchoRequest:
        case wire::NodeKind::kEchoReply:
            return;  // for the port, once it knows that its net has nodes of several links
        case wire::NodeKind::kPing:
        case wire::NodeKind::kPong:
        case wire::NodeKind::kGone:
        case wire::NodeKind::kExpelled:
            if (!liveness_.on_node(view, source, now, verdict)) return decide_next_look();
            impl_->on_verdict(verdict, now);
            return decide_next_look();
    }
}

void Jobs::on_links(const wire::NodeView& view, const Mac& source, Nanos now) {
    liveness_.heard(liveness_.find(source), now);
    if (view.kind == wire::NodeKind::kLinksRequest) return addresses_.on_request(view, source, now);
    // Another incarnation is a hint: the node is asked which of the two lives.
    liveness_.hint(source, view.incarnation, now);
    if (view.kind == wire::NodeKind::kLinks) return addresses_.on_links(view, source, now);
    addresses_.on_reply(view, source, now);
}

}  // namespace ulc::jobs

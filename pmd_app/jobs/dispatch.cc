// SPDX-License-Identifier: BSD-3-Clause
// Dispatch of JOB, NODE and LINK frames that came (jobs.h).
#include "jobs/job_records.h"
#include "jobs/jobs.h"

namespace ulc::engine {

void Jobs::on_frame(const wire::FrameView& frame, Nanos now) {
    if (frame.source == impl_->config.mac) {
        impl_->counters.add(Counter::drop_own_echo);
        wire::JobBodyView own;
        if (frame.type == wire::FrameType::kJob && wire::parse_job(frame.body, frame.length, own) &&
            !own.old) {
            impl_->on_twin(own, now);
            impl_->forget_finished(now);
            impl_->changed();
            decide_next_look();
        }
        return;
    }
    if (frame.type == wire::FrameType::kNode) {
        wire::NodeView view;
        NodeVerdict verdict;
        if (!wire::parse_node(frame.body, frame.length, view)) {
            impl_->counters.add(Counter::drop_job);
        } else if (view.kind == wire::NodeKind::kLinks) {
            on_links(view, frame.source, now);
        } else if (view.kind == wire::NodeKind::kEchoRequest ||
                   view.kind == wire::NodeKind::kEchoReply) {
            // For the port, once it knows that its net has nodes of several links.
        } else if (liveness_.on_node(view, frame.source, now, verdict)) {
            impl_->on_verdict(verdict, now);
        }
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
            impl_->refuse_old(view, frame.source, now);
        } else if (impl_->authentic(view, frame.source)) {
            liveness_.heard(liveness_.find(frame.source), now);
            if (view.kind == wire::JobKind::kJoin) addresses_.greet(now);
            impl_->on_job_frame(view, frame.source, now);
        }
    }
    impl_->forget_finished(now);
    impl_->changed();
    decide_next_look();
}

void Jobs::on_links(const wire::NodeView& view, const Mac& source, Nanos now) {
    liveness_.heard(liveness_.find(source), now);
    const auto watched = [](const void* context, const Mac& mac) {
        return static_cast<const Liveness*>(context)->find(mac) != kNoNode;
    };
    addresses_.on_links(view, source, watched, &liveness_, now);
}

}  // namespace ulc::engine

// SPDX-License-Identifier: BSD-3-Clause
// Any octets as a frame: wire::parse(), the parsers of the bodies of JOB, NODE and LINK frames, and
// that of FORWARD, which finds a frame within.
// Accepted frames are read to their last octet, from a heap copy of exactly the input's size, so
// the sanitizer sees a view that leaves the frame.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "wire/forward.h"
#include "wire/job.h"
#include "wire/link.h"
#include "wire/parse.h"
#include "wire/short_frame.h"

namespace {

using namespace ulc;
using namespace ulc::wire;

void touch(const void* at, std::size_t octets) {
    volatile std::uint8_t sink = 0;
    const auto* octet = static_cast<const std::uint8_t*>(at);
    for (std::size_t i = 0; i < octets; ++i)
        sink = static_cast<std::uint8_t>(sink ^ octet[i]);
}

void use_job(const FrameView& frame) {
    JobBodyView view;
    if (!parse_job(frame.body, frame.length, view)) return;
    ULC_CHECK(is_job_name(view.name));
    touch(view.name.data(), view.name.size());
    touch(view.claims.data(), view.claims.size_bytes());
    touch(view.ack_bitmap.data(), view.ack_bitmap.size());
    touch(view.attribute_octets.data(), view.attribute_octets.size());
    if (view.roster == nullptr) return;
    // As an engine does: entries go to their ranks in a roster of the job's size.
    std::vector<RosterEntry> roster(view.roster->size);
    for (std::size_t i = 0; i < view.entries.size(); ++i) {
        roster.data()[view.roster->first_rank + i] = view.entries[i];
    }
}

void use_data(const FrameView& frame) {
    if (frame.ack != nullptr) touch(frame.ack, sizeof *frame.ack);
    if (frame.after_count > 0) touch(frame.after, frame.after_count * sizeof *frame.after);
    ULC_CHECK(frame.after_count <= kAfterEntriesMax);
    ULC_CHECK((frame.flags & kFlagFirst) == 0 || frame.message_length >= frame.length);
}

/// Takes the frame out of FORWARD as a port does.
void use_forward(std::byte* frame, std::size_t size) {
    ForwardView view;
    if (!parse_forward(frame, size, kEtherTypeDefault, view)) return;
    ULC_CHECK(is_forward(frame, size) && view.hops <= 1 && view.origin != view.destination);
    const std::size_t octets = unwrap_forward(frame, view);
    ULC_CHECK(octets >= kHeadOctets && octets + sizeof(ForwardHeader) <= size);
    ULC_CHECK(!is_forward(frame, octets));
    FrameView inner;
    if (parse(frame, octets, kEtherTypeDefault, inner) != Counter::kCount) return;
    ULC_CHECK(inner.source == view.origin && inner.destination == view.destination);
    touch(inner.body, inner.length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 65536) return 0;
    const auto copy = std::make_unique<std::byte[]>(size);
    for (std::size_t i = 0; i < size; ++i)
        copy[i] = static_cast<std::byte>(data[i]);
    FrameView frame;
    const Counter verdict = parse(copy.get(), size, kEtherTypeDefault, frame);
    ShortBody brief;
    if (size >= kFrameOctetsMin && has_short_head(copy.get(), kEtherTypeDefault) &&
        read_body(copy.get(), size, brief) &&
        !(frame.type == FrameType::kMcast && brief.ack != nullptr)) {  // the transport judges that
        ULC_CHECK(verdict == Counter::kCount && brief.payload == frame.body);
        ULC_CHECK(brief.length == frame.length && brief.ack == frame.ack);
        ULC_CHECK(brief.tag == frame.tag);
    }
    if (verdict != Counter::kCount) {
        use_forward(copy.get(), size);
        return 0;
    }
    touch(frame.body, frame.length);
    switch (frame.type) {
        case FrameType::kData:
        case FrameType::kMcast:
        case FrameType::kCounted:
            use_data(frame);
            break;
        case FrameType::kJob:
            use_job(frame);
            break;
        case FrameType::kNode: {
            NodeView node;
            if (!parse_node(frame.body, frame.length, node)) break;
            ULC_CHECK(node.incarnation != 0 && node.links.size() <= kNodeLinksMax);
            touch(node.links.data(), node.links.size_bytes());
            break;
        }
        case FrameType::kLink: {
            LinkView link;
            if (!parse_link(frame.body, frame.length, link)) break;
            ULC_CHECK(link.from != 0 && (link.ours != 0 || link.theirs != 0 || link.to == 0));
            touch(link.profile.data(), link.profile.size());
            touch(link.tagged.data(), link.tagged.size());
            if (link.tag != nullptr) touch(link.tag, sizeof *link.tag);
            break;
        }
        case FrameType::kStatus: {
            const auto& body = *reinterpret_cast<const StatusBody*>(frame.body);
            touch(frame.body + sizeof body, body.count * sizeof(Be32));
            break;
        }
        case FrameType::kFlow:
            ULC_CHECK(reinterpret_cast<const FlowBody*>(frame.body)->count > 0);
            break;
        case FrameType::kNack:
            ULC_CHECK(is_group(reinterpret_cast<const NackBody*>(frame.body)->group));
            break;
        case FrameType::kAck:
        case FrameType::kReq:
        case FrameType::kProbe:
            break;
    }
    return 0;
}

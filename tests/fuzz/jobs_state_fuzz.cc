// SPDX-License-Identifier: BSD-3-Clause
// Runs an engine's job state under arbitrary frames, times and local calls (jobs_state_fuzz.h).
// Invariants for every input: no memory error, only frames that its own parsers accept, bounded
// output, one formed or failed event a join.
#include "jobs_state_fuzz.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "jobs/jobs.h"
#include "wire/job_key.h"

namespace {

using namespace ulc;
using namespace ulc::jobs;
using fuzz::Op;

class Script {
public:
    Script(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
    [[nodiscard]] bool done() const { return left_ == 0; }
    std::uint8_t octet() {
        if (left_ == 0) return 0;
        --left_;
        return *at_++;
    }
    /// Takes at most the remaining bytes.
    std::size_t take(std::size_t octets, const std::byte*& out) {
        const std::size_t taken = octets < left_ ? octets : left_;
        out = reinterpret_cast<const std::byte*>(at_);
        at_ += taken;
        left_ -= taken;
        return taken;
    }

private:
    const std::uint8_t* at_;
    std::size_t left_;
};

class Machine {
public:
    Machine() : jobs_(config(), counters_) {
        jobs_.links().open(fuzz::kLinkEndpoint, fuzz::kLinkKey, 4, "urtp");
        jobs_.links().publish(fuzz::kLinkEndpoint);
    }

    void run(Script& script) {
        for (int operations = 0; !script.done() && operations < 200; ++operations) {
            step(script);
            if (jobs_.next_timer() <= now_) jobs_.on_timer(now_);
            take_events();
            take_link_events();
            jobs_.looked();
            transmit();
            jobs_.links().check_invariants();
        }
    }

private:
    static JobsConfig config() {
        JobsConfig config;
        config.mac = fuzz::kOwnMac;
        config.incarnation = fuzz::kOwnIncarnation;
        config.seed = 1;
        config.jobs_max = 4;
        config.liveness.nodes_max = 16;
        return config;
    }

    void frame(Script& script, wire::FrameType type, const wire::Nonce* nonce = nullptr) {
        wire::FrameView view;
        view.type = type;
        view.source = fuzz::sender_mac(script.octet());
        const std::size_t low = script.octet();
        const std::byte* body = nullptr;
        const std::size_t octets = script.take((std::size_t{script.octet()} << 8) | low, body);
        const bool tagged = nonce != nullptr && octets >= sizeof(wire::JobHead);
        const std::size_t all = octets + (tagged ? sizeof(wire::JobTag) : 0);
        const auto copy = std::make_unique<std::byte[]>(all);
        for (std::size_t i = 0; i < octets; ++i)
            copy[i] = body[i];
        if (tagged) sign(copy.get(), octets, view.source, *nonce);
        if (type == wire::FrameType::kLink && octets >= sizeof(wire::LinkBody)) {
            auto& link = *reinterpret_cast<wire::LinkBody*>(copy.get());
            if (link.kind == wire::LinkKind::kHere && link.theirs < 16U) link.theirs = asked_;
            sign_link(copy.get(), octets, view.source);
        }
        view.body = copy.get();
        view.length = static_cast<std::uint16_t>(all);
        jobs_.on_frame(view, now_);
    }

    static void sign(std::byte* body, std::size_t octets, const Mac& source,
                     const wire::Nonce& nonce) {
        const wire::Nonce id = wire::job_id_of(nonce);
        std::memcpy(body + offsetof(wire::JobHead, nonce), &id, sizeof id);
        const wire::JobTag tag =
            wire::job_tag(wire::job_key_of(nonce), source, std::span(body, octets));
        std::memcpy(body + octets, &tag, sizeof tag);
    }

    static void sign_link(std::byte* body, std::size_t octets, const Mac& source) {
        wire::LinkView view;
        if (!wire::parse_link(body, octets, view) || view.tag == nullptr) return;
        const bool found = view.kind == wire::LinkKind::kHere;
        const wire::LinkKey key = found ? wire::key_of(fuzz::kLinkName) : fuzz::kLinkKey;
        const wire::JobTag tag = wire::job_tag(wire::link_key_of(key), source, view.tagged);
        std::memcpy(body + octets - sizeof tag, &tag, sizeof tag);
    }

    void call(Script& script) {
        wire::LinkAddress address;
        address.mac = fuzz::sender_mac(script.octet());
        address.handle = 256U + script.octet();
        address.incarnation = 2000U;
        address.key = fuzz::kLinkKey;
        (void)jobs_.links().call(fuzz::kLinkEndpoint, address, now_ + kSecond, now_);
    }

    /// Looks for the endpoint of fuzz::kLinkName.
    void find(Script& script) {
        const Nanos deadline = now_ + (Nanos{1} << (script.octet() % 36));
        const std::uint32_t cookie = next_cookie_++;
        if (jobs_.links().find(fuzz::kLinkEndpoint, fuzz::kLinkName, cookie, deadline, now_) ==
            Err::kOk)
            finding_.insert(cookie);
    }

    /// Releases slots as an engine does.
    void take_link_events() {
        LinkEvent event;
        while (jobs_.links().poll_event(event)) {
            ULC_CHECK(event.endpoint == fuzz::kLinkEndpoint);
            if (event.kind == LinkEventKind::kCalled) {
                ULC_CHECK(finding_.erase(event.cookie) == 1);
                ULC_CHECK((event.error == Err::kOk) == (event.slot < 4));
                continue;
            }
            ULC_CHECK(event.slot < 4);
            const LinkEnd* end = jobs_.links().at(event.endpoint, event.slot);
            if (end->state == LinkEnd::State::kGone || end->state == LinkEnd::State::kFree)
                jobs_.links().release(event.endpoint, event.slot);
        }
    }

    void join(Script& script) {
        JoinRequest request;
        request.name = "j";
        request.rank = script.octet();
        request.size = script.octet();
        request.nonce.octets[0] = script.octet();
        request.endpoint = fuzz::kEndpoint + request.rank;
        request.deadline = now_ + kSecond;
        const Result<JobId> id = jobs_.join(request, now_);
        if (id.ok()) joined_[request.endpoint] = id.value();
    }

    void step(Script& script) {
        switch (static_cast<Op>(script.octet() % fuzz::kOps)) {
            case Op::kJob:
                return frame(script, wire::FrameType::kJob);
            case Op::kNode:
                return frame(script, wire::FrameType::kNode);
            case Op::kAdvance:
                now_ += Nanos{1} << (script.octet() % 36);
                return;
            case Op::kJoin:
                return join(script);
            case Op::kLeave: {
                const Handle endpoint = fuzz::kEndpoint + script.octet();
                const bool died = script.octet() % 2 != 0;
                const auto joined = joined_.find(endpoint);
                if (joined == joined_.end()) return;
                jobs_.leave(joined->second, endpoint,
                            died ? wire::LeaveReason::kDied : wire::LeaveReason::kLeft, now_);
                joined_.erase(joined);
                formed_.erase(endpoint);
                return;
            }
            case Op::kTagged: {
                wire::Nonce nonce;
                nonce.octets[0] = script.octet();
                return frame(script, wire::FrameType::kJob, &nonce);
            }
            case Op::kLink:
                return frame(script, wire::FrameType::kLink);
            case Op::kCall:
                return call(script);
            case Op::kUnlink:
                return jobs_.links().unlink(fuzz::kLinkEndpoint,
                                            static_cast<Rank>(script.octet() % 4), now_);
            case Op::kExclude: {
                const auto joined = joined_.find(fuzz::kEndpoint + script.octet());
                const Rank rank = script.octet();
                if (joined != joined_.end()) jobs_.exclude(joined->second, rank, now_);
                return;
            }
            case Op::kFind:
                return find(script);
            case Op::kUnknown: {
                const Mac sender = fuzz::sender_mac(script.octet());
                return jobs_.unknown_handle(sender, script.octet(), now_);
            }
        }
    }

    void take_events() {
        JobEvent event;
        while (jobs_.poll_event(event)) {
            if (event.kind == JobEventKind::kFormed) {
                JobView view;
                ULC_CHECK(jobs_.job(event.job, view));
                ULC_CHECK(joined_[event.endpoint] == event.job);
                ULC_CHECK(view.roster[event.rank].handle == event.endpoint);
                ULC_CHECK(!formed_.contains(event.endpoint));
                formed_[event.endpoint] = true;
            } else if (event.kind == JobEventKind::kFailed) {
                ULC_CHECK(joined_.erase(event.endpoint) == 1);
                ULC_CHECK(!formed_.contains(event.endpoint));
            } else if (event.kind == JobEventKind::kExcluded) {
                ULC_CHECK(formed_.contains(event.endpoint));
            }
        }
    }

    void transmit() {
        AddressChange change;
        while (jobs_.next_address_change(change))
            ULC_CHECK(!change.addresses.empty() && change.addresses[0].mac == change.node);
        std::byte octets[1514];
        int frames = 0;
        for (std::size_t n; (n = jobs_.next_tx(octets, sizeof octets, now_)) != 0; ++frames) {
            wire::FrameView view;
            ULC_CHECK(wire::parse(octets, n, wire::kEtherTypeDefault, view) == Counter::kCount);
            wire::JobBodyView job;
            wire::NodeView node;
            wire::LinkView link;
            if (view.type == wire::FrameType::kLink) {
                ULC_CHECK(wire::parse_link(view.body, view.length, link));
                if (link.kind == wire::LinkKind::kWhere) asked_ = link.ours;
            } else {
                ULC_CHECK(view.type == wire::FrameType::kNode
                              ? wire::parse_node(view.body, view.length, node)
                              : wire::parse_job(view.body, view.length, job));
            }
            ULC_CHECK(frames < 1000);
        }
    }

    Counters counters_;
    Jobs jobs_;
    Nanos now_ = kSecond;
    std::map<Handle, JobId> joined_;
    std::map<Handle, bool> formed_;
    std::set<std::uint32_t> finding_;  ///< cookies of lookups
    std::uint32_t next_cookie_ = 0;
    wire::LinkId asked_ = 1;  ///< id of the last WHERE
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Script script(data, size);
    Machine machine;
    machine.run(script);
    return 0;
}

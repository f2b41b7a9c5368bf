// SPDX-License-Identifier: BSD-3-Clause
// Connects several Jobs objects by one broadcast wire that loses, delays and duplicates frames,
// with virtual time, all seeded. Does each round what the engine does, in the same order: frames,
// timers, events, transmission.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "abi/endpoint_region.h"
#include "base/prng.h"
#include "jobs/jobs.h"
#include "wire/build.h"

namespace ulc::jobs {

inline Mac mac_of(unsigned node) {
    return Mac{{2, 0, 0, 0, static_cast<std::uint8_t>(node >> 8), static_cast<std::uint8_t>(node)}};
}

struct BusNode {
    unsigned number = 0;
    bool running = true;
    bool keeps = false;  ///< its NIC holds the frames that come while it does not run
    std::vector<std::vector<std::byte>> kept;
    JobsConfig config;
    Counters counters;
    std::unique_ptr<Jobs> jobs;
    std::vector<JobEvent> events;
    std::vector<LinkEvent> link_events;
    std::map<Handle, JobId> ids;
    std::vector<Mac> further;  ///< addresses of its other links

    [[nodiscard]] const JobEvent* event_of(Handle endpoint) const {
        const auto at = std::find_if(events.begin(), events.end(), [endpoint](const JobEvent& e) {
            return e.endpoint == endpoint;
        });
        return at == events.end() ? nullptr : &*at;
    }
    [[nodiscard]] bool formed(Handle endpoint) const {
        const JobEvent* event = event_of(endpoint);
        return event != nullptr && event->kind == JobEventKind::kFormed;
    }
    [[nodiscard]] Err failed(Handle endpoint) const {
        const JobEvent* event = event_of(endpoint);
        return event != nullptr && event->kind == JobEventKind::kFailed ? event->error : Err::kOk;
    }
    [[nodiscard]] std::size_t count(JobEventKind kind, Rank rank) const {
        return static_cast<std::size_t>(std::count_if(
            events.begin(), events.end(),
            [kind, rank](const JobEvent& e) { return e.kind == kind && e.rank == rank; }));
    }
};

class JobBus {
public:
    explicit JobBus(std::uint64_t seed, double loss = 0, double duplicate = 0)
        : prng_(seed), loss_(loss), duplicate_(duplicate) {}

    BusNode& add(unsigned number) {
        JobsConfig config;
        config.mac = mac_of(number);
        config.incarnation = 1000 + number;
        config.seed = prng_.next();
        return add(number, config);
    }
    BusNode& add(unsigned number, const JobsConfig& config) {
        auto node = std::make_unique<BusNode>();
        node->number = number;
        node->config = config;
        node->jobs = std::make_unique<Jobs>(config, node->counters);
        nodes_.push_back(std::move(node));
        return *nodes_.back();
    }
    /// Simulates that the engine dies and another one starts at the same address.
    void restart(BusNode& node) {
        node.config.incarnation += 5000;
        node.config.seed = node.config.seed.of(1);
        node.events.clear();
        node.link_events.clear();
        node.jobs = std::make_unique<Jobs>(node.config, node.counters);
        node.running = true;
    }

    Err join(BusNode& node, Rank rank, std::uint16_t size, Handle endpoint,
             const std::string& name = "job", std::uint8_t nonce = 0, Nanos deadline = kNever,
             std::string_view profile = urtp::kDefaultProfile) {
        JoinRequest request;
        request.name = name;
        request.nonce.octets[3] = nonce;
        request.rank = rank;
        request.size = size;
        request.endpoint = endpoint;
        request.deadline = deadline;
        request.profile = profile;
        request.patience = patience;
        const Result<JobId> id = node.jobs->join(request, now);
        if (id.ok()) node.ids[endpoint] = id.value();
        return id.error();
    }
    template <typename... Args>
    void must_join(Args&&... args) {
        const Err error = join(std::forward<Args>(args)...);
        ULC_CHECK(error == Err::kOk);
    }
    void leave(BusNode& node, Handle endpoint, wire::LeaveReason reason) {
        node.jobs->leave(node.ids[endpoint], endpoint, reason, now);
    }

    /// Runs until `until` holds, at most for `span`. Returns true if it holds.
    template <typename Condition>
    bool run(Nanos span, Condition until) {
        const Nanos end = now + span;
        for (;;) {
            for (const auto& node : nodes_) {
                if (!node->running) continue;
                for (const auto& octets : std::exchange(node->kept, {}))
                    take(*node, octets);
                step(*node);
            }
            if (until()) return true;
            Nanos next = frames_.empty() ? kNever : frames_.begin()->first;
            for (const auto& node : nodes_) {
                if (node->running) next = std::min(next, node->jobs->next_timer());
            }
            if (next > end) {
                now = end;
                return until();
            }
            now = std::max(now, next);
            deliver();
        }
    }
    void run(Nanos span) {
        (void)run(span, [] { return false; });
    }

    /// Returns every event until this time, for messages of failed tests.
    [[nodiscard]] std::string describe() const {
        static constexpr const char* kKinds[] = {"formed",   "failed",        "left",     "died",
                                                 "excluded", "excluded here", "shortened"};
        std::string text;
        for (const auto& node : nodes_) {
            text += "\n  node " + std::to_string(node->number) + ":";
            for (const JobEvent& e : node->events) {
                text += " " + std::string(kKinds[static_cast<int>(e.kind)]) + "(rank " +
                        std::to_string(e.rank) + ", endpoint " + std::to_string(e.endpoint) + ")" +
                        e.text;
            }
        }
        return text;
    }
    void set_loss(double loss) { loss_ = loss; }
    [[nodiscard]] BusNode& node(std::size_t i) { return *nodes_[i]; }
    [[nodiscard]] std::size_t size() const { return nodes_.size(); }
    [[nodiscard]] std::uint64_t frames_sent() const { return sent_; }

    /// Delivers to one node a forged frame with that source address.
    void inject(BusNode& to, const Mac& source, wire::FrameType type,
                std::span<const std::byte> body) {
        std::vector<std::byte> octets(wire::kHeadOctets + body.size() + 64);
        std::copy(body.begin(), body.end(), octets.begin() + wire::kHeadOctets);
        wire::FrameHead head;
        head.destination = to.config.mac;
        head.source = source;
        head.type = type;
        octets.resize(wire::build_control(octets.data(), head, body.size()));
        injected_octets += octets.size();
        wire::FrameView view;
        ULC_CHECK(wire::parse(octets.data(), octets.size(), wire::kEtherTypeDefault, view) ==
                  Counter::kCount);
        to.jobs->on_frame(view, now);
    }

    /// Delivers to one node a frame of that source that asks and answers nothing.
    void inject_echo(BusNode& to, const Mac& source) {
        wire::NodeBody body{};
        body.kind = wire::NodeKind::kPong;
        body.incarnation = 1;
        body.token = 1;
        inject(to, source, wire::FrameType::kNode,
               {reinterpret_cast<const std::byte*>(&body), sizeof body});
    }

    std::map<wire::JobKind, unsigned> kinds_sent;
    std::vector<std::vector<std::byte>> log;  ///< every frame sent, if wanted
    bool logs = false;
    std::uint64_t sent_octets = 0;
    /// Bytes after the Ethernet header of the longest frames that pass to and from a node, by its
    /// number.
    std::map<unsigned, std::size_t> passes_to;
    std::map<unsigned, std::size_t> passes_from;
    unsigned too_long = 0;  ///< frames that their receiver's interface does not take
    std::uint64_t injected_octets = 0;
    Nanos now = kSecond;
    Nanos patience = 0;  ///< each join says it
    /// No frame passes between this node and the others.
    const BusNode* cut = nullptr;

private:
    struct Frame {
        BusNode* to;
        std::vector<std::byte> octets;
    };

    void step(BusNode& node) {
        if (node.jobs->next_timer() <= now) node.jobs->on_timer(now);
        JobEvent event;
        while (node.jobs->poll_event(event)) {
            if (event.kind == JobEventKind::kFailed) {
                EXPECT_FALSE(event.text.empty());
                EXPECT_LT(event.text.size(), abi::kTextOctetsMax / 3) << event.text;
            }
            node.events.push_back(event);
        }
        LinkEvent link_event;
        while (node.jobs->links().poll_event(link_event))
            node.link_events.push_back(link_event);
        node.jobs->looked();
        std::byte buffer[9216];
        for (;;) {
            const std::size_t octets = node.jobs->next_tx(buffer, sizeof buffer, now);
            if (octets == 0) break;
            ++sent_;
            sent_octets += octets;
            if (logs) log.emplace_back(buffer, buffer + octets);
            count_kind(buffer, octets);
            send(node, std::vector<std::byte>(buffer, buffer + octets));
        }
    }
    void count_kind(const std::byte* frame, std::size_t octets) {
        wire::FrameView view;
        wire::JobBodyView body;
        if (wire::parse(frame, octets, wire::kEtherTypeDefault, view) == Counter::kCount &&
            view.type == wire::FrameType::kJob && wire::parse_job(view.body, view.length, body))
            ++kinds_sent[body.kind];
    }
    void send(const BusNode& from, const std::vector<std::byte>& octets) {
        const auto& to = reinterpret_cast<const wire::EthernetHeader*>(octets.data())->destination;
        for (const auto& node : nodes_) {
            const bool addressed =
                to == kBroadcastMac || to == node->config.mac ||
                std::find(node->further.begin(), node->further.end(), to) != node->further.end();
            if (node.get() == &from || !addressed) continue;
            if (!node->running && !node->keeps) continue;
            if (cut == &from || cut == node.get()) continue;
            const std::size_t length = octets.size() - sizeof(wire::EthernetHeader);
            const auto loses = [length](const auto& limits, unsigned number) {
                const auto at = limits.find(number);
                return at != limits.end() && length > at->second;
            };
            if (loses(passes_from, from.number) || loses(passes_to, node->number)) continue;
            const int copies = 1 + (prng_.chance(duplicate_) ? 1 : 0);
            for (int copy = 0; copy < copies; ++copy) {
                if (prng_.chance(loss_)) continue;
                const auto delay =
                    5 * kMicrosecond + static_cast<Nanos>(prng_.below(200 * kMicrosecond));
                frames_.emplace(now + delay, Frame{node.get(), octets});
            }
        }
    }
    void deliver() {
        while (!frames_.empty() && frames_.begin()->first <= now) {
            const Frame frame = frames_.begin()->second;
            frames_.erase(frames_.begin());
            if (frame.to->running)
                take(*frame.to, frame.octets);
            else if (frame.to->keeps)
                frame.to->kept.push_back(frame.octets);
        }
    }
    void take(BusNode& node, const std::vector<std::byte>& octets) {
        if (octets.size() > sizeof(wire::EthernetHeader) + node.config.mtu) {
            ++too_long;
            return;
        }
        wire::FrameView view;
        const Counter reason =
            wire::parse(octets.data(), octets.size(), wire::kEtherTypeDefault, view);
        ULC_CHECK(reason == Counter::kCount);
        node.jobs->on_frame(view, now);
    }

    Prng prng_;
    double loss_;
    double duplicate_;
    std::vector<std::unique_ptr<BusNode>> nodes_;
    std::multimap<Nanos, Frame> frames_;
    std::uint64_t sent_ = 0;
};

}  // namespace ulc::jobs

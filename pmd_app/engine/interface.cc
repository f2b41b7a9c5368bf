// SPDX-License-Identifier: BSD-3-Clause
// Answers to changes of the network interface under a net's port (port/interface/watch.h): another
// MTU, another MAC address. Called with each look at the port's link.
//
//   MTU below the port's      told, counted; new jobs send shorter packets
//   … longer frames refused   for node_dead: jobs of longer packets end with a sentence
//   packets do not arrive    at a node that answers: the path to it takes shorter ones than when
//                             the job formed, which ends with a sentence
//   MAC, old one kept         told, counted; the net goes on by the old one, and takes the new one
//                             when no endpoint is in a job and no peer is to be notified
//   MAC, old one lost         told, counted; the net's jobs end with a sentence; then as above
//
// A node has one address for all of its jobs, since rosters and links name nodes by it.
#include <algorithm>
#include <memory>
#include <string>

#include "engine/core.h"
#include "wire/mac_text.h"

namespace ulc::engine {
namespace {

constexpr Nanos kLinkPatience = 10 * kMillisecond;  ///< between looks at the port's link
constexpr Nanos kLinksPatience = kMillisecond;      ///< the same of several links

void report(const Core& core, const std::string& sentence) {
    if (core.config().report != nullptr)
        core.config().report(core.config().report_context, sentence.c_str());
}

void follow_mtu(Core& core, Net& net, const InterfaceState& interface) {
    if (interface.mtu == net.watch().mtu()) return;
    const bool fell = interface.mtu < net.watch().mtu();
    net.watch().set_mtu(interface.mtu, net.port());
    net.jobs().set_mtu(std::max(interface.mtu, wire::kMtuMin));
    const std::string mtu = std::to_string(net.port().info.mtu);
    if (fell) core.counters().add(Counter::mtu_falls);
    if (interface.mtu < net.port().info.mtu) {
        report(core, "the MTU of interface " + interface.name + " is " +
                         std::to_string(interface.mtu) + ", less than the " + mtu +
                         " that this engine began with: longer frames are not sent; run: ip link "
                         "set " +
                         interface.name + " mtu " + mtu +
                         ", or start the engine again if the path carries no more");
    } else {
        report(core, "the MTU of interface " + interface.name + " is " + mtu +
                         " or more again: frames of full size are sent");
    }
}

/// Ends what the endpoint has joined or begun to join, with a sentence for its client.
void end_job(Core& core, Endpoint& endpoint, const std::string& sentence, Nanos now) {
    if (!endpoint.life().is_open()) {  // it is about to leave
        endpoint.life().hurry(now);
        endpoint.mark(Work::kControl);
        return;
    }
    leave_job(core, endpoint, wire::LeaveReason::kDied, now);
    fail_job(endpoint, Err::kPortDown, sentence);
}

/// Ends what the net's endpoints have joined or begun to join.
void end_jobs(Core& core, Net& net, const std::string& sentence, Nanos now) {
    for (Endpoint* endpoint : core.table().active())
        if (endpoint->is_on(net) && endpoint->in_use()) end_job(core, *endpoint, sentence, now);
}

/// Ends the net's jobs and links whose packets are longer than the interface takes. Returns how
/// many endpoints had such.
unsigned end_long_jobs(Core& core, Net& net, const InterfaceState& interface, Nanos now) {
    const std::string mtu = std::to_string(interface.mtu);
    unsigned ended = 0;
    for (Endpoint* endpoint : core.table().active()) {
        if (!endpoint->is_on(net) || !endpoint->in_use() || endpoint->membership().is_local())
            continue;
        if (endpoint->member() == nullptr || endpoint->member()->mtu() <= interface.mtu) continue;
        const std::string size = std::to_string(endpoint->member()->mtu());
        std::string sentence = "interface " + interface.name + " has MTU " + mtu;
        sentence += ", and refuses the packets of " + size + " bytes that this job sends; run: ";
        sentence += "ip link set " + interface.name + " mtu " + size;
        end_job(core, *endpoint, sentence + ", and start the job again", now);
        ++ended;
    }
    return ended;
}

/// Ends jobs of long packets once the interface has refused such for as long as a silent node may
/// live. A refused packet is sent again and again, so its job is met. A job that sends short ones
/// goes on, unless another job of the net is met.
void judge_refusals(Core& core, Net& net, const InterfaceState& interface, Nanos now) {
    if (interface.mtu >= net.port().info.mtu || net.port().drops == nullptr) return;
    if (!net.watch().has_refused(net.port(), core.config().jobs.liveness.node_dead, now) ||
        end_long_jobs(core, net, interface, now) == 0)
        return;
    report(core, "interface " + interface.name + " refuses packets longer than its MTU of " +
                     std::to_string(interface.mtu) + ": the jobs that send such have ended");
}

bool is_in_use(const Core& core, const Net& net) {
    return std::ranges::any_of(core.table().active(), [&](const Endpoint* endpoint) {
        return endpoint->is_on(net) && endpoint->in_use();
    });
}

/// Makes the interface's address this node's. Nodes that knew it by the old one meet another node,
/// so its jobs begin with nothing.
void take_address(Core& core, Net& net, const InterfaceState& interface) {
    const std::string before = text_of(net.port().info.mac);
    const std::string name = interface.name;
    net.take_address();
    core.end_verdicts();
    net.begin_jobs(core.config(), core.tokens(), core.counters());
    net.jobs().set_mtu(std::max(net.watch().mtu(), wire::kMtuMin));
    report(core, "this engine's address on interface " + name + " is " +
                     text_of(net.port().info.mac) + ", and was " + before);
}

void follow_address(Core& core, Net& net, const InterfaceState& interface, Nanos now) {
    const bool is_new = net.watch().note_mac(interface.mac);
    if (interface.mac == interface.own) return;
    const std::string change = "interface " + interface.name + " has the MAC address " +
                               text_of(interface.mac) + " instead of " + text_of(interface.own);
    if (is_new) core.counters().add(Counter::mac_changes);
    if (interface.keeps_own) {
        if (is_new)
            report(core, change +
                             "; it still passes frames for the old one, by which running jobs "
                             "go on; jobs after them use the new one");
    } else {
        if (is_new)
            report(core, change +
                             ", and passes no frames for the old one: the jobs of this net "
                             "have ended; new jobs use the new one");
        end_jobs(core, net, change + " and passes no frames for the old one; start the job again",
                 now);
    }
    if (is_in_use(core, net)) return;
    // With the old address lost, no answer to a notification would come: each is sent once.
    if (interface.keeps_own ? net.jobs().drained() : !net.jobs().has_tx())
        take_address(core, net, interface);
}

}  // namespace

void InterfaceWatch::look_at_link(const Port& port, Counters& counters, Nanos now) {
    due_ = now + (port.info.links > 1 ? kLinksPatience : kLinkPatience);
    if (port.link_up == nullptr) return;
    const bool up = port.link_up(port.context);
    if (up != link_is_up_) counters.add(up ? Counter::link_ups : Counter::link_downs);
    link_is_up_ = up;
}

void InterfaceWatch::set_mtu(std::uint16_t mtu, const Port& port) {
    mtu_ = mtu;
    refusals_ = {};
    if (port.drops != nullptr) refusals_.counted = port.drops(port.context).unsendable;
}

bool InterfaceWatch::has_refused(const Port& port, Nanos patience, Nanos now) {
    const std::uint64_t refused = port.drops(port.context).unsendable;
    if (refused == refusals_.counted) return false;
    refusals_.counted = refused;
    if (refusals_.since == kNever || now - refusals_.last > patience) refusals_.since = now;
    refusals_.last = now;
    if (now - refusals_.since < patience) return false;
    refusals_.since = kNever;
    return true;
}

void follow_interface(Core& core, Net& net, Nanos now) {
    const InterfaceState* interface = net.port().interface(net.port().context);
    if (interface == nullptr) return;
    follow_mtu(core, net, *interface);
    judge_refusals(core, net, *interface, now);
    follow_address(core, net, *interface, now);
}

// J-48. The rank may have died meanwhile, or its node may be about to.
void path_narrowed(Core& core, Endpoint& endpoint, Rank rank, Nanos now) {
    const Mac& mac = endpoint.member()->peer(rank).mac;
    if (!endpoint.membership().is_here(rank) ||
        endpoint.net().jobs().is_silent(endpoint.membership().job(),
                                        endpoint.membership().node_of(rank), now))
        return;
    const std::string size = std::to_string(endpoint.member()->mtu());
    const std::string found = "packets of up to " + size + " bytes reach node " + text_of(mac) +
                              " no more, and shorter ones do: a switch or router between has a "
                              "smaller MTU than when the job began; ";
    core.counters().add(Counter::paths_narrowed);
    report(core, found + "that job has ended; raise that MTU, or let later jobs find it");
    end_job(core, endpoint,
            found + "raise it, or start the job again, which then sends shorter packets", now);
}

}  // namespace ulc::engine

// SPDX-License-Identifier: BSD-3-Clause
#include "main/node.h"

#include <sys/random.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/check.h"
#include "main/bonded_links.h"
#include "main/clock.h"
#include "main/mesh_links.h"
#include "wire/header.h"
#include "wire/mac_text.h"

namespace ulc::daemon {

Err Node::open(const NodeOptions& options, Counters* counters, std::unique_ptr<Node>& out,
               std::vector<std::string>& notes, std::string& why) {
    const bool needs_eal = std::ranges::any_of(options.nets, [](const NodeNet& net) {
        return !shm::is_shm(net.port.device) && !packet::is_packet(net.port.device) &&
               !udp::is_udp(net.port.device) && !verbs::is_verbs(net.port.device);
    });
    if (needs_eal) {
        dpdk::EalReport report;
        if (const Err error = dpdk::start_eal(options.eal, report, why); error != Err::kOk)
            return error;
        notes = report.notes;
    }
    std::unique_ptr<Node> node(new Node);
    for (const NodeNet& net : options.nets) {
        if (const Err error = node->open_port(net.port, options.takes_secrets, why);
            error != Err::kOk)
            return error;
        const auto at = std::ranges::find(node->names_, net.name);
        node->ports_.back().net = static_cast<std::size_t>(at - node->names_.begin());
        if (at == node->names_.end()) node->names_.push_back(net.name);
    }
    if (const Err error = node->bond_ports(options, node->tables_, why); error != Err::kOk)
        return error;
    node->tsc_hz_ = (needs_eal ? dpdk::tsc_hz() : measure_tsc_hz()) * options.slow_time;
    if (!options.trace.file.empty()) {
        if (const Err error = node->open_trace(options, node->tables_, why); error != Err::kOk)
            return error;
    }
    node->config_ = options.engine;
    if (node->config_.seed == 0) node->config_.seed = system_random();
    node->config_.counters = counters;
    node->config_.report = [](void*, const char* sentence) { spdlog::warn("{}", sentence); };
    out = std::move(node);
    return Err::kOk;
}

Err Node::open_trace(const NodeOptions& options, std::vector<Port>& ports, std::string& why) {
    TraceOptions trace = options.trace;
    trace.ether_type = options.engine.ether_type;
    trace.nets = names_;
    trace.tsc_hz = tsc_hz_;
    if (const Err error = Trace::open(trace, trace_, why); error != Err::kOk) return error;
    for (Port& port : ports)
        trace_->watch_port(port);
    return Err::kOk;
}

namespace {

Err open_udp(const dpdk::PortOptions& options, bool takes_secrets,
             std::unique_ptr<udp::UdpPort>& out, std::string& why) {
    udp::PortOptions sockets{.mtu = options.mtu,
                             .ether_type = options.ether_type,
                             .segments = options.segments,
                             .seed = system_random(),
                             .takes_secrets = takes_secrets};
    if (options.exception) {
        why = "the kernel keeps the network of a UDP socket; leave --exception out";
        return Err::kInvalid;
    }
    if (const Err e = udp::parse_device(options.device, sockets.device, why); e != Err::kOk)
        return e;
    return udp::UdpPort::open(sockets, out, why);
}

Err open_verbs(const dpdk::PortOptions& options, std::unique_ptr<verbs::VerbsPort>& out,
               std::string& why) {
    verbs::PortOptions rdma{
        .mtu = options.mtu,
        .ether_type = options.ether_type,
        .segments = options.segments,
        .send_frames = options.tx_descriptors,
        .receive_frames = options.rx_descriptors,
        .report = [](const std::string& line) { spdlog::warn("{}", line); },
    };
    if (options.exception) {
        why =
            "the kernel keeps the network interface of a verbs device, so IP works on it already; "
            "leave --exception out";
        return Err::kInvalid;
    }
    if (const Err e = verbs::parse_device(options.device, rdma.device, why); e != Err::kOk)
        return e;
    return verbs::VerbsPort::open(rdma, nullptr, out, why);
}

}  // namespace

Err Node::open_port(const dpdk::PortOptions& options, bool takes_secrets, std::string& why) {
    OpenPort port;
    Err error = Err::kOk;
    if (shm::is_shm(options.device)) {
        shm::PortOptions on_shm{.mtu = options.mtu, .segments = options.segments};
        error = shm::parse_device(options.device, on_shm.device, why);
        if (error == Err::kOk && options.exception) {
            why = "a wire of shared memory carries no IP; leave --exception out";
            error = Err::kInvalid;
        }
        if (error == Err::kOk) error = shm::ShmPort::open(on_shm, port.shm, why);
    } else if (packet::is_packet(options.device)) {
        packet::PortOptions shared{
            .mtu = options.mtu, .ether_type = options.ether_type, .segments = options.segments};
        error = packet::parse_device(options.device, shared.device, why);
        if (error == Err::kOk && options.exception) {
            why = "the kernel keeps " + shared.device.interface +
                  ", so IP works on it already; leave --exception out";
            error = Err::kInvalid;
        }
        if (error == Err::kOk) error = packet::PacketPort::open(shared, port.packet, why);
    } else if (udp::is_udp(options.device)) {
        error = open_udp(options, takes_secrets, port.udp, why);
    } else if (verbs::is_verbs(options.device)) {
        error = open_verbs(options, port.verbs, why);
    } else {
        error = dpdk::EthdevPort::open(options, port.ethdev, why);
    }
    if (error != Err::kOk) return error;
    if (const std::uint16_t mtu = port.table().info.mtu; mtu < wire::kMtuMin) {
        why = fmt::format(
            "{} has an MTU of {}; at least {} is needed; raise it, or mtu, on every node",
            port.name(), mtu, wire::kMtuMin);
        return Err::kInvalid;
    }
    ports_.push_back(std::move(port));
    return Err::kOk;
}

Err Node::bond_ports(const NodeOptions& options, std::vector<Port>& tables, std::string& why) {
    for (std::size_t net = 0; net < names_.size(); ++net) {
        std::vector<Port> links;
        for (const OpenPort& port : ports_)
            if (port.net == net) links.push_back(port.table());
        if (links.size() == 1) {
            tables.push_back(links[0]);
            continue;
        }
        if (options.mesh) {
            ULC_CHECK(links.size() == 2);
            if (const Err e = check_mesh(links[0], links[1], *options.mesh, names_[net],
                                         options.engine.ether_type, system_random(), why);
                e != Err::kOk)
                return e;
            mesh_ = std::make_unique<port::MeshPort>(
                links[0], links[1],
                port::MeshConfig{options.engine.ether_type, system_random(), *options.mesh});
            tables.push_back(mesh_->table());
            continue;
        }
        if (const Err e =
                check_links(links, names_[net], options.engine.ether_type, system_random(), why);
            e != Err::kOk)
            return e;
        bonds_.push_back(std::make_unique<port::BondPort>(
            links, port::BondConfig{options.engine.ether_type, system_random()}));
        tables.push_back(bonds_.back()->table());
    }
    return Err::kOk;
}

void Node::abandon() noexcept {
    for (OpenPort& port : ports_)
        if (port.shm != nullptr) port.shm->abandon();
}

Result<std::uint32_t> Node::net(std::string_view name) const {
    if (name.empty()) return std::uint32_t{0};
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) return Err::kInvalid;
    return static_cast<std::uint32_t>(at - names_.begin());
}

std::string Node::addresses() const {
    const auto at =
        std::ranges::find_if(ports_, [](const auto& port) { return port.udp != nullptr; });
    return at == ports_.end() ? "" : at->udp->addresses();
}

bool Node::meet(std::string_view addresses) {
    std::vector<udp::Address> read;
    if (!udp::read_addresses(addresses, read)) return false;
    for (const OpenPort& port : ports_)
        if (port.udp != nullptr) port.udp->meet(read);
    return true;
}

bool Node::add_secret(std::span<const std::uint8_t, 16> nonce) noexcept {
    return std::ranges::all_of(ports_, [&](const OpenPort& port) {
        return port.udp == nullptr || port.udp->add_secret(seal::secret_of_nonce(nonce));
    });
}

bool Node::needs_secret() const noexcept {
    return std::ranges::any_of(ports_, [](const OpenPort& port) {
        return port.udp != nullptr && port.udp->needs_secret();
    });
}

std::string Node::ports_as_text() const {
    std::string text;
    for (std::size_t n = 0; n < ports_.size(); ++n) {
        if (n > 0) text += ", ";
        const OpenPort& port = ports_[n];
        const std::string& name = names_[port.net];
        if (names_.size() > 1 || ports_.size() > 1 || name != "0") text += name + ": ";
        text += port.name() + " as " + text_of(port.table().info.mac);
        if (port.ethdev == nullptr) continue;
        if (const auto* path = port.ethdev->exception(); path != nullptr)
            text += ", IP by " + path->interface();
    }
    return text;
}

namespace {

/// Returns "3.1 %".
std::string percent_of(const dpdk::WorkShare& share) {
    const Nanos permille = share.busy() == 0 ? 0 : share.worked() * 1000 / share.busy();
    return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + " %";
}

}  // namespace

std::string Node::exceptions_as_text() const {
    std::string text;
    for (const OpenPort& port : ports_) {
        const dpdk::ExceptionPath* path =
            port.ethdev != nullptr ? port.ethdev->exception() : nullptr;
        if (path == nullptr) continue;
        const dpdk::ExceptionCounts& counts = path->counts();
        text += (text.empty() ? "" : "; ") + path->interface() + ": " +
                std::to_string(counts.to_kernel) + " frames to the kernel, " +
                std::to_string(counts.from_kernel) + " from it, " + std::to_string(counts.lost) +
                " not taken by the other side, " + percent_of(path->thread_share()) +
                " of the engine's time and " + percent_of(path->wire_share()) +
                " of the wire's while frames of the engine came";
    }
    return text;
}

std::string Node::losses_as_text() const {
    std::string text;
    for (const OpenPort& port : ports_) {
        if (port.verbs != nullptr) add_verbs_losses(port.verbs->counts(), port.name(), text);
        if (port.shm == nullptr) continue;
        const shm::Counts& c = port.shm->counts();
        if (c.missed + c.broken + c.too_long + c.no_frame + c.overran == 0) continue;
        text += fmt::format(
            "{}{}: overtaken {} times, {} broken records, {} frames above the MTU, {} without a "
            "buffer (raise --segments); did not wait for a silent station {} times",
            text.empty() ? "" : "; ", port.shm->name(), c.missed, c.broken, c.too_long, c.no_frame,
            c.overran);
    }
    return text;
}

// Appends the losses of an RDMA port.
void Node::add_verbs_losses(const verbs::Counts& c, const std::string& name, std::string& text) {
    if (c.no_handle + c.bad_completions + c.failed_completions + c.too_short + c.too_long +
            c.forged + c.join_failures + c.groups_lost ==
        0)
        return;
    text += fmt::format(
        "{}{}: {} frames without an address handle, {} bad and {} failed completions, {} wrong "
        "lengths, {} frames not of the sender that they name; {} resets; {} multicast groups not "
        "joined and {} lost",
        text.empty() ? "" : "; ", name, c.no_handle, c.bad_completions, c.failed_completions,
        c.too_short + c.too_long, c.forged, c.resets, c.join_failures, c.groups_lost);
}

std::string Node::packets_as_text() const {
    std::string text;
    for (const OpenPort& port : ports_) {
        if (port.packet == nullptr) continue;
        const auto& counts = port.packet->counts();
        const auto& calls = port.packet->ring_counts();
        text += fmt::format("{}{}: {} frames sent by {} system calls, {} of which left some over",
                            text.empty() ? "" : "; ", port.packet->name(), counts.frames_sent,
                            calls.pushes, calls.refusals);
    }
    return text;
}

std::uint64_t system_random() {
    std::uint64_t value = 0;
    ULC_CHECK(getrandom(&value, sizeof value, 0) == sizeof value);
    return value;
}

}  // namespace ulc::daemon

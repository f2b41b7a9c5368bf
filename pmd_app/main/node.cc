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
    const bool needs_eal = std::ranges::any_of(
        options.nets, [](const NodeNet& net) { return wire_of(net.port.device).needs_eal; });
    if (needs_eal) {
        dpdk::EalReport report;
        if (const Err error = dpdk::start_eal(options.eal, report, why); error != Err::kOk)
            return error;
        notes = report.notes;
    }
    std::unique_ptr<Node> node(new Node);
    for (const NodeNet& net : options.nets) {
        if (const Err error = node->open_port(
                {net.port, options.seal, options.ip, options.takes_secrets, system_seed()}, why);
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
    if (node->config_.seed.is_zero()) node->config_.seed = system_seed();
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

Err Node::open_port(const WireOptions& options, std::string& why) {
    OpenPort port;
    if (const Err error = open_wire(options, port.wire, why); error != Err::kOk) return error;
    if (const std::uint16_t mtu = port.wire->table().info.mtu; mtu < wire::kMtuMin) {
        why = fmt::format(
            "{} has an MTU of {}; at least {} is needed; raise it, or mtu, on every node",
            port.wire->name(), mtu, wire::kMtuMin);
        return Err::kInvalid;
    }
    ports_.push_back(std::move(port));
    return Err::kOk;
}

Err Node::bond_ports(const NodeOptions& options, std::vector<Port>& tables, std::string& why) {
    for (std::size_t net = 0; net < names_.size(); ++net) {
        std::vector<Port> links;
        for (const OpenPort& port : ports_)
            if (port.net == net) links.push_back(port.wire->table());
        if (links.size() == 1) {
            tables.push_back(links[0]);
            continue;
        }
        if (options.mesh) {
            ULC_CHECK(links.size() == 2);
            if (const Err e = check_mesh(links[0], links[1], *options.mesh, names_[net],
                                         options.engine.ether_type, system_seed(), why);
                e != Err::kOk)
                return e;
            mesh_ = std::make_unique<port::MeshPort>(
                links[0], links[1],
                port::MeshConfig{options.engine.ether_type, system_seed(), *options.mesh});
            tables.push_back(mesh_->table());
            continue;
        }
        if (const Err e =
                check_links(links, names_[net], options.engine.ether_type, system_seed(), why);
            e != Err::kOk)
            return e;
        bonds_.push_back(std::make_unique<port::BondPort>(
            links, port::BondConfig{options.engine.ether_type, system_seed()}));
        tables.push_back(bonds_.back()->table());
    }
    return Err::kOk;
}

void Node::abandon() noexcept {
    for (OpenPort& port : ports_)
        port.wire->abandon();
}

Result<std::uint32_t> Node::net(std::string_view name) const {
    if (name.empty()) return std::uint32_t{0};
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) return Err::kInvalid;
    return static_cast<std::uint32_t>(at - names_.begin());
}

std::string Node::addresses() const {
    for (const OpenPort& port : ports_)
        if (std::string found = port.wire->addresses(); !found.empty()) return found;
    return {};
}

bool Node::meet(std::string_view addresses) {
    std::vector<udp::Address> nodes;
    if (!udp::read_addresses(addresses, nodes)) return false;
    for (OpenPort& port : ports_)
        port.wire->meet(nodes);
    return true;
}

bool Node::add_secret(std::span<const std::uint8_t, 16> nonce) noexcept {
    return std::ranges::all_of(ports_,
                               [&](OpenPort& port) { return port.wire->add_secret(nonce); });
}

bool Node::needs_secret() const noexcept {
    return std::ranges::any_of(ports_,
                               [](const OpenPort& port) { return port.wire->needs_secret(); });
}

std::string Node::ports_as_text() const {
    std::string text;
    for (std::size_t n = 0; n < ports_.size(); ++n) {
        if (n > 0) text += ", ";
        const OpenPort& port = ports_[n];
        const std::string& name = names_[port.net];
        if (names_.size() > 1 || ports_.size() > 1 || name != "0") text += name + ": ";
        text += port.wire->name() + " as " + text_of(port.wire->table().info.mac);
        if (const std::string interface = port.wire->exception_interface(); !interface.empty())
            text += ", IP by " + interface;
    }
    return text;
}

std::string Node::texts_of(std::string (Wire::*text_of)() const) const {
    std::string all;
    for (const OpenPort& port : ports_) {
        const std::string text = ((*port.wire).*text_of)();
        if (!text.empty()) all += (all.empty() ? "" : "; ") + text;
    }
    return all;
}

seal::Seed system_seed() {
    std::uint64_t words[2]{};
    ULC_CHECK(getrandom(words, sizeof words, 0) == sizeof words);
    return {words[0], words[1]};
}

}  // namespace ulc::daemon

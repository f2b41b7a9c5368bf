#include "main/node.h"

#include <sys/random.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace ulc::daemon {

Err Node::open(const NodeOptions& options, Counters* counters, std::unique_ptr<Node>& out,
               std::vector<std::string>& notes, std::string& why) {
    dpdk::EalReport report;
    if (const Err error = dpdk::start_eal(options.eal, report, why); error != Err::kOk)
        return error;
    notes = report.notes;
    std::unique_ptr<Node> node(new Node);
    std::vector<Port> tables;
    for (const NodeNet& net : options.nets) {
        std::unique_ptr<dpdk::EthdevPort> port;
        if (const Err error = dpdk::EthdevPort::open(net.port, port, why); error != Err::kOk)
            return error;
        tables.push_back(port->port());
        node->ports_.push_back(std::move(port));
        node->names_.push_back(net.name);
    }
    engine::EngineConfig config = options.engine;
    if (config.seed == 0) config.seed = system_random();
    config.counters = counters;
    node->engine_ = std::make_unique<engine::Engine>(config, tables);
    out = std::move(node);
    return Err::kOk;
}

Result<std::uint32_t> Node::net(std::string_view name) const {
    if (name.empty()) return std::uint32_t{0};
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) return Err::kInvalid;
    return static_cast<std::uint32_t>(at - names_.begin());
}

std::string Node::ports_as_text() const {
    std::string text;
    for (std::size_t n = 0; n < ports_.size(); ++n) {
        if (n > 0) text += ", ";
        if (ports_.size() > 1 || names_[n] != "0") text += names_[n] + ": ";
        text += ports_[n]->device().name + " as " + text_of(ports_[n]->port().info.mac);
        if (const auto* path = ports_[n]->exception(); path != nullptr)
            text += ", IP by " + path->interface();
    }
    return text;
}

namespace {

/// "3.1 %"
std::string percent_of(const dpdk::WorkShare& share) {
    const Nanos permille = share.busy() == 0 ? 0 : share.worked() * 1000 / share.busy();
    return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + " %";
}

}  // namespace

std::string Node::exceptions_as_text() const {
    std::string text;
    for (const auto& port : ports_) {
        const dpdk::ExceptionPath* path = port->exception();
        if (path == nullptr) continue;
        const dpdk::ExceptionCounts& counts = path->counts();
        text += (text.empty() ? "" : "; ") + path->interface() + ": " +
                std::to_string(counts.to_kernel) + " frames to the kernel, " +
                std::to_string(counts.from_kernel) + " from it, " + std::to_string(counts.lost) +
                " not taken by the other side, " + percent_of(path->thread_share()) +
                " of the engine's time and " + percent_of(path->wire_share()) +
                " of the wire's while frames of its own came";
    }
    return text;
}

std::uint64_t system_random() {
    std::uint64_t value = 0;
    ULC_CHECK(getrandom(&value, sizeof value, 0) == sizeof value);
    return value;
}

std::string text_of(const Mac& mac) {
    const auto& o = mac.octets;
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", o[0], o[1], o[2], o[3], o[4],
                       o[5]);
}

}  // namespace ulc::daemon

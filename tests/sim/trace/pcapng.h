// Writes what every simulated interface sends and receives as a pcapng file (IETF draft-ietf-opsawg-pcapng), for tshark and
// Wireshark: one interface a node, nanosecond times, each packet marked inbound or outbound. A frame on the way to n nodes is
// there n + 1 times, so a loss shows as an outbound packet that has no inbound one.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "tests/sim/cluster/sim_net.h"

namespace ulc::sim {

class PcapngTrace : public Tap {
public:
    /// Creates or empties the file. nullptr: it cannot be written; errno says why.
    [[nodiscard]] static std::unique_ptr<PcapngTrace> open(const std::string& path,
                                                           std::uint16_t nodes);
    void on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                  Nanos at) override;
    /// Whether everything was written so far.
    [[nodiscard]] bool good() const noexcept { return good_; }

private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    explicit PcapngTrace(std::FILE* file) : file_(file) {}
    void block(std::uint32_t type, const std::vector<std::uint8_t>& body);

    std::unique_ptr<std::FILE, Close> file_;
    bool good_ = true;
};

}  // namespace ulc::sim

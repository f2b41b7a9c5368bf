// SPDX-License-Identifier: BSD-3-Clause
// Writes the frames that every simulated interface sends and receives as a pcapng file (IETF
// draft-ietf-opsawg-pcapng), for tshark and Wireshark: one interface a node, nanosecond times, each
// packet marked inbound or outbound. A frame to n nodes appears n + 1 times, so a loss shows as an
// outbound packet without an inbound one.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "tests/sim/cluster/sim_net.h"

namespace ulc::sim {

class PcapngTrace : public Tap {
public:
    /// Creates or empties the file. Returns nullptr if it cannot be written; errno says why.
    [[nodiscard]] static std::unique_ptr<PcapngTrace> open(const std::string& path,
                                                           std::uint16_t nodes);
    void on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                  Nanos at) override;
    /// Returns true if everything was written until this time.
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

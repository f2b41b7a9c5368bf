// SPDX-License-Identifier: BSD-3-Clause
// Ports over a wire of shared memory, for their tests.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "shm/shm_port.h"

namespace ulc::shm {

class ShmPorts : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/ulc-shm-test.XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder_ = name;
    }
    void TearDown() override {
        unlink(path().c_str());
        rmdir(folder_.c_str());
    }
    [[nodiscard]] std::string path() const { return folder_ + "/wire"; }
    [[nodiscard]] PortOptions options(unsigned station, unsigned stations = 3) const {
        PortOptions options;
        options.device = {path(), station, {stations, 1U << 16}};
        options.segments = 256;
        return options;
    }
    [[nodiscard]] std::unique_ptr<ShmPort> open(unsigned station, unsigned stations = 3) {
        std::unique_ptr<ShmPort> port;
        EXPECT_EQ(ShmPort::open(options(station, stations), port, why_), Err::kOk) << why_;
        return port;
    }

    std::string folder_;
    std::string why_;
};

inline Segment* frame_to(const Port& port, const Mac& to, std::uint32_t length, std::uint8_t fill) {
    Segment* segment = port.pool.get();
    if (segment == nullptr) return nullptr;
    std::memset(segment->frame, fill, length);
    std::memcpy(segment->frame, to.octets.data(), sizeof to);
    segment->length = length;
    return segment;
}

inline bool send(const Port& port, const Mac& to, std::uint32_t length, std::uint8_t fill) {
    Segment* segment = frame_to(port, to, length, fill);
    if (segment == nullptr) return false;
    if (port.tx(port.context, &segment, 1) == 1) return true;
    port.pool.drop(segment);
    return false;
}

/// Sends a frame, retrying for at most a second. Returns how long it took until the frame went.
inline Nanos send_at_last(const Port& port, const Mac& to) {
    const auto began = std::chrono::steady_clock::now();
    for (;;) {
        const bool went = send(port, to, 1514, 'x');
        const Nanos passed =
            (std::chrono::steady_clock::now() - began) / std::chrono::nanoseconds(1);
        if (went || passed > kSecond) return passed;
    }
}

/// Returns the fill character of each frame that waits there.
inline std::string received(const Port& port) {
    std::string fills;
    Segment* burst[8];
    while (const std::uint16_t n = port.rx(port.context, burst, 8)) {
        for (std::uint16_t i = 0; i < n; ++i) {
            fills += static_cast<char>(burst[i]->frame[burst[i]->length - 1]);
            port.pool.drop(burst[i]);
        }
    }
    return fills;
}

}  // namespace ulc::shm

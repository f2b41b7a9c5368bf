// SPDX-License-Identifier: BSD-3-Clause
// The node in the middle of a mesh of 3 × 3 (port/mesh_port.h), over ports that are lists of
// frames.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "port/mesh_port.h"
#include "tests/unit/port/bond_fixture.h"
#include "wire/build.h"
#include "wire/forward.h"

namespace ulc::port {

inline constexpr unsigned kRowLink = 0;
inline constexpr unsigned kColumnLink = 1;

/// The address of the node at (row, column) on its row, or on its column.
inline Mac at(unsigned row, unsigned column, unsigned link = kRowLink) {
    return mac_of(10 * row + column, link);
}
inline const Mac kMe = at(2, 2);
inline const Mac kMyColumn = at(2, 2, kColumnLink);

class Mesh : public testing::Test {
protected:
    void SetUp() override {
        std::string why;
        ASSERT_EQ(pool_.create(512, 1514, why), Err::kOk);
        for (const unsigned link : {kRowLink, kColumnLink}) {
            devices_[link].pool = &pool_;
            make_port(devices_[link], at(2, 2, link), 100'000'000);
        }
        mesh_ = std::make_unique<MeshPort>(devices_[0].port, devices_[1].port,
                                           MeshConfig{wire::kEtherTypeDefault, 1000, {2, 2}});
        port_ = mesh_->table();
        for (std::uint16_t row = 1; row <= 3; ++row)
            for (std::uint16_t column = 1; column <= 3; ++column)
                if (row != 2 || column != 2) know(row, column);
    }
    void TearDown() override {
        mesh_.reset();
        for (Device& device : devices_) {
            device.done(device.with.size());
            for (Segment* segment : device.come)
                FramePool::put(segment);
        }
        EXPECT_EQ(pool_.table().available(&pool_), 512U) << "a frame is lost";
    }
    /// The node announces its addresses and the speeds of its links.
    void know(std::uint16_t row, std::uint16_t column, std::uint32_t row_megabits = 100,
              std::uint32_t column_megabits = 100, bool proved = true) {
        const std::array addresses{NodeAddress{at(row, column), row_megabits, row},
                                   NodeAddress{at(row, column, 1), column_megabits, column}};
        port_.set_addresses(port_.context, addresses, proved);
    }
    Segment* frame(const Mac& to, const Mac& from, std::byte type = kData,
                   std::uint32_t octets = 1000) {
        Segment* segment = pool_.get();
        for (std::uint32_t n = 0; n < octets; ++n)
            segment->frame[n] = static_cast<std::byte>(n % 251);
        std::memset(segment->frame + 14, 0, 14);
        std::memcpy(segment->frame, &to, 6);
        std::memcpy(segment->frame + 6, &from, 6);
        segment->frame[12] = std::byte{0x88};
        segment->frame[13] = std::byte{0xb5};
        segment->frame[14] = type;
        segment->length = octets;
        return segment;
    }
    bool send(const Mac& to, std::byte type = kData, std::uint32_t octets = 1000) {
        Segment* segment = frame(to, kMe, type, octets);
        if (port_.tx(port_.context, &segment, 1) == 1) return true;
        FramePool::put(segment);
        return false;
    }
    /// A frame of `origin` for `destination` that `sender` puts on the segment to `receiver`.
    Segment* forward(const Mac& receiver, const Mac& sender, std::uint8_t hops, const Mac& origin,
                     const Mac& destination, std::byte type = kData, std::uint32_t octets = 1000) {
        Segment* inner = frame(destination, origin, type, octets);
        Segment* outer = pool_.get();
        outer->length = static_cast<std::uint32_t>(
            wire::build_forward(outer->frame, {receiver, sender, hops, origin, destination, 0},
                                wire::kEtherTypeDefault, inner->frame, octets));
        FramePool::put(inner);
        return outer;
    }
    void arrive(unsigned link, Segment* segment) { devices_[link].come.push_back(segment); }
    /// The next frame for the engine, which the test frees; nullptr: none.
    Segment* receive() {
        Segment* segment = nullptr;
        return port_.rx(port_.context, &segment, 1) == 0 ? nullptr : segment;
    }
    /// The source of the next frame; none: there is none.
    Mac received() {
        Segment* segment = receive();
        if (segment == nullptr) return {};
        const Mac from = source_of(*segment);
        FramePool::put(segment);
        return from;
    }
    [[nodiscard]] PortTransit counts() const { return port_.transit(port_.context); }
    std::size_t with(unsigned link) { return devices_[link].with.size(); }
    void done() {
        for (Device& device : devices_)
            device.done(device.with.size());
    }
    /// Looks at the links until the next echo requests; returns how often. Paths whose first link
    /// is in `replies` have a reply.
    unsigned look(const Mac& peer, std::vector<unsigned> replies) {
        unsigned looks = 0;
        const auto requests = [&] { return with(kRowLink) + with(kColumnLink); };
        while (requests() == 0 && ++looks < 300)
            EXPECT_TRUE(port_.link_up(port_.context));
        for (const unsigned link : {kRowLink, kColumnLink}) {
            for (const Segment* request : devices_[link].with) {
                wire::ForwardView view;
                EXPECT_TRUE(wire::parse_forward(request->frame, request->length,
                                                wire::kEtherTypeDefault, view));
                if (view.destination != peer) continue;
                EXPECT_EQ(request->frame[wire::kForwardOctets + 14], std::byte{6});
                if (std::ranges::find(replies, link) == replies.end()) continue;
                Segment* reply = pool_.get();
                std::memcpy(reply->frame, request->frame, request->length);
                reply->length = request->length;
                auto& head = *reinterpret_cast<wire::ForwardHeader*>(reply->frame + 14);
                head.hops = 0;
                head.origin = peer;
                head.destination = kMe;
                const Mac to = at(2, 2, link);
                std::memcpy(reply->frame, &to, 6);
                std::memcpy(reply->frame + 6, &view.receiver, 6);
                reply->frame[wire::kForwardOctets + 14] = std::byte{7};
                arrive(link, reply);
            }
        }
        done();
        EXPECT_EQ(received(), Mac{}) << "replies are not for the engine";
        return looks;
    }
    static wire::ForwardView view_of(const Segment* segment) {
        wire::ForwardView view;
        EXPECT_TRUE(
            wire::parse_forward(segment->frame, segment->length, wire::kEtherTypeDefault, view));
        return view;
    }

    FramePool pool_;
    std::array<Device, 2> devices_;
    std::unique_ptr<MeshPort> mesh_;
    Port port_;
};

}  // namespace ulc::port

// SPDX-License-Identifier: BSD-3-Clause
// Devices and neighbours that lie to an RDMA port, and devices that fail: error completions,
// completions of no request, impossible lengths, forged sources, strangers, refused sends and
// receives, an overrun completion queue, a GID that moves, a device that is gone. The queue pair is
// reset within bounds, or the port ends, and every handle is given back.
#include "tests/unit/verbs/ports.h"

namespace ulc::verbs {
namespace {

// ---- what lies

TEST_F(VerbsPorts, every_failed_completion_resets_the_queue_pair_and_frames_flow_again) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    std::uint64_t resets = 0;
    for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
        ibv_wc failed{};
        failed.status = static_cast<ibv_wc_status>(status);
        if (status % 2 == 0) {
            device(1).holds_sends = true;
            EXPECT_TRUE(send(b, mac(a), 900));
            failed.wr_id = device(1).held.front().wr_id;
            device(1).holds_sends = false;
            device(1).sent.push_back(failed);
            EXPECT_EQ(pending(b), 0U) << "a frame that failed has left";
        } else {
            failed.wr_id = device(1).receives.front().id;
            device(1).receives.pop_front();
            device(1).received.push_back(failed);
            EXPECT_TRUE(take(b).empty());
        }
        EXPECT_FALSE(send(b, mac(a))) << "it is not ready";
        for (int n = 0; n < 3000 && !look(b); ++n) {
        }
        EXPECT_EQ(b.counts().resets, ++resets);
        EXPECT_EQ(pending(b), 0U);
        EXPECT_EQ(available(b), 64U);
        EXPECT_EQ(device(1).receives.size(), 64U);
        take(a);
        EXPECT_TRUE(send(a, mac(b), 500));
        EXPECT_EQ(take(b), std::vector<std::uint32_t>{500});
        EXPECT_TRUE(send(b, mac(a), 501));
        EXPECT_EQ(take(a), std::vector<std::uint32_t>{501});
    }
    EXPECT_EQ(b.counts().failed_completions, resets);
}

TEST_F(VerbsPorts, a_completion_of_no_request_is_ignored) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    device(1).holds_sends = true;
    EXPECT_TRUE(send(b, mac(a), 900));
    const std::uint64_t right = device(1).held.front().wr_id;
    for (const std::uint64_t id :
         {right + 1, right - 1, UINT64_MAX, right + (std::uint64_t{1} << 40)}) {
        ibv_wc wc{};
        wc.wr_id = id;
        device(1).sent.push_back(wc);
    }
    EXPECT_EQ(pending(b), 1U);
    EXPECT_EQ(b.counts().bad_completions, 4U);
    Fabric::release_sends(device(1));
    EXPECT_EQ(pending(b), 0U);

    const std::uint64_t posted = device(1).receives.front().id;
    EXPECT_TRUE(send(a, mac(b), 600));
    device(1).received.push_back(device(1).received.front());  // told twice
    for (const std::uint64_t id : {posted + 64, posted + (std::uint64_t{1} << 32), UINT64_MAX}) {
        ibv_wc wc = device(1).received.front();
        wc.wr_id = id;
        device(1).received.push_back(wc);
    }
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{600});
    EXPECT_EQ(b.counts().bad_completions, 8U);
    EXPECT_TRUE(look(b));
}

TEST_F(VerbsPorts, a_completion_of_before_a_reset_is_ignored) {
    const VerbsPort& b = open(1);
    ibv_wc old{};
    old.wr_id = device(1).receives.front().id;
    old.byte_len = 100;
    old.wc_flags = IBV_WC_GRH;
    Fabric::raise(device(1), IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(look(b));
    EXPECT_EQ(b.counts().resets, 1U);
    device(1).received.push_back(old);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.counts().bad_completions, 1U);
}

TEST_F(VerbsPorts, a_length_that_cannot_be_is_dropped) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const std::uint32_t lies[] = {0, 39, 40, 53, kGrhOctets + kFrameMax + 1, UINT32_MAX};
    for (const std::uint32_t lie : lies) {
        device(1).spoil = [lie](ibv_wc& wc, std::byte*) { wc.byte_len = lie; };
        EXPECT_TRUE(send(a, mac(b), 100));
        EXPECT_TRUE(take(b).empty()) << lie;
    }
    const PortDrops drops = b.port().drops(b.port().context);
    EXPECT_EQ(drops.damaged, 4U);
    EXPECT_EQ(drops.too_long, 2U);
    device(1).spoil = [](ibv_wc& wc, std::byte*) { wc.byte_len = kGrhOctets + 14; };
    EXPECT_TRUE(send(a, mac(b), 100));
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{14});
}

// U-8
TEST_F(VerbsPorts, a_frame_with_the_mac_of_another_is_dropped) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    const auto forge = [&](const Gid& gid, std::uint32_t qpn, const Mac& from) {
        fabric_.deliver(gid, qpn, to, kMulticastQpn, kQKey, payload(mac(b), from));
        return !take(b).empty();
    };
    const Gid own = test::gid_of(9);
    EXPECT_FALSE(forge(own, 17, mac(a))) << "known MAC, other GID";
    EXPECT_FALSE(forge(test::gid_of(1), 18, mac(a))) << "known MAC, other queue pair";
    const Mac stranger{{2, 2, 2, 0, 0, 17}};
    EXPECT_FALSE(forge(own, 17, stranger)) << "a MAC of no node";
    EXPECT_EQ(b.counts().forged, 3U);
    EXPECT_TRUE(forge(own, 17, mac_of({own, 17})));
    EXPECT_EQ(b.counts().forged, 3U);
    device(1).spoil = [](ibv_wc& wc, std::byte*) { wc.wc_flags = 0; };
    EXPECT_FALSE(forge(own, 17, mac_of({own, 17}))) << "without a GRH no sender is known";
    EXPECT_EQ(b.counts().forged, 4U);
}

// U-4
TEST_F(VerbsPorts, a_frame_with_another_q_key_is_the_devices_to_drop) {
    const VerbsPort& b = open(1);
    const Gid own = test::gid_of(9);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    fabric_.deliver(own, 17, to, kMulticastQpn, kQKey + 1, payload(mac(b), mac_of({own, 17})));
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.counts().forged, 0U);
}

TEST_F(VerbsPorts, ten_thousand_strangers_take_a_bounded_table) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    int handles_most = 0;
    for (std::uint32_t n = 0; n < 10'000; ++n) {
        const Gid own = test::gid_of(static_cast<std::uint8_t>(10 + n % 200));
        const Address from{own, 0x1000 + n};
        fabric_.deliver(own, from.qpn, to, kMulticastQpn, kQKey, payload(mac(b), mac_of(from)));
        EXPECT_EQ(take(b).size(), 1U);
        EXPECT_TRUE(send(b, mac_of(from))) << "a handle for each";
        EXPECT_EQ(pending(b), 0U);
        handles_most = std::max(handles_most, device(1).handles);
        take(a);  // the strangers' frames reach all
    }
    EXPECT_EQ(b.counts().peers_learnt, 10'001U);
    EXPECT_LE(handles_most, 4096 + 1);
    EXPECT_GT(handles_most, 2048);
    EXPECT_TRUE(send(a, mac(b), 333));
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{333});
    EXPECT_TRUE(send(b, mac(a), 334)) << "known again, or by all";
    EXPECT_EQ(take(a), std::vector<std::uint32_t>{334});
}

TEST_F(VerbsPorts, a_handle_in_use_is_not_given_back) {
    const VerbsPort& b = open(1);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    device(1).holds_sends = true;
    for (std::uint32_t n = 0; n < 10'000; ++n) {
        const Address from{test::gid_of(9), 0x1000 + n};
        fabric_.deliver(from.gid, from.qpn, to, kMulticastQpn, kQKey,
                        payload(mac(b), mac_of(from)));
        EXPECT_EQ(take(b).size(), 1U);
        if (n < 48) {
            EXPECT_TRUE(send(b, mac_of(from)));
        }
    }
    EXPECT_EQ(device(1).handles, 48) << "each with a frame that is not sent yet";
    EXPECT_EQ(b.counts().flooded, 0U);
    Fabric::release_sends(device(1));
    EXPECT_EQ(pending(b), 0U);
}

// ---- what fails

TEST_F(VerbsPorts, without_a_handle_frames_go_to_all_until_the_next_try) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    device(0).handle_error = ETIMEDOUT;
    const int made = device(0).handles_made;
    for (int n = 0; n < 50; ++n)
        EXPECT_TRUE(send(a, mac(b), 80));
    EXPECT_EQ(device(0).handles_made - made, 1) << "the kernel is asked once";
    EXPECT_EQ(take(b).size(), 50U);
    EXPECT_EQ(a.counts().flooded, 50U);
    device(0).handle_error = 0;
    for (int n = 0; n < 101; ++n)
        EXPECT_TRUE(look(a));
    EXPECT_TRUE(send(a, mac(b), 80));
    EXPECT_EQ(a.counts().flooded, 50U);
    EXPECT_EQ(take(b).size(), 1U);
}

TEST_F(VerbsPorts, a_frame_that_has_no_way_is_lost_and_counted) {
    const VerbsPort& a = open(0);
    const std::uint32_t free = available(a);
    device(0).errors["create_ah"] = ENOMEM;
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(a.counts().no_handle, 1U);
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(available(a), free);
    EXPECT_EQ(device(0).doorbells, 0);
}

TEST_F(VerbsPorts, a_refused_chain_leaves_the_rest_to_the_caller) {
    const VerbsPort& a = open(0);
    for (const int at : {0, 1, 5}) {
        device(0).send_error = ENOMEM;
        device(0).send_error_at = at;
        std::array<Segment*, 8> burst{};
        for (Segment*& each : burst)
            each = frame(a, kBroadcastMac, 900);
        EXPECT_EQ(a.port().tx(a.port().context, burst.data(), 8), at);
        EXPECT_EQ(
            a.port().tx(a.port().context, burst.data() + at, static_cast<std::uint16_t>(8 - at)),
            8 - at);
        EXPECT_EQ(pending(a), 0U);
        EXPECT_EQ(available(a), 64U);
    }
    EXPECT_EQ(a.counts().refusals, 3U);
    EXPECT_EQ(a.counts().resets, 0U);
    device(0).bad_is_wild = true;
    device(0).send_error = EINVAL;
    device(0).send_error_at = 0;
    EXPECT_FALSE(send(a, kBroadcastMac));
    EXPECT_TRUE(look(a));
    EXPECT_EQ(a.counts().resets, 1U);
    EXPECT_TRUE(send(a, kBroadcastMac));
}

TEST_F(VerbsPorts, a_refused_receive_resets_the_queue_pair) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    for (const bool wild : {false, true}) {
        device(1).bad_is_wild = wild;
        device(1).receive_error_at = 3;
        for (int n = 0; n < 17; ++n)
            EXPECT_TRUE(send(a, kBroadcastMac));
        EXPECT_EQ(take(b).size(), 17U);
        EXPECT_TRUE(take(b).empty());
        for (int n = 0; n < 10 && !look(b); ++n) {
        }
        EXPECT_TRUE(look(b));
        EXPECT_EQ(device(1).receives.size(), 64U);
    }
    EXPECT_EQ(b.counts().resets, 2U);
}

TEST_F(VerbsPorts, a_queue_pair_that_stays_broken_is_tried_ever_less_often) {
    const VerbsPort& a = open(0);
    Fabric::raise(device(0), IBV_EVENT_QP_FATAL);
    device(0).errors["modify_qp"] = EINVAL;
    for (int n = 0; n < 10'000; ++n)
        EXPECT_FALSE(look(a));
    EXPECT_GE(g_reports.size(), 10U);
    EXPECT_LE(g_reports.size(), 25U) << "ten, then one each ten seconds";
    EXPECT_NE(
        g_reports[0].find("verbs rxe0: its queue pair failed; its queue pair cannot be reset"),
        std::string::npos)
        << g_reports[0];
    device(0).errors.clear();
    int looks = 0;
    while (!look(a) && looks < 2000)
        ++looks;
    EXPECT_LT(looks, 1025);
    EXPECT_EQ(a.counts().resets, 1U);
    for (int n = 0; n < 1100; ++n)
        EXPECT_TRUE(look(a));
    Fabric::raise(device(0), IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(look(a)) << "after calm, at once";
}

TEST_F(VerbsPorts, an_overrun_completion_queue_ends_the_port_and_nothing_else) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    Fabric::raise(device(1), IBV_EVENT_CQ_ERR);
    EXPECT_FALSE(look(b));
    EXPECT_FALSE(send(b, kBroadcastMac));
    EXPECT_TRUE(send(a, mac(b)));
    EXPECT_TRUE(take(b).empty());
    for (int n = 0; n < 100; ++n)
        EXPECT_FALSE(look(b));
    ASSERT_EQ(g_reports.size(), 1U);
    EXPECT_NE(g_reports[0].find("start the engine again"), std::string::npos);
}

TEST_F(VerbsPorts, a_device_that_is_gone_ends_the_port_with_frames_in_it) {
    const VerbsPort& a = open(0);
    device(0).holds_sends = true;
    EXPECT_TRUE(send(a, kBroadcastMac));
    Fabric::raise(device(0), IBV_EVENT_DEVICE_FATAL);
    EXPECT_FALSE(look(a));
    EXPECT_EQ(pending(a), 1U);
    close(a);  // the fabric's end sees that all was given back
}

TEST_F(VerbsPorts, a_device_that_was_taken_out_ends_the_port) {
    const VerbsPort& a = open(0);
    device(0).errors["get_async_event"] = EINTR;
    EXPECT_TRUE(look(a));
    device(0).errors["get_async_event"] = EIO;
    EXPECT_FALSE(look(a));
    EXPECT_FALSE(send(a, kBroadcastMac));
    ASSERT_EQ(g_reports.size(), 1U);
    EXPECT_NE(g_reports[0].find("the device is gone"), std::string::npos) << g_reports[0];
}

TEST_F(VerbsPorts, polling_that_fails_resets) {
    const VerbsPort& a = open(0);
    device(0).errors["poll_cq"] = -1;
    EXPECT_EQ(pending(a), 0U);
    device(0).errors.clear();
    EXPECT_TRUE(look(a));
    EXPECT_EQ(a.counts().resets, 1U);
    device(0).errors["poll_cq"] = -1;
    EXPECT_TRUE(take(a).empty());
    device(0).errors["poll_cq"] = 0x7fffffff;  // more than were asked for
    static_cast<void>(pending(a));
    device(0).errors.clear();
    for (int n = 0; n < 10 && !look(a); ++n) {
    }
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(pending(a), 0U);
}

TEST_F(VerbsPorts, the_link_follows_the_port) {
    const VerbsPort& a = open(0);
    device(0).port.state = IBV_PORT_DOWN;
    EXPECT_TRUE(look(a)) << "no event told";
    Fabric::raise(device(0), IBV_EVENT_PORT_ERR, 2);
    EXPECT_TRUE(look(a)) << "another port";
    Fabric::raise(device(0), IBV_EVENT_PORT_ERR);
    EXPECT_FALSE(look(a));
    device(0).port.state = IBV_PORT_ACTIVE;
    Fabric::raise(device(0), IBV_EVENT_PORT_ACTIVE);
    EXPECT_TRUE(look(a));
    device(0).port.active_mtu = IBV_MTU_512;
    Fabric::raise(device(0), IBV_EVENT_PORT_ACTIVE);
    EXPECT_FALSE(look(a)) << "our frames do not fit any more";
    EXPECT_EQ(g_reports.size(), 3U);
    Fabric::raise(device(0), IBV_EVENT_SQ_DRAINED);
    EXPECT_FALSE(look(a));
}

TEST_F(VerbsPorts, a_gid_that_moves_is_followed_and_one_that_goes_is_told) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    EXPECT_TRUE(send(a, mac(b)));
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_TRUE(look(a)) << "another entry of the table";
    EXPECT_EQ(a.counts().resets, 0U);

    device(0).gids.insert(device(0).gids.begin(), ibv_gid_entry{});
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_TRUE(look(a));
    EXPECT_EQ(a.counts().resets, 1U);
    EXPECT_EQ(device(0).handles, 0) << "all named the old place";
    take(b);
    EXPECT_TRUE(send(a, mac(b), 99));
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{99});

    const ibv_gid_entry own = device(0).gids.back();
    device(0).gids.pop_back();
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_FALSE(look(a));
    EXPECT_NE(g_reports.back().find("its GID is gone"), std::string::npos);
    device(0).gids.push_back(own);
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_TRUE(look(a));
}

TEST_F(VerbsPorts, another_gid_in_the_place_of_its_own_is_another_address) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    EXPECT_TRUE(send(a, mac(b)));
    take(b);
    const Mac old = mac(a);
    const auto state = [&] { return *a.port().interface(a.port().context); };
    EXPECT_EQ(state().mac, old);
    EXPECT_EQ(state().mtu, a.port().info.mtu);
    const Gid next = test::gid_of(9);
    std::memcpy(device(0).gids[0].gid.raw, next.data(), next.size());
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_FALSE(look(a)) << "no frame goes by the old one";
    EXPECT_NE(g_reports.back().find("another one is in its place"), std::string::npos);
    EXPECT_EQ(state().name, "rxe0");
    EXPECT_EQ(state().own, old);
    EXPECT_NE(state().mac, old);
    EXPECT_FALSE(state().keeps_own);
    EXPECT_EQ(mac(a), old) << "until the engine takes it";

    const Mac taken = a.port().take_address(a.port().context);
    EXPECT_EQ(taken, mac_of({next, device(0).qp_number}));
    EXPECT_EQ(mac(a), taken);
    EXPECT_TRUE(state().keeps_own);
    EXPECT_TRUE(look(a));
    EXPECT_EQ(a.counts().resets, 1U) << "every address handle names the old place";
    EXPECT_TRUE(send(a, mac(b), 99));
    EXPECT_TRUE(send(b, kBroadcastMac, 98));
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{99});
    EXPECT_EQ(take(a), std::vector<std::uint32_t>{98});
    EXPECT_EQ(b.counts().forged, 0U);
}

TEST_F(VerbsPorts, a_gid_of_another_kind_takes_no_place) {
    PortOptions by_index = options(0);
    by_index.device.gid = std::uint16_t{0};
    for (const bool chosen : {false, true}) {
        const VerbsPort& a = open(chosen ? by_index : options(0));
        const ibv_gid_entry own = device(0).gids[0];
        const Gid other = test::gid_of(9, true);
        std::memcpy(device(0).gids[0].gid.raw, other.data(), other.size());
        Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
        EXPECT_FALSE(look(a));
        EXPECT_TRUE(a.port().interface(a.port().context)->keeps_own);
        EXPECT_NE(g_reports.back().find("give it the same again"), std::string::npos);
        device(0).gids[0] = own;
        Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
        EXPECT_TRUE(look(a)) << "as after the interface went down and up";
        EXPECT_EQ(a.port().take_address(a.port().context), mac(a));
        EXPECT_EQ(a.counts().resets, 0U);
        close(a);
    }
}

TEST_F(VerbsPorts, a_group_that_cannot_be_joined_is_tried_again) {
    const VerbsPort& b = open(1);
    const Mac group{{0x03, 0x55, 0x4c, 0, 0, 9}};
    device(1).errors["attach_mcast"] = ENOMEM;
    EXPECT_FALSE(b.port().set_multicasts(b.port().context, std::array{group}));
    EXPECT_FALSE(b.port().set_multicasts(b.port().context, std::array{group}));
    EXPECT_EQ(g_reports.size(), 1U) << "told once";
    device(1).errors.clear();
    for (int n = 0; n < 100; ++n)
        EXPECT_TRUE(look(b));
    EXPECT_EQ(device(1).groups.size(), 2U);
    ASSERT_EQ(g_reports.size(), 2U);
    EXPECT_NE(g_reports[1].find("has joined"), std::string::npos);
    EXPECT_EQ(device(1).memberships, 4) << "one each try, and the first";
}

}  // namespace
}  // namespace ulc::verbs

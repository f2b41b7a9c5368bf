// SPDX-License-Identifier: BSD-3-Clause
// Tests the options of an engine: the devices, which are nets, and the options that they require of
// each other.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "main/net_options.h"
#include "main/options.h"
#include "main/wires/wire.h"

namespace ulc::daemon {
namespace {

/// Parses the words as typed. Returns false if they are refused, with `status`.
bool parse(std::initializer_list<const char*> words, Options& out) {
    std::vector<const char*> argv{"ulc-engine"};
    argv.insert(argv.end(), words.begin(), words.end());
    int status = 0;
    return parse_daemon_options(static_cast<int>(argv.size()), argv.data(), out, status);
}

std::string refusal(const char* devices, const char* more = "") {
    Options options;
    std::string why;
    EXPECT_EQ(parse_embedded_options(devices, more, options, why), Err::kInvalid);
    return why;
}

TEST(EngineOptions, each_device_is_a_net_called_by_its_place) {
    Options options;
    ASSERT_TRUE(parse({"--device", "net_memif,role=server,socket=/a", "--device", "0000:03:00.0"},
                      options));
    const auto nets = nets_of(options.devices);
    ASSERT_EQ(nets.size(), 2U);
    EXPECT_EQ(nets[0].name, "0");
    EXPECT_EQ(nets[0].device, "net_memif,role=server,socket=/a");
    EXPECT_EQ(nets[1].name, "1");
    EXPECT_EQ(nets[1].device, "0000:03:00.0");
    const NodeOptions node = node_options_of(options);
    ASSERT_EQ(node.nets.size(), 2U);
    EXPECT_EQ(node.nets[1].port.device, "0000:03:00.0");
    EXPECT_EQ(node.eal.devices, (std::vector<std::string>{nets[0].device, nets[1].device}));
    EXPECT_EQ(attach_options_of(options).rules.nets, (std::vector<std::string>{"0", "1"}));
}

// A rank of MPI has up to three endpoints, so 65 ranks of a node fit twice.
TEST(EngineOptions, an_engine_has_at_least_512_endpoints_unless_another_number_is_given) {
    Options options;
    ASSERT_TRUE(parse({"--device", "net_tap"}, options));
    const NodeOptions usual = node_options_of(options);
    EXPECT_GE(usual.engine.endpoints_max, 512U);
    EXPECT_GE(usual.engine.jobs.jobs_max, 512U);
    EXPECT_GE(attach_options_of(options).connections_max, 1024U);
    ASSERT_TRUE(parse({"--device", "net_tap", "--endpoints", "8"}, options));
    EXPECT_EQ(node_options_of(options).engine.endpoints_max, 8U);
}

TEST(EngineOptions, a_name_stands_before_the_first_colon_and_an_address_is_none) {
    const auto nets = nets_of({"lab:net_tap", "af:00.0", "x.y-2_z:0000:af:00.0", "3com:net_tap",
                               "net_tap,mac=02:00:00:00:00:01"});
    ASSERT_EQ(nets.size(), 5U);
    EXPECT_EQ(nets[0].name, "lab");
    EXPECT_EQ(nets[0].device, "net_tap");
    EXPECT_EQ(nets[1].name, "1");
    EXPECT_EQ(nets[1].device, "af:00.0");
    EXPECT_EQ(nets[2].name, "x.y-2_z");
    EXPECT_EQ(nets[2].device, "0000:af:00.0");
    EXPECT_EQ(nets[3].device, "3com:net_tap") << "a name starts with a letter";
    EXPECT_EQ(nets[4].device, "net_tap,mac=02:00:00:00:00:01");
}

TEST(EngineOptions, a_configuration_file_has_one_device_or_a_list) {
    const std::string path = testing::TempDir() + "engine_options_test.toml";
    const std::string flag = "--config=" + path;
    std::ofstream(path) << "device = [\"net_tap0,iface=a\", \"lab:net_tap1,iface=b\"]\n";
    Options options;
    ASSERT_TRUE(parse({flag.c_str()}, options));
    EXPECT_EQ(options.devices,
              (std::vector<std::string>{"net_tap0,iface=a", "lab:net_tap1,iface=b"}));
    std::ofstream(path) << "device = \"net_tap0,iface=a\"\n";
    ASSERT_TRUE(parse({flag.c_str()}, options));
    EXPECT_EQ(options.devices, (std::vector<std::string>{"net_tap0,iface=a"}));
    EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST(EngineOptions, an_embedded_engine_takes_several_between_semicolons) {
    Options options;
    std::string why;
    ASSERT_EQ(parse_embedded_options("net_tap0,iface=a;b:net_tap1,iface=b", "", options, why),
              Err::kOk)
        << why;
    EXPECT_EQ(options.devices,
              (std::vector<std::string>{"net_tap0,iface=a", "b:net_tap1,iface=b"}));
    ASSERT_EQ(parse_embedded_options("", "--device net_tap", options, why), Err::kOk) << why;
    EXPECT_EQ(options.devices, (std::vector<std::string>{"net_tap"}));
}

TEST(EngineOptions, a_peer_is_dead_after_the_same_time_to_who_sends_and_to_who_waits) {
    for (const char* dead_us : {"500000", "2000000", "60000000"}) {
        Options options;
        ASSERT_TRUE(parse({"--device", "d", "--peer-dead", dead_us}, options));
        const engine::EngineConfig engine = node_options_of(options).engine;
        const Nanos dead = std::atol(dead_us) * kMicrosecond;
        EXPECT_EQ(engine.params.peer_dead, dead);
        EXPECT_EQ(engine.jobs.liveness.node_dead, dead);
        EXPECT_LE(engine.jobs.liveness.node_idle, dead / 8) << "time for its pings";
    }
}

TEST(EngineOptions, devices_of_one_name_are_links_of_one_net) {
    Options options;
    std::string why;
    ASSERT_EQ(parse_embedded_options("a:net_tap0;b:net_tap2;a:net_tap1", "", options, why),
              Err::kOk)
        << why;
    const NodeOptions node = node_options_of(options);
    ASSERT_EQ(node.nets.size(), 3U);
    EXPECT_EQ(node.nets[0].name, "a");
    EXPECT_EQ(node.nets[2].name, "a");
    EXPECT_EQ(attach_options_of(options).rules.nets, (std::vector<std::string>{"a", "b"}));
}

TEST(EngineOptions, what_cannot_be_is_refused_in_words) {
    EXPECT_NE(refusal("").find("no device"), std::string::npos);
    EXPECT_NE(refusal("a:net_tap0;a:net_tap0").find("net_tap0 is twice in net a"),
              std::string::npos);
    EXPECT_NE(refusal("a:net_tap0;a:net_af_packet,iface=b").find("are unlike wires"),
              std::string::npos);
    EXPECT_NE(refusal("a:shm,path=x,station=0;a:shm,path=y,station=0").find("cannot be one of"),
              std::string::npos);
    EXPECT_NE(refusal("a:net_tap0;a:net_tap1;a:net_tap2;a:net_tap3;a:net_tap4")
                  .find("a net has at most 4 links"),
              std::string::npos);
    EXPECT_NE(refusal("a:net_tap0;a:net_tap1", "--crc").find("--crc does not go with"),
              std::string::npos);
    EXPECT_NE(refusal("a:net_tap0;b:net_tap0").find("net_tap0 is there twice"), std::string::npos);
    EXPECT_NE(refusal("lab:").find("--device is empty"), std::string::npos);
    EXPECT_NE(refusal("net_tap0", "--mtu 575").find("--mtu must be at least 576"),
              std::string::npos);
    const std::string long_name(32, 'n');
    EXPECT_NE(refusal((long_name + ":net_tap").c_str()).find("longer than 31"), std::string::npos);
    std::string many;
    for (int n = 0; n < 17; ++n)
        many += "net_tap" + std::to_string(n) + ";";
    EXPECT_NE(refusal(many.c_str()).find("at most 16 nets"), std::string::npos);
}

TEST(Wires, a_device_belongs_to_the_kind_of_its_name) {
    EXPECT_EQ(&wire_of("shm,path=/dev/shm/a,station=0"), &wire_shm);
    EXPECT_EQ(&wire_of("net_af_packet,iface=a"), &wire_packet);
    EXPECT_EQ(&wire_of("net_af_packet1,iface=a"), &wire_packet);
    EXPECT_EQ(&wire_of("udp"), &wire_udp);
    EXPECT_EQ(&wire_of("verbs,dev=a"), &wire_verbs);
    for (const char* device : {"0000:03:00.0", "net_memif,role=client", "shmx", "udpx", "eth0", ""})
        EXPECT_EQ(&wire_of(device), &wire_ethdev) << device;
}

TEST(Wires, leave_to_the_sandbox_what_their_ports_use) {
    const auto needs = [](const char* device) {
        SandboxNeeds all;
        wire_of(device).add_needs(device, all);
        return all;
    };
    const SandboxNeeds memory = needs("shm,path=/dev/shm/a,station=0");
    EXPECT_FALSE(memory.packet_socket || memory.kernel_interface || memory.udp || memory.rdma ||
                 memory.card || !memory.paths.empty());
    EXPECT_TRUE(needs("net_af_packet,iface=a").packet_socket);
    EXPECT_TRUE(needs("udp").udp);
    EXPECT_TRUE(needs("verbs,dev=a").rdma);
    EXPECT_TRUE(needs("0000:03:00.0").card);
    EXPECT_TRUE(needs("net_tap").kernel_interface);
    EXPECT_EQ(needs("net_memif,role=server,socket=/a").paths, (std::vector<std::string>{"/a"}));
}

TEST(Wires, without_an_exception_interface_say_so) {
    for (const char* device : {"shm,path=x,station=0", "net_af_packet,iface=a", "udp", "verbs"}) {
        WireOptions options;
        options.port.device = device;
        options.port.exception = true;
        std::unique_ptr<Wire> wire;
        std::string why;
        EXPECT_EQ(open_wire(options, wire, why), Err::kInvalid) << device;
        EXPECT_NE(why.find("leave --exception out"), std::string::npos) << device << ": " << why;
    }
}

TEST(EngineOptions, users_and_groups_have_names_or_numbers) {
    Options options;
    ASSERT_TRUE(parse({"--device", "d", "--allow-uid", "root", "--allow-uid", "65000",
                       "--allow-gid", "daemon", "--allow-gid", "65001"},
                      options));
    const AttachOptions attach = attach_options_of(options);
    EXPECT_EQ(attach.allow_uids, (std::vector<uid_t>{0, 65000}));
    EXPECT_EQ(attach.allow_gids, (std::vector<gid_t>{1, 65001}));
}

TEST(EngineOptions, an_unknown_user_or_group_is_named) {
    EXPECT_EQ(refusal("net_tap", "--allow-uid no_such_user"),
              "--allow-uid: there is no user 'no_such_user'; getent passwd lists all");
    EXPECT_EQ(refusal("net_tap", "--allow-gid daemon --allow-gid no_such_group"),
              "--allow-gid: there is no group 'no_such_group'; getent group lists all");
    for (const char* number : {"-1", "4294967295", "4294967296", "1x", "0x1"})
        EXPECT_NE(refusal("net_tap", (std::string("--allow-gid=") + number).c_str()), "") << number;
}

TEST(EngineOptions, memory_is_counted_for_all_nets) {
    Options options;
    std::string why;
    const std::string one = "--segments 8192 --memory 96";
    EXPECT_EQ(parse_embedded_options("net_tap0", one.c_str(), options, why), Err::kOk) << why;
    why = refusal("net_tap0;net_tap1", one.c_str());
    EXPECT_NE(why.find("2 nets of --segments 8192 need --memory"), std::string::npos) << why;
    EXPECT_EQ(parse_embedded_options("net_tap0;net_tap1", "", options, why), Err::kOk)
        << "two nets start with nothing but their devices: " << why;
}

TEST(EngineOptions, memory_grows_with_what_is_kept_in_it) {
    Options options;
    std::string why;
    ASSERT_EQ(parse_embedded_options("net_tap", "", options, why), Err::kOk) << why;
    EXPECT_EQ(node_options_of(options).eal.memory_mb, 96U);
    ASSERT_EQ(parse_embedded_options("net_tap", "--mtu 9000", options, why), Err::kOk) << why;
    EXPECT_EQ(node_options_of(options).eal.memory_mb, 120U);
    ASSERT_EQ(parse_embedded_options("net_tap", "--memory 64", options, why), Err::kOk) << why;
    EXPECT_EQ(node_options_of(options).eal.memory_mb, 64U);
}

TEST(EngineOptions, times_take_units_on_the_command_line_and_in_the_file) {
    Options options;
    std::string why;
    ASSERT_EQ(
        parse_embedded_options("net_tap", "--peer-dead 5s --nap 1.5ms --spin 70", options, why),
        Err::kOk)
        << why;
    EXPECT_EQ(options.peer_dead, 5 * kSecond);
    EXPECT_EQ(options.nap, 1500 * kMicrosecond);
    EXPECT_EQ(options.spin, 70 * kMicrosecond);
    EXPECT_EQ(options.params.join_timeout, 60 * kSecond) << "the default";
    EXPECT_EQ(
        refusal("net_tap", "--peer-dead 5x"),
        "ULC_ENGINE_OPTIONS: --peer-dead: 5x is no time; write a number and ns, us, ms, s, min "
        "or h, from 1 ms to 10 min; without a unit it is in us");
    EXPECT_EQ(refusal("net_tap", "--peer-dead 5"),
              "ULC_ENGINE_OPTIONS: --peer-dead: 5 us is out of range; write a time from 1 ms to 10 "
              "min");
    const std::string path = testing::TempDir() + "engine_times_test.toml";
    std::ofstream(path) << "device = \"net_tap\"\npeer-dead = \"7 s\"\nnap = 900\n";
    ASSERT_TRUE(parse({("--config=" + path).c_str()}, options));
    EXPECT_EQ(options.peer_dead, 7 * kSecond);
    EXPECT_EQ(options.nap, 900 * kMicrosecond);
    EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST(EngineOptions, an_unknown_option_gets_the_nearest_one_if_one_is_near) {
    EXPECT_EQ(refusal("net_tap", "--windw 64"),
              "ULC_ENGINE_OPTIONS: there is no option --windw; did you mean --window? --help lists "
              "all");
    EXPECT_EQ(refusal("net_tap", "--verbosity"),
              "ULC_ENGINE_OPTIONS: there is no option --verbosity; --help lists all");
    EXPECT_EQ(refusal("net_tap", "64"),
              "ULC_ENGINE_OPTIONS: one word too many: 64; --help lists the options");
}

TEST(EngineOptions, parameters_are_numbers_and_times) {
    Options options;
    std::string why;
    ASSERT_EQ(parse_embedded_options("net_tap",
                                     "--param ack-delay=300us --param ack-window=32 "
                                     "--param min-req-gap=7 --param ack-window=8",
                                     options, why),
              Err::kOk)
        << why;
    const urtp::Params params = node_options_of(options).engine.params;
    EXPECT_EQ(params.ack_delay, 300 * kMicrosecond);
    EXPECT_EQ(params.min_req_gap, 7 * kMicrosecond) << "without a unit it is in us";
    EXPECT_EQ(params.ack_window, 8U) << "the last one counts";
    EXPECT_EQ(params.max_recv_wait, 100 * kMillisecond) << "the default";
}

TEST(EngineOptions, each_parameter_has_an_effect) {
    Options options;
    ASSERT_TRUE(
        parse({"--device=d", "--param=ack-window=17", "--param=ack-delay=1ms",
               "--param=ack-delay-max=2ms", "--param=min-req-gap=3ms", "--param=min-recv-wait=4ms",
               "--param=max-recv-wait=5ms", "--param=initial-rtt=6ms", "--param=min-send-wait=7ms",
               "--param=max-send-wait=8ms", "--param=hold-limit=9ms", "--param=rx-pool=18",
               "--param=join-timeout=10ms", "--param=client-errors=19", "--param=offloads=20",
               "--param=offload-steps=21", "--param=arena-max=4194304"},
              options));
    const engine::EngineConfig engine = node_options_of(options).engine;
    const urtp::Params& p = engine.params;
    EXPECT_EQ(std::vector<Nanos>({p.ack_delay, p.ack_delay_max, p.min_req_gap, p.min_recv_wait,
                                  p.max_recv_wait, p.initial_rtt, p.min_send_wait, p.max_send_wait,
                                  p.hold_limit, engine.join_timeout}),
              std::vector<Nanos>({1'000'000, 2'000'000, 3'000'000, 4'000'000, 5'000'000, 6'000'000,
                                  7'000'000, 8'000'000, 9'000'000, 10'000'000}));
    EXPECT_EQ(std::vector<std::size_t>({p.ack_window, p.rx_pool_packets,
                                        engine.accounts.errors_per_second, engine.offloads_max,
                                        engine.offload_steps_max}),
              std::vector<std::size_t>({17, 18, 19, 20, 21}));
    EXPECT_EQ(attach_options_of(options).rules.sizes_max.tx_arena_octets, 4194304U);
}

TEST(EngineOptions, a_configuration_file_has_a_list_of_parameters) {
    const std::string path = testing::TempDir() + "engine_params_test.toml";
    std::ofstream(path) << "device = \"d\"\nparam = [\"rx-pool=64\", \"hold-limit=2s\"]\n";
    Options options;
    ASSERT_TRUE(parse({("--config=" + path).c_str()}, options));
    EXPECT_EQ(options.params.rx_pool, 64U);
    EXPECT_EQ(options.params.hold_limit, 2 * kSecond);
    EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST(EngineOptions, a_parameter_that_is_wrong_is_refused_with_what_to_write) {
    const auto refused = [](const char* text) {
        return refusal("net_tap", (std::string("--param ") + text).c_str());
    };
    EXPECT_EQ(refused("ack-dely=1ms"),
              "--param: there is no parameter ack-dely; did you mean ack-delay? --help-params "
              "lists all");
    EXPECT_EQ(refused("verbosity=1"),
              "--param: there is no parameter verbosity; --help-params lists all");
    EXPECT_EQ(refused("ack-delay"),
              "--param ack-delay: there is no value; write ack-delay=TIME, from 0 to 1 s");
    EXPECT_EQ(refused("ack-delay=2s"),
              "--param ack-delay: 2s is out of range; write a time from 0 to 1 s");
    EXPECT_EQ(refused("ack-delay=x"),
              "--param ack-delay: x is no time; write a number and ns, us, ms, s, min or h, from 0 "
              "to 1 s; without a unit it is in us");
    for (const char* value : {"0", "-1", "1025", "4294967297", "99999999999999999999"})
        EXPECT_EQ(refused((std::string("ack-window=") + value).c_str()),
                  std::string("--param ack-window: ") + value +
                      " is out of range; write packets from 1 to 1024");
    for (const char* value : {"", "x", "16x", "0x10", "+1"})
        EXPECT_EQ(refused((std::string("ack-window=") + value).c_str()),
                  std::string("--param ack-window: ") + value +
                      " is no number; write packets from 1 to 1024");
    EXPECT_EQ(refused("max-send-wait=1s"),
              "--peer-dead must be at least four times max-send-wait of --param, or a few lost "
              "probes kill a peer");
}

TEST(EngineOptions, an_option_that_became_a_parameter_is_named) {
    EXPECT_EQ(refusal("net_tap", "--ack-delay 300"),
              "ULC_ENGINE_OPTIONS: --ack-delay is a parameter: write --param ack-delay=VALUE; "
              "--help-params lists all");
    EXPECT_EQ(refusal("net_tap", "--hold-told=2s"),
              "ULC_ENGINE_OPTIONS: --hold-told is a parameter: write --param hold-limit=VALUE; "
              "--help-params lists all");
}

TEST(EngineOptions, the_list_of_parameters_has_defaults_and_ranges) {
    const std::string text = params_as_text();
    EXPECT_NE(text.find("\n  ack-window     unicast packets for each ACK; half a window where a "
                        "half-duplex wire lets that be [16 packets; 1 to 1024]\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("[100 ms; 1 us to 10 s]\n"), std::string::npos) << text;
}

TEST(EngineOptions, a_place_of_a_mesh_is_a_row_and_a_column) {
    port::MeshPlace place;
    ASSERT_TRUE(parse_place("2,1024", place));
    EXPECT_EQ(place.row, 2);
    EXPECT_EQ(place.column, 1024);
    for (const char* wrong : {"", ",", "2", "2,", ",2", "0,1", "1,0", "1025,1", "1,1025", "-1,1",
                              "1,2,3", "1, 2", "a,b", "1,2 ", "99999999999,1"})
        EXPECT_FALSE(parse_place(wrong, place)) << wrong;
}

TEST(EngineOptions, a_mesh_is_one_net_of_two_devices) {
    const char* const two = "lan:net_tap0;lan:net_tap1";
    Options options;
    std::string why;
    ASSERT_EQ(parse_embedded_options(two, "--mesh=2,3", options, why), Err::kOk) << why;
    const NodeOptions node = node_options_of(options);
    ASSERT_TRUE(node.mesh.has_value());
    EXPECT_EQ(node.mesh->row, 2);
    EXPECT_EQ(node.mesh->column, 3);
    EXPECT_NE(refusal(two, "--mesh=2").find("--mesh 2 is no place"), std::string::npos);
    for (const char* devices :
         {"lan:net_tap0", "lan:net_tap0;net_tap1", "lan:net_tap0;lan:net_tap1;lan:net_tap2",
          "lan:net_tap0;lan:net_tap1;net_tap2"})
        EXPECT_NE(refusal(devices, "--mesh=2,3").find("one net with two devices"),
                  std::string::npos)
            << devices;
}

TEST(EngineOptions, an_ip_address_is_for_one_device_that_the_kernel_does_not_have) {
    Options options;
    std::string why;
    ASSERT_EQ(
        parse_embedded_options("0000:03:00.0", "--ip=10.0.0.5/24,open --gateway=10.0.0.1 --vlan=7",
                               options, why),
        Err::kOk)
        << why;
    const NodeOptions node = node_options_of(options);
    EXPECT_EQ(node.ip.address, 0x0a000005U);
    EXPECT_EQ(node.ip.gateway, 0x0a000001U);
    EXPECT_EQ(node.ip.vlan, 7);
    EXPECT_TRUE(node.ip.socket.open);
    ASSERT_EQ(parse_embedded_options("0000:03:00.0", "", options, why), Err::kOk) << why;
    EXPECT_EQ(node_options_of(options).ip.address, 0U);
    EXPECT_NE(refusal("net_tap0", "--ip=10.0.0.5").find("as 10.0.0.5/24"), std::string::npos);
    EXPECT_NE(refusal("net_tap0", "--gateway=10.0.0.1").find("belong to --ip"), std::string::npos);
    EXPECT_NE(refusal("net_tap0", "--vlan=7").find("belong to --ip"), std::string::npos);
    EXPECT_NE(refusal("net_tap0;net_tap1", "--ip=10.0.0.5/24").find("one device"),
              std::string::npos);
    EXPECT_NE(refusal("net_tap0", "--ip=10.0.0.5/24 --exception").find("leave one out"),
              std::string::npos);
}

/// A user starts 300 short programs in a row within 15 s, and no more than 84 in a second.
TEST(EngineOptions, the_usual_rate_of_jobs_suits_short_jobs_and_has_a_limit) {
    Options options;
    ASSERT_TRUE(parse({"--device", "0000:03:00.0"}, options));
    const auto& limits = node_options_of(options).engine.accounts;
    ASSERT_GT(limits.jobs_per_second, 0U);
    EXPECT_LE((300 - limits.jobs_burst) / limits.jobs_per_second, 15U);
    EXPECT_LE(limits.jobs_burst + limits.jobs_per_second, 84U);
}

}  // namespace
}  // namespace ulc::daemon

// Port over ethdev between real processes: af_packet on a veth pair in network namespaces of its own.
#include "port_peers.h"

namespace ulc::dpdk {
namespace {

/// A veth pair in two namespaces of its own, removed with the test.
class VethPair {
public:
    VethPair() {
        const std::string id = std::to_string(getpid());
        a_ = "ulca" + id;
        b_ = "ulcb" + id;
        made_ = run("ip netns add " + a_) && run("ip netns add " + b_) &&
                run("ip link add v0 netns " + a_ + " type veth peer name v0 netns " + b_) &&
                up(a_) && up(b_);
    }
    ~VethPair() {
        run("ip netns del " + a_);
        run("ip netns del " + b_);
    }
    VethPair(const VethPair&) = delete;
    VethPair& operator=(const VethPair&) = delete;
    [[nodiscard]] bool made() const { return made_; }
    /// Moves the calling process into one end's namespace.
    void enter(bool first) const {
        const std::string path = "/var/run/netns/" + (first ? a_ : b_);
        FILE* file = std::fopen(path.c_str(), "r");
        CHILD_CHECK(file != nullptr);
        CHILD_CHECK(setns(fileno(file), CLONE_NEWNET) == 0);
        std::fclose(file);
    }

private:
    static bool run(const std::string& command) {
        return std::system((command + " 2>/dev/null").c_str()) ==
               0;  // NOLINT(concurrency-mt-unsafe)
    }
    static bool up(const std::string& ns) {
        return run("ip -n " + ns + " link set v0 mtu 9000") &&
               run("ip -n " + ns + " link set v0 up");
    }
    std::string a_;
    std::string b_;
    bool made_ = false;
};

TEST(VethPort, frames_up_to_jumbo_cross_a_veth_by_af_packet) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made())
        GTEST_SKIP() << "cannot make veth pairs in network namespaces here (ip netns)";
    Children children;
    const auto options = [] {
        PortOptions o;
        o.device = "net_af_packet,iface=v0";
        o.segments = 256;
        return o;
    };
    children.expect_success(children.start([&] {
        veth.enter(true);
        PortOptions o = options();
        o.mtu = 9001;
        std::unique_ptr<EthdevPort> port;
        std::string why;
        CHILD_CHECK(EthdevPort::open(o, port, why) == Err::kInvalid);
        CHILD_CHECK(why.find("ip link set v0 mtu 9001") != std::string::npos);
    }));
    const auto echo = children.start([&] {
        veth.enter(true);
        auto port = open_or_exit(options());
        CHILD_CHECK(port->port().info.mtu == 9000);
        echo_until_told(port->port());
    });
    const auto client = children.start([&] {
        veth.enter(false);
        auto owner = open_or_exit(options());
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        for (const std::uint32_t length : {60U, 100U, 1514U, 4000U, 9014U}) {
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 50;
                 ++tries) {  // the echo may not be up yet
                CHILD_CHECK(send_one(port, make_frame(port, length, 3)));
                do {
                    if (back != nullptr) port.pool.drop(back);
                    back = receive_one(port, 100);
                } while (back != nullptr && back->length != length);
            }
            CHILD_CHECK(back != nullptr);
            CHILD_CHECK(pattern_holds(*back, length, 3));
            port.pool.drop(back);
        }
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(echo);
}

}  // namespace
}  // namespace ulc::dpdk
